"""Examples, and the cells that rollouts on them fill: a score, or the fact that it could not be measured.

Scores are integers of a millionth, so that sums do not depend on the order of arrival (docs/design/gates.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from skillc.json_values import JsonObject

MICRO = 1_000_000


@dataclass(frozen=True, slots=True)
class Example:
    """One data item, with values as JSON has them.

    Attributes:
        id: stable name: the row's own `id`, else a hash of its content. Unique over all splits.
        inputs: by name of the task's inputs.
        gold: by name of the task's outputs; a gold value that is a list means: any of them is right, unless the
            output itself is a list.
        fields: by name of the data fields that the program declares.
        group: the split group, the example's own id where the program names none.
    """

    id: str
    inputs: JsonObject
    gold: JsonObject
    fields: JsonObject
    group: str


UnmeasuredKind = Literal["transport", "empty", "cut", "judge"]


@dataclass(frozen=True, slots=True)
class Scored:
    """A measured score in millionths of the metric's unit."""

    value: int


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """An infrastructure failure: never a score, and never the worst score."""

    kind: UnmeasuredKind


Cell = Scored | Unmeasured


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of a metric over the `n` examples that were measured; None where none was."""

    value: Fraction | None
    n: int


def measured_mean(scores: Iterable[int | None], *, samples: int = 1) -> Mean:
    """Return the mean over what was measured: displayed, and never the side of a gate, whose denominator is fixed.

    Args:
        scores: of each example the sum over its samples, in millionths; None where one of them was not measured.
        samples: rollouts per example.
    """
    measured = [score for score in scores if score is not None]
    count = len(measured)
    return Mean(Fraction(sum(measured), count * samples * MICRO) if measured else None, count)
