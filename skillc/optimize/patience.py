"""When a run has stopped getting anywhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

UNDECIDED_IN_A_ROW = 3

Result = Literal["accept", "reject", "undecided", "empty"]


@dataclass(frozen=True, slots=True)
class Patience:
    """Steps without a gain: each step counts one, an accept that gains enough starts anew, an undecided step is free.

    Attributes:
        limit: steps that may pass, None for no limit.
        min_gain: what accepts must add to the goal since the last restart of the count, in goal points.
        reference: the goal's mean at the last restart.
    """

    limit: int | None
    min_gain: Fraction
    reference: Fraction
    waited: int = 0
    undecided: int = 0

    def after(self, result: Result, goal: Fraction) -> Patience:
        """The state after a step that ended in `result` with the incumbent's goal at `goal`."""
        if result == "undecided":
            return replace(self, undecided=self.undecided + 1)
        if result == "accept" and goal - self.reference >= self.min_gain:
            return replace(self, waited=0, undecided=0, reference=goal)
        return replace(self, waited=self.waited + 1, undecided=0)

    def decided(self) -> Patience:
        """The state after a decision that is no step's: it only ends a row of undecided ones."""
        return replace(self, undecided=0)

    @property
    def reason(self) -> str | None:
        """Why the run ends here, or None."""
        if self.limit is not None and self.waited >= self.limit:
            return "patience"
        if self.undecided >= UNDECIDED_IN_A_ROW:
            return "undecided"
        return None
