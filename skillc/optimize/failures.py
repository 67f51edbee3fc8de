"""Which examples a skill gets wrong, wholly or in part; what was not measured is no failure."""

from __future__ import annotations

from collections.abc import Iterable

from skillc.data.examples import Example
from skillc.document.skill import Document
from skillc.metrics.cells import MICRO, Scored
from skillc.optimize.engine import Engine
from skillc.optimize.rollouts import Outcome
from skillc.plan.schema import Plan


def is_failure(plan: Plan, outcome: Outcome) -> bool | None:
    """Whether the goal fell short of its best value, None where it was not measured."""
    goal = outcome.cells[plan.goal.name]
    return goal.value < plan.goal.high * MICRO if isinstance(goal, Scored) else None


def failing(engine: Engine, skill: Document, examples: Iterable[Example]) -> list[Example]:
    """The examples on which the skill's goal was measured and is below the best value, in their order."""
    known = ((example, engine.rollouts.known(skill, example)) for example in examples)
    return [example for example, outcome in known if outcome is not None and is_failure(engine.plan, outcome)]


def is_right(engine: Engine, skill: Document, example: Example) -> bool:
    """Return whether every sample of an example was measured and has the goal's best value."""
    samples, goal = engine.plan.optimize.samples, engine.plan.goal
    total = engine.rollouts.total(skill, example, goal.name, samples=samples)
    return total is not None and total >= goal.high * MICRO * samples
