"""The markdown of a skill: lines, headings, lists as rules, and which text may be a rule."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from skillc.dataclass import dataclass
from skillc.fences import Fences, describe_unclosed

_LEADING_BLANKS = re.compile(r"^[ \t]*\t[ \t]*", re.MULTILINE)
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})(.*)")
_HEADING = re.compile(r"(#{1,6})(?:[ \t]+(.*))?")
_BULLET = re.compile(r"([ \t]*)([-*+]|\d{1,3}[.)])([ \t]+|$)(.*)", re.DOTALL)
_UNDERLINE = re.compile(r"(=+|-{2,})[ \t]*")
_BREAK = re.compile(r"[ \t]*(?:(?:-[ \t]*){3,}|(?:_[ \t]*){3,}|(?:\*[ \t]*){3,})")
_INDENT = 2

Mark = Literal["-", "1.", ""]
"""A bullet, a step of a numbered list, or plain text such as a paragraph or a table."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading at the start of a line: `## Title`."""

    level: int
    title: str


@dataclass(frozen=True, slots=True)
class MarkdownBlock:
    """A list item or a paragraph, without its marker, and the headings above it."""

    topic: str | None
    text: str
    mark: Mark


class Refusal(Exception):  # noqa: N818
    """Why an edit or a rewrite is refused. `repeats` if the document already has it, so that nothing is lost."""

    def __init__(self, reason: str, repeats: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.repeats = repeats


def lines_of(text: str) -> list[str]:
    """Return the lines of a text with any newlines; each tab before a line's text becomes four spaces."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _LEADING_BLANKS.sub(lambda blanks: blanks[0].replace("\t", "    "), text).split("\n")


def trim(lines: list[str]) -> list[str]:
    """Return the lines without the blank ones at both ends."""
    start = next((at for at, line in enumerate(lines) if line.strip()), len(lines))
    return trim_end(lines[start:])


def trim_end(lines: list[str]) -> list[str]:
    """Return the lines without the blank ones at the end."""
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    return lines[:end]


def trim_text(text: str) -> str:
    """Return the text with plain newlines and without blank lines at both ends."""
    return "\n".join(trim(lines_of(text)))


def prose(lines: list[str]) -> Iterator[tuple[str, bool]]:
    """Yield each line, and whether it is prose rather than code."""
    fences = Fences()
    for line in lines:
        yield line, not fences.code(line)


def heading(line: str) -> Heading | None:
    """Return the heading of a line, or None. An indented heading is part of a list item."""
    found = _HEADING.fullmatch(line.rstrip())
    if found is None:
        return None
    title = re.sub(r"(^|[ \t]+)#+$", "", (found[2] or "").strip())
    return Heading(len(found[1]), title.strip())


def item_mark(line: str) -> Mark:
    """Return the kind of list item that a line begins, "" for none."""
    found = _BULLET.fullmatch(line)
    return "" if found is None else "-" if found[2] in "-*+" else "1."


def tidy(text: str) -> str:
    """Return the text with one blank line on both sides of every `#` and `##` heading, and one newline at its end.

    Reading a document and writing it again then yields the same bytes. Code is not changed.
    """
    done: list[str] = []
    after_heading = False
    for line, is_prose in prose(trim(lines_of(text))):
        found = heading(line) if is_prose else None
        if found is not None and found.level <= 2:
            done = trim_end(done)
            done += ([""] if done else []) + [f"{'#' * found.level} {found.title}".rstrip(), ""]
            after_heading = True
        elif not (after_heading and not line.strip()):
            done.append(line)
            after_heading = False
    return "\n".join(trim(done)) + "\n" if trim(done) else ""


def below_section(text: str) -> str:
    """Return the text of a section with its `#` and `##` headings as `###`, because `##` begins another section."""
    lines = []
    for line, is_prose in prose(lines_of(text)):
        found = heading(line) if is_prose else None
        lines.append(f"### {found.title}".rstrip() if found and found.level < 3 else line)
    return trim_text("\n".join(lines))


def block(text: str, marker: str = "- ") -> str:
    """Return a rule after its list marker; continuation lines are indented by the marker's width."""
    first, *rest = text.split("\n")
    return "\n".join([f"{marker}{first}", *(" " * len(marker) + line if line else "" for line in rest)])


# ---- text to rules --------------------------------------------------------------------------------


class _BlockParser:
    """A parser that collects the blocks of a section line by line."""

    def __init__(self) -> None:
        self.done: list[MarkdownBlock] = []
        self._topics: list[tuple[int, str, int]] = []
        self._item: list[str] = []
        self._kind: str = "none"
        self._mark: Mark = ""
        self._content = 0
        self._marker = 0
        self._fences = Fences()

    @property
    def _topic(self) -> str | None:
        return " / ".join(title for _, title, _ in self._topics) or None

    def close(self) -> None:
        """End the open item or paragraph."""
        lines = [line.rstrip() for line in trim(self._item)]
        if lines:
            lines[0] = lines[0].lstrip()
            self.done.append(MarkdownBlock(self._topic, "\n".join(lines), self._mark))
        self._item, self._kind, self._mark, self._fences = [], "none", "", Fences()

    def enter(self, level: int, title: str) -> None:
        """Open a topic. Topics that it ends become rules if they have none, so that no text is lost."""
        self.close()
        while self._topics and self._topics[-1][0] >= level:
            _, old, begun = self._topics.pop()
            if begun == len(self.done):
                self.done.append(MarkdownBlock(self._topic, old, "-"))
        if title:
            self._topics.append((level, title, len(self.done)))

    def line(self, line: str) -> None:
        """Parse the next line."""
        if self._fences.open:
            self._fences.code(line)
            self._item.append(self._cut(line))
            return
        if not line.strip():
            if self._kind == "paragraph":
                self._kind = "paragraph, blank"
            if self._item:
                self._item.append("")
            return
        indent = len(line) - len(line.lstrip(" "))
        inside = self._kind == "item" and indent >= self._marker + _INDENT
        found = None if inside else heading(line)
        if found is not None:
            self.enter(found.level, found.title)
        elif not inside and self._underlines(line):
            title = self._item[0].strip()
            self._item = []
            self.enter(3, title)
        elif not inside and _BREAK.fullmatch(line):
            self.close()
        elif not inside and (mark := _BULLET.fullmatch(line)):
            self._begin(mark)
        else:
            self._continue(line, inside)

    def _underlines(self, line: str) -> bool:
        return (
            self._kind == "paragraph"
            and len(self._item) == 1
            and _UNDERLINE.fullmatch(line) is not None
            and not _FENCE.fullmatch(self._item[0])
        )

    def _begin(self, mark: re.Match[str]) -> None:
        self.close()
        self._kind, self._mark = "item", item_mark(mark[0])
        self._marker = len(mark[1])
        space = len(mark[3].replace("\t", "    ")) or 1
        self._content = self._marker + len(mark[2]) + (space if space <= 4 else 1)
        first = " " * (space - 1) + mark[4] if space > 4 else mark[4]
        self._fences.code(first)
        self._item = [first]

    def _continue(self, line: str, inside: bool) -> None:
        fence = _FENCE.fullmatch(line) is not None
        after_blank = bool(self._item) and not self._item[-1]
        if not inside and after_blank and not fence:
            self.close()
        if not self._item and self._kind == "none":
            self._kind = "paragraph"
            self._content = self._marker = 0
        if self._kind == "paragraph, blank":
            self._kind = "paragraph"
        self._fences.code(line)
        self._item.append(self._cut(line))

    def _cut(self, line: str) -> str:
        indent = len(line) - len(line.lstrip(" "))
        return line[min(indent, self._content) :]


def blocks_of(text: str) -> list[MarkdownBlock]:
    """Return the rules in a section's text.

    A list item is a rule, with its nested items and further paragraphs; so is a plain paragraph. Headings of any level
    become topics, a sub-heading `Top / Sub`; one without rules becomes a rule. A code block belongs to the block before
    it. Only the characters of bullets and numbers, and thematic breaks, are dropped.
    """
    parser = _BlockParser()
    lines = trim(lines_of(text))
    margin = min((len(line) - len(line.lstrip(" ")) for line in lines if line.strip()), default=0)
    for line in lines:
        parser.line(line[margin:])
    parser.enter(0, "")
    return parser.done


TOPIC_CHARACTERS = 80
RULE_CHARACTERS = 10_000
_BREAKS_RULE = re.compile(r"[ \t]*(?:-+|=+|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})[ \t]*")
_DIRECTION = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def mark_of(text: str) -> Mark | None:
    """Return the mark of a rule's text: `1.` if it begins with a number, else None."""
    return "1." if item_mark(text.lstrip().split("\n")[0]) == "1." else None


@lru_cache(maxsize=512)  # a step reads the rules of its section again for each candidate
def rule_text(text: str, mark: Mark = "-") -> str:
    """Return the text of one rule without its list marker, if it has one.

    A rule with the mark of a paragraph may contain other texts than a list item.

    Raises:
        Refusal: the text cannot be one rule.
    """
    hidden = hidden_character(text)
    if hidden:
        raise Refusal(hidden)
    if len(text) > RULE_CHARACTERS:
        raise Refusal(f"the text is longer than {RULE_CHARACTERS:,} characters")
    # The text may have the marker with which prompts show a rule: `- text`.
    items = [item.text for item in blocks_of(text)]
    if not items or not any(c.isalnum() for c in text):
        raise Refusal("the text is empty")
    lines = trim(lines_of(text))
    _check_lines(lines)
    if len(items) == 1:
        lines = items[0].split("\n")
    elif _has_loose_cases(lines):
        lines[0] = items[0].split("\n")[0]
    elif item_mark(lines[0]):
        raise Refusal(
            f"the text contains {len(items)} rules, the second is `{items[1].splitlines()[0][:40]}`; write one rule "
            "in an edit, and indent its nested items by four spaces"
        )
    clean = "\n".join([lines[0].strip(), *(line.rstrip() for line in lines[1:])])
    blank, marker = ("", f"{mark} ") if mark else ("\n", "")
    around = [MarkdownBlock(None, word, mark or "-") for word in ("before", "after")]
    first, last = (block(each.text, marker or "- ") for each in around)
    expected = [around[0], MarkdownBlock(None, clean, mark), around[1]]
    if blocks_of(f"{first}\n{blank}{block(clean, marker)}\n{blank}{last}") != expected:
        raise Refusal(f"the text does not stay one {'list item' if mark else 'paragraph'} in markdown")
    return clean


def _has_loose_cases(lines: list[str]) -> bool:
    """Return whether a list item has its cases below it, indented too little, or not at all below a numbered step."""
    mark, below = item_mark(lines[0]), [line for line in lines[1:] if item_mark(line.strip())]
    return mark != "" and all(line[0] == " " or (mark == "1." and item_mark(line) == "-") for line in below)


def _check_lines(lines: list[str]) -> None:
    """Refuse headings, breaks and unclosed code in a rule."""
    for line, is_prose in prose(lines):
        if is_prose and heading(line.strip()):
            raise Refusal(f"a rule cannot hold the heading `{line.strip()}`; give a topic instead")
        if is_prose and _BREAKS_RULE.fullmatch(line):
            raise Refusal(f"a rule cannot hold the line `{line.strip()}`, which markdown reads as a heading or a break")
    unclosed = describe_unclosed("\n".join(lines))
    if unclosed:
        raise Refusal(unclosed)


def topic_text(topic: str | None) -> str | None:
    """Return a topic on one line without heading marks, None for none.

    Raises:
        Refusal: the text cannot be a heading.
    """
    if topic is None:
        return None
    hidden = hidden_character(topic)
    if hidden:
        raise Refusal(f"in the topic: {hidden}")
    words = " ".join(topic.split())
    found = heading(words)
    clean = found.title if found else words
    if not clean:
        return None
    if len(clean) > TOPIC_CHARACTERS:
        raise Refusal(f"the topic is longer than {TOPIC_CHARACTERS} characters")
    again = heading(f"### {clean}")
    if again is None or again.title != clean or describe_unclosed(clean):
        raise Refusal(f"the topic `{clean}` is not a heading in markdown")
    return clean


def hidden_character(text: str) -> str | None:
    """Describe the first invisible character: control, lone surrogate, bidirectional mark."""
    for character in text:
        kind = unicodedata.category(character)
        if character in "\n\r\t":
            continue
        if kind in ("Cc", "Cs", "Zl", "Zp") or character in _DIRECTION or character == "\ufeff":
            return f"the text holds the invisible character U+{ord(character):04X}"
    return None


@lru_cache(maxsize=1024)
def same_words(text: str) -> str:
    """Normalize a text for comparison: ignore case, spaces and the final stop."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(".!;, ")


def rule_words(text: str) -> str:
    """Normalize the text of an edit as the rule that it becomes, without its list marker; that of a script as it is."""
    try:
        return same_words(rule_text(text, mark_of(text) or "-"))
    except Refusal:
        return same_words(text)
