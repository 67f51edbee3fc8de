"""Which examples a skill gets wrong, wholly or in part; what was not measured is no failure."""

from __future__ import annotations

from collections.abc import Iterable

from skillc.data.example import Example
from skillc.document.skill import Document
from skillc.metrics.cells import MICRO
from skillc.optimize.engine import Engine


def failing(engine: Engine, skill: Document, examples: Iterable[Example]) -> list[Example]:
    """The examples on which the skill's goal was measured and is below the best value, in their order."""
    goal = engine.plan.goal
    scored = ((example, engine.rollouts.score(skill, example, goal.name)) for example in examples)
    return [example for example, score in scored if score is not None and score < goal.high * MICRO]
