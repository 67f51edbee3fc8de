"""The grid: each item over the versions of the skill, whether it was right, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Literal

from skillc.dataclass import dataclass
from skillc.items.record import Item, Measure, RunItems, Score, SplitName

Mark = Literal["right", "wrong", "unmeasured", "not run"]
Fate = Literal["always right", "newly solved", "lost", "back and forth", "never solved", "not measured"]
FATES: tuple[Fate, ...] = (
    "never solved",
    "newly solved",
    "lost",
    "back and forth",
    "always right",
    "not measured",
)


@dataclass(frozen=True, slots=True)
class GridRow:
    """One item.

    Attributes:
        marks: one for each column.
        flips: how often it changed between right and wrong, from one measured column to the next.
    """

    item: Item
    marks: tuple[Mark, ...]
    flips: int
    fate: Fate


@dataclass(frozen=True, slots=True)
class Grid:
    """The items of a split by one metric.

    Attributes:
        columns: epochs for train, versions for validation, the initial and the compiled skill for test.
        right: the share of measured items that are right, for each column; None without any.
        flips: changes between neighbouring measured columns, and how many such pairs there are.
    """

    split: SplitName
    metric: str
    columns: tuple[str, ...]
    rows: tuple[GridRow, ...]
    right: tuple[Fraction | None, ...]
    flips: tuple[int, int]
    fates: dict[Fate, int]


def grid_of(items: RunItems, split: SplitName, metric: str) -> Grid:
    """Return the grid of a split by a metric."""
    measure = items.measure(metric)
    columns = _columns(items, split)
    rows = []
    for item in items.of(split):
        scores = item.cells[metric]
        marks = tuple(_mark(measure, _first(scores, versions)) for _, versions in columns)
        rows.append(GridRow(item, marks, _flips(marks)[0], _fate(marks)))
    counted = [_flips(row.marks) for row in rows]
    fates = Counter(row.fate for row in rows)
    return Grid(
        split=split,
        metric=metric,
        columns=tuple(name for name, _ in columns),
        rows=tuple(rows),
        right=tuple(_share([row.marks[i] for row in rows]) for i in range(len(columns))),
        flips=(sum(flips for flips, _ in counted), sum(pairs for _, pairs in counted)),
        fates={fate: fates[fate] for fate in FATES if fates[fate]},
    )


def _columns(items: RunItems, split: SplitName) -> list[tuple[str, tuple[int, ...]]]:
    """Return name and versions of each column."""
    if split == "train":
        return [(f"epoch {number}", used) for number, used in items.epochs]
    if split == "validation":
        # A run that trains the description too has versions that were always read, whose rollouts are others.
        own = [item.cells[items.goal] for item in items.of(split)]
        versions = enumerate(items.versions)
        return [(version.place, (i,)) for i, version in versions if any(cells[i] is not None for cells in own)]
    return [("initial", (0,)), *([("compiled", (items.compiled,))] if items.compiled else [])]


def _first(scores: Sequence[Score], versions: Sequence[int]) -> Score:
    """Return the score under the first of some versions that has one: of an epoch, mostly that of its batch."""
    return next((scores[i] for i in versions if scores[i] is not None), None)


def _mark(measure: Measure, score: Score) -> Mark:
    if score is None:
        return "not run"
    if isinstance(score, str):
        return "unmeasured"
    return "right" if measure.is_right(score) else "wrong"


def _flips(marks: Sequence[Mark]) -> tuple[int, int]:
    """Return the changes between neighbouring measured marks, and the number of such pairs."""
    measured = [mark for mark in marks if mark in ("right", "wrong")]
    return sum(one != other for one, other in pairwise(measured)), max(0, len(measured) - 1)


def _fate(marks: Sequence[Mark]) -> Fate:
    measured = [mark == "right" for mark in marks if mark in ("right", "wrong")]
    if not measured:
        return "not measured"
    if all(measured):
        return "always right"
    if not any(measured):
        return "never solved"
    if measured[0] == measured[-1]:
        return "back and forth"
    return "newly solved" if measured[-1] else "lost"


def _share(marks: Sequence[Mark]) -> Fraction | None:
    measured = [mark for mark in marks if mark in ("right", "wrong")]
    return Fraction(measured.count("right"), len(measured)) if measured else None
