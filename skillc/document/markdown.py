"""The markdown of a skill: lines, headings, lists as rules, and which text may be a rule."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from skillc.fences import Fences, describe_unclosed

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})(.*)")
_HEADING = re.compile(r"(#{1,6})(?:[ \t]+(.*))?")
_BULLET = re.compile(r"([ \t]*)([-*+]|\d{1,3}[.)])([ \t]+|$)(.*)", re.DOTALL)
_UNDERLINE = re.compile(r"(=+|-{2,})[ \t]*")
_BREAK = re.compile(r"[ \t]*(?:(?:-[ \t]*){3,}|(?:_[ \t]*){3,}|(?:\*[ \t]*){3,})")
_INDENT = 2

Mark = Literal["-", "1.", ""]
"""How a block begins: as a bullet, as a step of a numbered list, or as plain text such as a paragraph or a table."""


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


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, whatever its newlines are, with tabs in front of a line as four spaces."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return [_untab(line) if line[:1] in " \t" else line for line in lines]


def _untab(line: str) -> str:
    body = line.lstrip(" \t")
    return line[: len(line) - len(body)].replace("\t", "    ") + body


def trim(lines: list[str]) -> list[str]:
    """Return the lines without the blank ones at both ends."""
    start, end = 0, len(lines)
    while start < end and not lines[start].strip():
        start += 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    return lines[start:end]


def trim_text(text: str) -> str:
    """Return the text with plain newlines and without blank lines at its ends."""
    return "\n".join(trim(lines_of(text)))


def prose(lines: list[str]) -> Iterator[tuple[str, bool]]:
    """Yield each line, and whether it is prose and not code."""
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
    """Return how a line begins a list item, "" if it does not."""
    found = _BULLET.fullmatch(line)
    return "" if found is None else "-" if found[2] in "-*+" else "1."


def tidy(text: str) -> str:
    """Return the text with one blank line on both sides of every `#` and `##` heading, and one newline at its end.

    Reading a document and writing it again then gives the same bytes. Code stays as it is.
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
    """Return the text of a section with its `#` and `##` headings as `###`, below the heading of the section.

    The headings of the sections are `##`, so one of them within a text would begin another section.
    """
    lines = []
    for line, is_prose in prose(lines_of(text)):
        found = heading(line) if is_prose else None
        lines.append(f"### {found.title}".rstrip() if found and found.level < 3 else line)
    return trim_text("\n".join(lines))


def trim_end(lines: list[str]) -> list[str]:
    """Return the lines without the blank ones at the end."""
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    return lines[:end]


def block(text: str, marker: str = "- ") -> str:
    """Return a rule behind its marker: continuation lines are indented by its width."""
    first, *rest = text.split("\n")
    return "\n".join([f"{marker}{first}", *(" " * len(marker) + line if line else "" for line in rest)])


# ---- text to rules --------------------------------------------------------------------------------


class _Items:
    """Collects blocks while the lines of a section go by."""

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
        """Open a topic; those that it ends and that held no rule become rules, so that no word is lost."""
        self.close()
        while self._topics and self._topics[-1][0] >= level:
            _, old, begun = self._topics.pop()
            if begun == len(self.done):
                self.done.append(MarkdownBlock(self._topic, old, "-"))
        if title:
            self._topics.append((level, title, len(self.done)))

    def finish(self) -> list[MarkdownBlock]:
        """Return all blocks in order."""
        self.enter(0, "")
        return self.done

    def line(self, line: str) -> None:
        """Take the next line."""
        if self._fences.open:
            self._fences.code(line)
            self._item.append(self._cut(line))
            return
        if not line.strip():
            self._blank()
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

    def _blank(self) -> None:
        if self._kind == "paragraph":
            self._kind = "paragraph, blank"
        if self._item:
            self._item.append("")

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
    become topics, a sub-heading `Top / Sub`; one without any rule below it becomes a rule itself. A code block goes
    with what stands before it. Which bullets and numbers there were, and thematic breaks, go; nothing else does.
    """
    items = _Items()
    lines = trim(lines_of(text))
    margin = min((len(line) - len(line.lstrip(" ")) for line in lines if line.strip()), default=0)
    for line in lines:
        items.line(line[margin:])
    return items.finish()


TOPIC_CHARACTERS = 80
RULE_CHARACTERS = 10_000
_BREAKS_RULE = re.compile(r"[ \t]*(?:-+|=+|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})[ \t]*")
_DIRECTION = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why something is refused. `repeats` if the document has it already, so that nothing is lost."""

    reason: str
    repeats: bool = False


def mark_of(text: str) -> Mark | None:
    """Return the mark that a rule's own text shows: a step where it begins with `1. `, else None."""
    return "1." if item_mark(text.lstrip().split("\n")[0]) == "1." else None


def rule_text(text: str, mark: Mark = "-") -> str | Refusal:
    """Return the text of one rule without its list marker, or why it cannot be one.

    Args:
        text: as it was written, with or without a marker.
        mark: what the rule is; a paragraph may hold other texts than a list item.
    """
    hidden = hidden_character(text)
    if hidden:
        return Refusal(hidden)
    if len(text) > RULE_CHARACTERS:
        return Refusal(f"the text is longer than {RULE_CHARACTERS:,} characters")
    # A rule may be given as the item it was shown as: `- text`.
    items = [item.text for item in blocks_of(text)]
    if not items or not any(c.isalnum() for c in text):
        return Refusal("the text is empty")
    lines = trim(lines_of(text))
    broken = _broken(lines)
    if broken:
        return Refusal(broken)
    if len(items) == 1:
        lines = items[0].split("\n")
    elif item_mark(lines[0]):
        return Refusal(f"the text holds {len(items)} rules; an edit speaks of one")
    clean = "\n".join([lines[0].strip(), *(line.rstrip() for line in lines[1:])])
    blank, marker = ("", f"{mark} ") if mark else ("\n", "")
    around = [MarkdownBlock(None, word, mark or "-") for word in ("before", "after")]
    first, last = (block(each.text, marker or "- ") for each in around)
    if blocks_of(f"{first}\n{blank}{block(clean, marker)}\n{blank}{last}") != [
        around[0],
        MarkdownBlock(None, clean, mark),
        around[1],
    ]:
        return Refusal(f"the text does not stay one {'list item' if mark else 'paragraph'} in markdown")
    return clean


def _broken(lines: list[str]) -> str | None:
    for line, is_prose in prose(lines):
        if is_prose and heading(line.strip()):
            return f"a rule cannot hold the heading `{line.strip()}`; give a topic instead"
        if is_prose and _BREAKS_RULE.fullmatch(line):
            return f"a rule cannot hold the line `{line.strip()}`, which markdown reads as a heading or a break"
    return describe_unclosed("\n".join(lines))


def topic_text(topic: str | None) -> str | Refusal | None:
    """Return a topic on one line without heading marks, None for none, or why it cannot be one."""
    if topic is None:
        return None
    hidden = hidden_character(topic)
    if hidden:
        return Refusal(f"in the topic: {hidden}")
    words = " ".join(topic.split())
    found = heading(words)
    clean = found.title if found else words
    if not clean:
        return None
    if len(clean) > TOPIC_CHARACTERS:
        return Refusal(f"the topic is longer than {TOPIC_CHARACTERS} characters")
    again = heading(f"### {clean}")
    if again is None or again.title != clean or describe_unclosed(clean):
        return Refusal(f"the topic `{clean}` is not a heading in markdown")
    return clean


def hidden_character(text: str) -> str | None:
    """Name the first character that a reader could not see: controls, lone surrogates, marks of writing direction."""
    for character in text:
        kind = unicodedata.category(character)
        if character in "\n\r\t":
            continue
        if kind in ("Cc", "Cs", "Zl", "Zp") or character in _DIRECTION or character == "\ufeff":
            return f"the text holds the invisible character U+{ord(character):04X}"
    return None


def same_words(text: str) -> str:
    """Normalize a text to compare its words: case, spaces and the final stop do not count."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(".!;, ")
