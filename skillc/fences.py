"""Code fences of markdown, and unclosed fences and comments."""

from __future__ import annotations

import re

_MARKERS = r"(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)*"
_OPENS = re.compile(rf"[ \t]*{_MARKERS}(`{{3,}}|~{{3,}})(.*)")
_CLOSES = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*")


class Fences:
    """Tracks code fences from line to line."""

    def __init__(self) -> None:
        self._open: str | None = None

    @property
    def open(self) -> str | None:
        """The fence that the last line left open, such as ```` ``` ````."""
        return self._open

    def code(self, line: str) -> bool:
        """Return whether a line is part of a fenced block, including its fences. Call it for each line in order.

        A block can begin after the marker of a list item.
        """
        if self._open is None:
            found = _OPENS.fullmatch(line)
            if found is None or ("`" in found[1] and "`" in found[2]):
                return False
            self._open = found[1]
            return True
        found = _CLOSES.fullmatch(line)
        if found and found[1][0] == self._open[0] and len(found[1]) >= len(self._open):
            self._open = None
        return True


def describe_unclosed(text: str) -> str | None:
    """Describe an unclosed code fence or comment, which would include the text that follows."""
    fences = Fences()
    words = []
    for line in re.split(r"\r\n|\r|\n", text):
        if not fences.code(line):
            words.append(re.sub(r"`[^`\n]*`", "", line))
    if fences.open:
        return "the text opens a code block and does not close it"
    plain = "\n".join(words)
    if plain.rfind("<!--") > plain.rfind("-->"):
        return "the text opens a comment `<!--` and does not close it"
    return None


def close_fence(text: str) -> str:
    """Close an open code fence at the end of a text."""
    fences = Fences()
    for line in re.split(r"\r\n|\r|\n", text):
        fences.code(line)
    return f"{text}\n{fences.open}" if fences.open else text
