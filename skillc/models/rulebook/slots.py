"""Where a rule of rulebook's may stand: among the clear signs, which come first, or among the hints."""

from __future__ import annotations

from dataclasses import dataclass

from skillc.models.rulebook.briefs import Brief, Case
from skillc.models.rulebook.induce import Book, deciding, normals

CLEAR = "Clear signs"
HINTS = "Hints"


@dataclass(frozen=True, slots=True, order=True)
class Slot:
    """A place for a rule among the clear signs.

    Attributes:
        index: of the rule that it would push down.
        after: what an edit must say to put a rule there: the id before it, or `start`.
    """

    index: int
    after: str


def last_slot(brief: Brief) -> Slot:
    """Behind all clear signs, before all hints."""
    clear = [i for i, rule in enumerate(brief.rules) if rule.topic == CLEAR]
    return Slot(clear[-1] + 1, brief.rules[clear[-1]].id) if clear else Slot(0, "start")


def slot_for(brief: Brief, book: Book, case: Case) -> Slot:
    """The last slot in which a rule could decide a case that another rule decides now."""
    last = last_slot(brief)
    line = deciding(brief.lines, normals(case))
    if line is None or line[1].default or line[0] not in book.index:
        return last
    index = book.index[line[0]]
    return last if index >= last.index else Slot(index, brief.rules[index - 1].id if index else "start")


def slot_of(brief: Brief, book: Book, after: str) -> Slot:
    """The slot that an edit's `after` speaks of."""
    if after == "start":
        return Slot(0, "start")
    return Slot(book.index[after] + 1, after) if after in book.index else last_slot(brief)
