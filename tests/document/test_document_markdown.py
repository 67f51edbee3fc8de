"""Markdown in and out: rules from text, the two renderings, SKILL.md."""

from __future__ import annotations

import json
import re
import sys
from fractions import Fraction
from subprocess import run

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from thorough import example_count

from skillc.document.change import change, common_tokens
from skillc.document.edits import Add, Delete, Move, Replace, apply_edits
from skillc.document.markdown import blocks_of, trim_text
from skillc.document.skill import (
    Document,
    Rule,
    Section,
    digest,
    document_of,
    for_optimizer,
    for_target,
    split_rules,
    tokens,
)
from skillc.document.skill_md import from_skill_md, sections_of, to_skill_md, validate
from skillc.errors import SkillcError
from skillc.fences import close_fence, describe_unclosed
from skillc.tokens import count_tokens, split_tokens

RULES = """
- First, on
  two lines.
  - nested
    - deeper

  A second paragraph.
* Second.

### Money

1. Third.
2) Fourth.

A paragraph
of two lines.

```py
# not a heading
```

#### Refunds
- Fifth.
## Empty
"""


def items_of(text: str) -> list[tuple[str | None, str]]:
    return [(block.topic, block.text) for block in blocks_of(text)]


def test_split_rules() -> None:
    assert items_of(RULES) == [
        (None, "First, on\ntwo lines.\n- nested\n  - deeper\n\nA second paragraph."),
        (None, "Second."),
        ("Money", "Third."),
        ("Money", "Fourth."),
        ("Money", "A paragraph\nof two lines.\n\n```py\n# not a heading\n```"),
        ("Money / Refunds", "Fifth."),
        (None, "Empty"),
    ]
    rules = split_rules(RULES, "rules")
    assert [rule.mark for rule in rules] == ["-", "-", "-", "1.", "1.", "", "-"]
    assert rules == split_rules(RULES, "rules")
    assert [rule.topic for rule in rules] == [None, None, None, "Money", "Money", "Money", "Money / Refunds"]
    assert all(re.fullmatch(r"[0-9a-f]{6,}", rule.id) for rule in rules)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("\n \n", []),
        ("plain", [(None, "plain")]),
        ("- a\nlazy", [(None, "a\nlazy")]),
        ("- a\n\nnot lazy", [(None, "a"), (None, "not lazy")]),
        ("    - margin\n    - goes", [(None, "margin"), (None, "goes")]),
        ("Title\n=====\n- a", [("Title", "a")]),
        ("- a\n---\n- b", [(None, "a"), (None, "b")]),
        ("- a\r\n- b\r", [(None, "a"), (None, "b")]),
        ("-\tа tab", [(None, "а tab")]),
        ("- ```\n  - code\n  ```\n- b", [(None, "```\n- code\n```"), (None, "b")]),
        ("~~~\n- code\n~~~", [(None, "~~~\n- code\n~~~")]),
        ("-no bullet", [(None, "-no bullet")]),
        ("**bold** text", [(None, "**bold** text")]),
        ("# A\n## B\n### C\n- x\n# D\n- y", [("A / B / C", "x"), ("D", "y")]),
        ("# Alone", [(None, "Alone")]),
        ("2024 was a year", [(None, "2024 was a year")]),
    ],
)
def test_split_rules_edges(text: str, expected: list[tuple[str | None, str]]) -> None:
    assert items_of(text) == expected


MARKDOWN = st.lists(
    st.sampled_from(
        ["- a", "* b", "  - c", "1. d", "para", "  more", "", "", "# H", "## H2", "### t #", "```", "~~~", "---", "===",
         "    code", "| x |", "> q", "\ttab", "- ", "-", "#", "##nohead", "word " * 3, "<!-- c -->", "- ```", "  ```"]
    ),
    max_size=14,
).map("\n".join)  # fmt: skip
ANY = st.one_of(MARKDOWN, st.text(max_size=60))


@settings(max_examples=example_count(500), deadline=None)
@given(ANY)
def test_no_word_of_a_text_is_lost(text: str) -> None:
    found = " ".join(f"{topic or ''} {item}" for topic, item in items_of(text))
    markers = re.sub(r"(?m)^[ \t]*\d{1,3}[.)](?=[ \t]|$)", "", text.replace("\r", "\n"))
    for word in set(re.findall(r"[^\W_]+", markers)):
        assert word in found


def test_for_target() -> None:
    document = document_of(
        "route-tickets",
        "Route it.",
        [("role", "frozen", "\nYou route.\n", None), ("rules", "trainable", RULES, 800), ("guidance", "slow", "", 30)],
    )
    assert for_target(document) == (
        "# Route tickets\n\n## Role\n\nYou route.\n\n## Rules\n\n- First, on\n  two lines.\n"
        "  - nested\n    - deeper\n\n  A second paragraph.\n- Second.\n- Empty\n\n"
        "### Money\n\n1. Third.\n2. Fourth.\n\nA paragraph\nof two lines.\n\n"
        "```py\n# not a heading\n```\n\n### Money / Refunds\n\n- Fifth.\n"
    )
    assert tokens(document) == count_tokens(for_target(document))


def test_for_optimizer_shows_ids_rationales_and_limits() -> None:
    rules = (Rule("3fa2c1", "Say a.", None, "cured\ntwo"), Rule("aaaaaa", "Say b.", "Money"))
    document = Document(
        "x", "About.", (Section("role", "frozen", "You."), Section("rules", "trainable", "", rules, 90))
    )
    text = for_optimizer(document)
    assert "[3fa2c1] Say a.\n    why: cured two" in text
    assert "## rules (trainable, " in text and " of 90 tokens)" in text and "### Money" in text
    assert "## role (frozen, 2 tokens)" in text
    target = for_target(document)
    assert "3fa2c1" not in target and "cured" not in target


def test_the_digest_is_of_what_the_target_sees() -> None:
    parts = [("rules", "trainable", "- a", 800)]
    document = document_of("x", "About.", parts)  # type: ignore[arg-type]
    section = document.sections[0]
    seen = Section("rules", "trainable", "", (Rule("ffffff", "a", None, "why"),), 5)
    assert digest(document) == digest(document.with_section(seen))
    assert digest(document) != digest(document_of("x", "Else.", parts))  # type: ignore[arg-type]
    assert digest(document) != digest(document.with_section(Section(section.name, "trainable", "- b")))


# ---- SKILL.md -------------------------------------------------------------------------------------

HOSTILE = [
    "Route it: now", 'say "no"', "a\nb", "---", "\n---\nname: evil", "- x", "# x", "x # y", "'q'", "é 漢 😀", "@a",
    "`b`",
    "%c", "{a: b}", "[x]", "null", "true", "Yes", "1.5", "2024-01-01", "~", "*a", "&a", "!t", "|", ">", "",
    " lead", "trail ",
    "tab\tx", "back\\slash", "\x00\x07\x85\u2028\ufeff", "a: ", "? x", "-", "=", "<<", "plain text, nothing else.",
    "\U0001f600",
]  # fmt: skip


def read_back(text: str) -> dict[str, str]:
    block = text.split("\n---\n", 1)[0].removeprefix("---\n")
    found = yaml.safe_load(block)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("about", HOSTILE)
def test_frontmatter_is_safe_yaml(about: str) -> None:
    text = to_skill_md(Document("route-tickets", about, (Section("role", "frozen", "x"),)))
    assert read_back(text) == {"name": "route-tickets", "description": about}
    assert text.split("\n")[3] == "---"
    again = from_skill_md(text)
    assert (again.name, again.about) == ("route-tickets", about)


@settings(max_examples=example_count(400), deadline=None)
@given(st.text(max_size=80), st.sampled_from(["a", "null", "yes", "123", "1-2", "route-tickets"]))
def test_any_description_comes_back(about: str, name: str) -> None:
    text = to_skill_md(Document(name, about, ()))
    assert read_back(text) == {"name": name, "description": about}
    assert from_skill_md(text).about == about
    assert from_skill_md(text).name == name


SKILL = """\ufeff---
name: pdf
description: >-
  Work with PDF files:
  read, write.
license: MIT
metadata:
  author: someone
  tags: [a, b]
allowed-tools:
- Bash
---
# PDF skill

Preamble here.

## When to use
Always.
```md
## not a section
```

## Rules!

- a

## Rules!
- b
"""


def test_from_skill_md() -> None:
    document = from_skill_md(SKILL)
    assert document.name == "pdf"
    assert document.about == "Work with PDF files: read, write."
    assert [s.name for s in document.sections] == ["preamble", "when_to_use", "rules", "rules_2"]
    assert for_target(document) == (
        "# PDF skill\n\nPreamble here.\n\n## When to use\n\nAlways.\n```md\n## not a section\n```\n\n"
        "## Rules!\n\n- a\n\n## Rules!\n\n- b\n"
    )
    assert sections_of(SKILL)["rules"] == "- a"


@pytest.mark.parametrize(
    ("block", "about"),
    [
        ("description: |\n  a\n  b", "a\nb"),
        ("description: >\n  a\n  b\n\n  c", "a b\nc"),
        ("description: 'it''s'", "it's"),
        ('description: "a\\tb \\u00e9"', "a\tb é"),
        ('description: "a\n  b"', "a b"),
        ("description: a\n  b # comment", "a b"),
        ("description: Use when: always", "Use when: always"),
        ('"description": x', "x"),
        ("# c\ndescription: x", "x"),
        ("description:\n  x", "x"),
        ("description:", ""),
        ("other: 1", ""),
    ],
)
def test_frontmatter_as_people_write_it(block: str, about: str) -> None:
    assert from_skill_md(f"---\nname: x\n{block}\n---\nBody.\n").about == about


def test_files_without_frontmatter() -> None:
    assert from_skill_md("# My skill\n\nText.").name == "my-skill"
    assert from_skill_md("").sections == ()
    assert for_target(from_skill_md("---\n\ntext\n\n---\nmore")) == "---\n\ntext\n\n---\nmore\n"
    with pytest.raises(SkillcError, match="not closed"):
        from_skill_md("---\nname: x\n\n# Body")


@settings(max_examples=example_count(500), deadline=None)
@given(ANY, st.sampled_from(["", "---\nname: x\ndescription: y\n---\n"]))
def test_reading_and_writing_is_stable(text: str, front: str) -> None:
    try:
        once = to_skill_md(from_skill_md(front + text))
    except SkillcError:
        assume(False)
    assert to_skill_md(from_skill_md(once)) == once


@settings(max_examples=example_count(500), deadline=None)
@given(ANY, ANY, ANY)
def test_a_written_document_reads_back_to_the_same_bytes(role: str, rules: str, slow: str) -> None:
    parts = [("role", "frozen", role, None), ("rules", "trainable", rules, None), ("guidance", "slow", slow, 9)]
    document = document_of("route-tickets", "x", parts)  # type: ignore[arg-type]
    assert for_target(from_skill_md(to_skill_md(document))) == for_target(document)


@settings(max_examples=example_count(500), deadline=None)
@given(ANY, ANY, ANY)
def test_texts_that_close_what_they_open_come_back_as_the_same_sections(role: str, rules: str, slow: str) -> None:
    assume(not any(describe_unclosed(text) for text in (role, rules, slow)))
    parts = [("role", "frozen", role, None), ("rules", "trainable", rules, None), ("guidance", "slow", slow, 9)]
    document = document_of("route-tickets", "x", [*parts, ("last", "frozen", "The end.", None)])  # type: ignore[arg-type]
    written = {section.name: trim_text(section.body) for section in document.sections if section.body.strip()}
    assert sections_of(to_skill_md(document)) == written


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("A.\n\n## Tone\n\nBe kind.", "A.\n\n### Tone\n\nBe kind."),
        ("# Tone\n\nBe kind.", "### Tone\n\nBe kind."),
        ("### Tone\n\nBe kind.", "### Tone\n\nBe kind."),
        ("```md\n## Not a heading\n```", "```md\n## Not a heading\n```"),
        ("- ```md\n  ## Not a heading\n  ```\n- b", "- ```md\n  ## Not a heading\n  ```\n- b"),
        ("Title\n---\n\nBe kind.", "Title\n---\n\nBe kind."),
        ("<!--\n## Hidden\n-->\nBe kind.", "<!--\n### Hidden\n-->\nBe kind."),
    ],
)
@pytest.mark.parametrize("mode", ["frozen", "slow"])
def test_a_heading_in_a_text_begins_no_section(mode: str, text: str, shown: str) -> None:
    parts = [("role", mode, text, None), ("tone", "frozen", "Be brief.", None)]
    document = document_of("x", "y", parts)  # type: ignore[arg-type]
    assert sections_of(to_skill_md(document)) == {"role": shown, "tone": "Be brief."}


@pytest.mark.parametrize("fence", ["```", "~~~~", "- ```py", "  ```"])
def test_an_open_fence_is_named_and_can_be_closed(fence: str) -> None:
    text = f"Answer so:\n{fence}\nyes"
    assert describe_unclosed(text) == "the text opens a code block and does not close it"
    assert describe_unclosed(close_fence(text)) is None
    assert close_fence(close_fence(text)) == close_fence(text)


def test_a_rule_that_begins_with_code_swallows_nothing() -> None:
    parts = [("rules", "trainable", "- ```py\n  x = 1\n  ```", None), ("tone", "frozen", "Be brief.", None)]
    document = document_of("x", "y", parts)  # type: ignore[arg-type]
    assert sections_of(to_skill_md(document))["tone"] == "Be brief."


def test_trained_rules_come_back_through_a_file() -> None:
    document = document_of("x", "y", [("rules", "trainable", RULES, None)])
    again = split_rules(sections_of(to_skill_md(document))["rules"], "rules")
    assert [(r.topic, r.text) for r in again] == [(r.topic, r.text) for r in document.rules]


def test_the_artifact_holds_no_id_and_no_rationale() -> None:
    document = document_of("x", "y", [("rules", "trainable", "", 90)])
    added = apply_edits(document, [Add("rules", "Say a.", rationale="because of t001")]).document
    text = to_skill_md(added)
    assert added.rules[0].id not in text and "t001" not in text and "<!--" not in text


@pytest.mark.parametrize(
    ("name", "about", "words"),
    [
        ("a" * 64, "x", []),
        ("route-tickets-2", "x" * 1024, []),
        ("a" * 65, "x", ["65"]),
        ("", "x", ["0 characters"]),
        ("-a", "x", ["hyphens"]),
        ("a-", "x", ["hyphens"]),
        ("a--b", "x", ["`a-b` is valid"]),
        ("Route_Tickets", "x", ["`route-tickets` is valid"]),
        ("a", "", ["empty"]),
        ("a", "x" * 1025, ["1025"]),
    ],
)
def test_validate(name: str, about: str, words: list[str]) -> None:
    problems = validate(name, about)
    assert len(problems) == len(words)
    assert all(word in problem for word, problem in zip(words, problems, strict=True))


# ---- change ---------------------------------------------------------------------------------------


def small() -> Document:
    return document_of(
        "x", "y", [("rules", "trainable", "- one two three\n- four five", 100), ("late", "slow", "", 20)]
    )


def test_change_counts_tokens() -> None:
    document = small()
    first, second = (rule.id for rule in document.rules)

    def after(*edits: Add | Replace | Delete | Move) -> Fraction:
        return change(document, apply_edits(document, edits).document)

    assert after() == 0
    assert after(Move(second, "start")) == 0
    full = Fraction(document.sections[0].tokens, 100)
    assert 0 < full < 1
    assert after(Add("rules", "six seven eight")) == 3 * full / 120
    assert after(Delete(second)) == Fraction(2, 120)
    assert after(Replace(first, "one 2 three")) == (1 + full) / 120
    assert after(Add("rules", "six", topic="Some topic")) == 3 * full / 120
    assert after(Delete(first), Add("rules", "one two three")) == 0


def test_what_is_written_into_an_empty_section_is_bounded_by_its_limit_alone() -> None:
    document = small()
    guided = document.with_section(Section("late", "slow", "a b c", limit=20))
    assert change(document, guided) == 0
    assert change(guided, document) == Fraction(3, 120)
    assert (
        change(guided, guided.with_section(Section("late", "slow", "a b d", limit=20))) == (1 + Fraction(3, 20)) / 120
    )
    empty = document_of("x", "y", [("rules", "trainable", "", 1_500), ("open", "trainable", "", None)])
    draft = apply_edits(empty, [Add(s, "word " * 1_000 + s) for s in ("rules", "open")]).document
    assert change(empty, draft) == 0


def test_what_is_inserted_into_a_full_section_counts_whole() -> None:
    full = document_of("x", "y", [("rules", "trainable", "- " + "word " * 50, 20)])
    changed = apply_edits(full, [Replace(full.rules[0].id, "other")]).document
    assert change(full, changed) == Fraction(51, tokens(full))


def test_change_is_over_the_incumbent_where_it_is_larger_than_the_limits() -> None:
    document = document_of("x", "y", [("rules", "trainable", "- " + "word " * 50, None)])
    longer = apply_edits(document, [Add("rules", "more")]).document
    assert change(document, longer) == Fraction(1, tokens(document))


def slow_common(a: list[str], b: list[str]) -> int:
    row = [0] * (len(b) + 1)
    for x in a:
        last = row[:]
        for j, y in enumerate(b):
            row[j + 1] = last[j] + 1 if x == y else max(row[j], last[j + 1])
    return row[-1]


@given(st.lists(st.sampled_from("abcd"), max_size=30), st.lists(st.sampled_from("abcd"), max_size=30))
def test_common_tokens_is_the_longest_common_subsequence(a: list[str], b: list[str]) -> None:
    assert common_tokens(a, b) == slow_common(a, b) == common_tokens(b, a)


@settings(max_examples=example_count(300))
@given(st.text())
def test_split_tokens_agrees_with_the_counter(text: str) -> None:
    assert len(split_tokens(text)) == count_tokens(text)


def test_document_imports_no_dspy_no_litellm_no_sockets() -> None:
    code = (
        "import json, sys\n"
        "import skillc.document.skill_md, skillc.document.change, skillc.document.edits\n"
        "print(json.dumps(sorted(m for m in sys.modules if m.split('.')[0] in "
        "('dspy', 'litellm', 'socket', 'pydantic', 'yaml') or m.startswith('skillc.'))))"
    )
    out = run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = json.loads(out.stdout)
    leaves = (
        "skillc.document",
        "skillc.artifact_paths",
        "skillc.dataclass",
        "skillc.tokens",
        "skillc.errors",
        "skillc.fences",
        "skillc.text",
    )
    assert all(m.startswith(leaves) for m in modules), modules


def test_body_is_what_the_limit_speaks_of() -> None:
    document = small()
    assert document.sections[0].body == "- one two three\n- four five"
    assert document.sections[0].tokens == 7
