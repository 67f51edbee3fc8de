"""Rules as skillc reads them, beside the blocks of a CommonMark parser: where they agree, and where they differ."""

import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from skillc.document.markdown import blocks_of, lines_of
from skillc.document.skill_md import from_skill_md

ROOT = Path(__file__).resolve().parents[2]
SKILLS = sorted({*ROOT.glob("examples/**/SKILL*.md"), *ROOT.glob("benchmarks/**/SKILL*.md")})
PARSER = MarkdownIt("commonmark").disable(["reference", "html_block", "code", "blockquote"])


def commonmark_blocks(text: str) -> list[str]:
    """The top-level items and paragraphs of a text, sliced out of its lines by the parser's line numbers."""
    lines, found = lines_of(text), []
    for token in PARSER.parse("\n".join(lines)):
        if (token.level, token.type) == (1, "list_item_open"):
            start, end = token.map
            width = len(re.match(r" *(?:[-*+]|\d+[.)]) *", lines[start])[0])
            own = [lines[start][width:], *(cut(line, width) for line in lines[start + 1 : end])]
            found.append("\n".join(line.rstrip() for line in own).strip("\n"))
        elif (token.level, token.type) == (0, "paragraph_open"):
            start, end = token.map
            found.append("\n".join(line.rstrip() for line in lines[start:end]).strip())
    return found


def cut(line: str, width: int) -> str:
    return line[min(len(line) - len(line.lstrip(" ")), width) :]


@pytest.mark.parametrize("path", SKILLS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_skills_of_this_repository_are_read_as_commonmark_reads_them(path):
    for section in from_skill_md(path.read_text(encoding="utf-8")).sections:
        assert [block.text for block in blocks_of(section.text)] == commonmark_blocks(section.text)


@pytest.mark.parametrize(
    ("text", "ours", "commonmark"),
    [
        # Two blanks below a number are how many write a nested item.
        ("1. a\n  - b\n2. c", ["a\n- b", "c"], ["a", "b", "c"]),
        ("10. a\n   - b", ["a\n- b"], ["a", "b"]),
        # A step is a step whatever its number.
        ("text\n5. item", ["text", "item"], ["text\n5. item"]),
        # Code belongs to the rule above it.
        ("- a\n\n```\nx\n```", ["a\n\n```\nx\n```"], ["a"]),
    ],
)
def test_lists_are_read_as_their_authors_mean_them(text, ours, commonmark):
    assert [block.text for block in blocks_of(text)] == ours
    assert commonmark_blocks(text) == commonmark
