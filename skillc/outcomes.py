"""Examples and the outcomes of rollouts on them: a score, or an infrastructure failure.

Scores are integers in millionths, so that sums do not depend on the order of arrival (docs/design/gates.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from fractions import Fraction
from typing import Literal

from skillc.dataclass import dataclass
from skillc.json_values import JsonObject

MICRO = 1_000_000


@dataclass(frozen=True, slots=True)
class Example:
    """One data item, with JSON values.

    Attributes:
        id: stable name: the row's `id`, else a hash of its content. Unique over all splits.
        inputs: by name of the task's inputs.
        gold: by name of the task's outputs. Of a list any value is right, unless the output is a list.
        fields: by name of the program's data fields.
        group: the split group, the example's id if the program declares none.
        labels: texts for inputs that are not text, by name: an image's name and size.
    """

    id: str
    inputs: JsonObject
    gold: JsonObject
    fields: JsonObject
    group: str
    labels: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)


UnmeasuredKind = Literal["transport", "empty", "cut", "judge", "tool", "environment", "agent", "user"]
"""What failed: the connection to a model, its reply (empty, or cut off), a judge, a server of tools, the process of an
environment, a command-line agent, or the model that plays a user."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A measured score in millionths of the metric's unit."""

    value: int


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """An infrastructure failure, which is never a score."""

    kind: UnmeasuredKind


Cell = Scored | Unmeasured


@dataclass(frozen=True, slots=True)
class ArmScore:
    """The mean of a metric of one skill over its `n` fully measured examples; None if there are none."""

    mean: Fraction | None
    n: int


def measured_mean(scores: Iterable[int | None], *, samples: int = 1) -> ArmScore:
    """Return the mean over measured examples, for display. Gates divide by the number of all examples.

    Args:
        scores: the sum over the samples of each example, in millionths; None if one of them was not measured.
        samples: rollouts per example.
    """
    measured = [score for score in scores if score is not None]
    count = len(measured)
    return ArmScore(Fraction(sum(measured), count * samples * MICRO) if measured else None, count)
