"""How triggers and labels are written: quotes, commas, `one of`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

QUOTES = [('"', '"')] * 6 + [("“", "”"), ("'", "'"), ("`", "`"), ("**", "**"), ("*", "*"), ("«", "»"), ("‘", "’")]
BARE = ("", "")


@dataclass(frozen=True, slots=True)
class Style:
    """How one document writes its lists and labels."""

    trigger: tuple[str, str]
    label: tuple[str, str]
    every: str
    last: str
    opener: str

    def triggers(self, written: Sequence[str]) -> str:
        """Several triggers as one list; `written` are the triggers, marked if need be."""
        left, right = self.trigger
        quoted = [f"{left}{each}{right}" for each in written]
        if len(quoted) == 1:
            return quoted[0]
        joined = self.every.join(quoted[:-1]) + self.last + quoted[-1]
        return f"{self.opener}{joined}"

    def answer(self, label: str) -> str:
        """A label as the document writes it."""
        return f"{self.label[0]}{label}{self.label[1]}"


# Between all triggers, and before the last.
JOINS = [(", ", " or ")] * 4 + [(", ", ", or "), (", ", ", "), (" or ", " or "), (" / ", " / "), (", ", " and/or ")]
OPENERS = [""] * 5 + ["one of ", "any of ", "either ", "any one of "]


def style(chance: random.Random) -> Style:
    """A style at random; in a third of all cases as the rulebook writes."""
    if chance.random() < 0.33:
        bare = chance.random() < 0.4
        return Style(BARE if bare else ('"', '"'), BARE, ", ", " or ", "one of " if bare else "")
    every, last = chance.choice(JOINS)
    return Style(
        chance.choice([*QUOTES, BARE, BARE, BARE, BARE]),
        chance.choice([BARE] * 8 + QUOTES),
        every,
        last,
        chance.choice(OPENERS),
    )
