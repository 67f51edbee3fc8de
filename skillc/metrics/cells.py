"""The outcome of one metric on one rollout: a score, or the fact that it could not be measured.

Scores are integers of a millionth, so that sums do not depend on the order of arrival (ENGINE section 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MICRO = 1_000_000

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
