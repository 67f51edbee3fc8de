"""What may stand in a rule: text that stays one list item wherever it is put."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from skillc.document.markdown import Block, Mark, block, blocks_of, heading, item_mark, lines_of, prose, trim
from skillc.fences import unclosed

TOPIC_CHARACTERS = 80
RULE_CHARACTERS = 10_000
_UNDERLINE = re.compile(r"[ \t]*(?:-+|=+|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})[ \t]*")
_DIRECTION = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass(frozen=True, slots=True)
class Refused:
    """Why something cannot be taken. `repeats` where the document has it already, so that nothing is lost."""

    reason: str
    repeats: bool = False


def mark_of(text: str) -> Mark | None:
    """The mark that a rule's own text shows: a step where it begins with `1. `, else None."""
    return "1." if item_mark(text.lstrip().split("\n")[0]) == "1." else None


def rule_text(text: str, mark: Mark = "-") -> str | Refused:
    """The text of one rule without its list marker, or why it cannot be one.

    Args:
        text: as it was written, with or without a marker.
        mark: what the rule is; a paragraph may hold other texts than a list item.
    """
    hidden = hidden_character(text)
    if hidden:
        return Refused(hidden)
    if len(text) > RULE_CHARACTERS:
        return Refused(f"the text is longer than {RULE_CHARACTERS:,} characters")
    # A rule may be given as the item it was shown as: `- text`.
    items = [item.text for item in blocks_of(text)]
    if not items or not any(c.isalnum() for c in text):
        return Refused("the text is empty")
    lines = trim(lines_of(text))
    broken = _broken(lines)
    if broken:
        return Refused(broken)
    if len(items) == 1:
        lines = items[0].split("\n")
    elif item_mark(lines[0]):
        return Refused(f"the text holds {len(items)} rules; an edit speaks of one")
    clean = "\n".join([lines[0].strip(), *(line.rstrip() for line in lines[1:])])
    blank, marker = ("", f"{mark} ") if mark else ("\n", "")
    around = [Block(None, word, mark or "-") for word in ("before", "after")]
    first, last = (block(each.text, marker or "- ") for each in around)
    if blocks_of(f"{first}\n{blank}{block(clean, marker)}\n{blank}{last}") != [
        around[0],
        Block(None, clean, mark),
        around[1],
    ]:
        return Refused(f"the text does not stay one {'list item' if mark else 'paragraph'} in markdown")
    return clean


def _broken(lines: list[str]) -> str | None:
    for line, is_prose in prose(lines):
        if is_prose and heading(line.strip()):
            return f"a rule cannot hold the heading `{line.strip()}`; give a topic instead"
        if is_prose and _UNDERLINE.fullmatch(line):
            return f"a rule cannot hold the line `{line.strip()}`, which markdown reads as a heading or a break"
    return unclosed("\n".join(lines))


def topic_text(topic: str | None) -> str | Refused | None:
    """A topic on one line without heading marks, None for none, or why it cannot be one."""
    if topic is None:
        return None
    hidden = hidden_character(topic)
    if hidden:
        return Refused(f"in the topic: {hidden}")
    words = " ".join(topic.split())
    found = heading(words)
    clean = found.title if found else words
    if not clean:
        return None
    if len(clean) > TOPIC_CHARACTERS:
        return Refused(f"the topic is longer than {TOPIC_CHARACTERS} characters")
    again = heading(f"### {clean}")
    if again is None or again.title != clean or unclosed(clean):
        return Refused(f"the topic `{clean}` is not a heading in markdown")
    return clean


def hidden_character(text: str) -> str | None:
    """Names the first character that a reader could not see: controls, lone surrogates, marks of writing direction."""
    for character in text:
        kind = unicodedata.category(character)
        if character in "\n\r\t":
            continue
        if kind in ("Cc", "Cs", "Zl", "Zp") or character in _DIRECTION or character == "\ufeff":
            return f"the text holds the invisible character U+{ord(character):04X}"
    return None


def same_words(text: str) -> str:
    """What two texts have in common that say the same: case, spaces and the final stop do not count."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(".!;, ")
