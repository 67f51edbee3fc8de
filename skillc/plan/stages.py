"""The stages of a run, and the least of them that makes sense."""

from __future__ import annotations

from dataclasses import dataclass, field

from skillc.plan.spend import Bound, Spend


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of the loop, over the whole run.

    Attributes:
        role: whose calls it makes: `target`, `optimizer`, `both`, or `all`.
    """

    name: str
    role: str
    bound: Bound

    @property
    def each_step(self) -> bool:
        """Whether it grows with the number of steps."""
        return self.name not in ("preflight", "baseline", "final test", "no skill")


@dataclass(frozen=True, slots=True)
class Least:
    """The least a run with something to show must pay: a baseline, whole decisions, the final test of two skills.

    Before it each model that is reached over a network is tried once.

    Attributes:
        once: training rollouts where the decisions go through the training split more than once: an incumbent that
            stays is not run again on what it is known for. `rollouts` is then nothing.
    """

    baseline: Spend
    once: Spend
    decisions: int
    rollouts: Spend
    reflections: Spend
    on_batch: Spend
    validation: Spend
    test: Spend
    preflight: Spend = field(default_factory=Spend)

    @property
    def decision(self) -> Spend:
        """One whole decision."""
        return self.rollouts + self.reflections + self.on_batch + self.validation

    @property
    def total(self) -> Spend:
        """All of it."""
        return self.preflight + self.baseline + self.once + self.decision * self.decisions + self.test
