"""The edits that turn one text into another, as few lines of it as can be."""

from __future__ import annotations

from difflib import SequenceMatcher

from lsprotocol import types

from skillc.lsp.positions import Positions
from skillc.syntax.source import Span


def line_edits(positions: Positions, old: str, new: str) -> list[types.TextEdit]:
    """Replacements of whole lines; none where the texts are equal."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    offsets = [0]
    for line in before:
        offsets.append(offsets[-1] + len(line))
    found = []
    for tag, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            place = positions.range(Span(offsets[a], offsets[b]))
            found.append(types.TextEdit(place, "".join(after[c:d])))
    return found
