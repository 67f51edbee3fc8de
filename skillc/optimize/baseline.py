"""Before the first step: the initial skill on the whole validation split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from skillc.data.example import Example
from skillc.document.skill import Document
from skillc.errors import SkillcError
from skillc.optimize.engine import Engine, mean
from skillc.optimize.gate import complete
from skillc.optimize.rollouts import failure_kind

RETRIES = 2
MOST_QUARANTINED = Fraction(1, 20)


async def baseline(engine: Engine, initial: Document) -> tuple[Engine, tuple[str, ...]]:
    """The engine without the examples that cannot be measured, and their ids.

    Raises:
        SkillcError: more than 5 % of the validation split stays unmeasured.
    """
    await complete(engine, initial, stage="baseline")
    lost: Sequence[Example] = ()
    for _ in range(RETRIES):
        lost = _unmeasured(engine, initial)
        if not lost:
            return engine, ()
        for sample in range(engine.plan.optimize.samples):
            await engine.rollouts.measure(initial, lost, stage="baseline", sample=sample)
    lost = _unmeasured(engine, initial)
    total = len(engine.dataset.validation)
    if Fraction(len(lost), total) > MOST_QUARANTINED or mean(engine, initial, engine.plan.goal.name) is None:
        outcome = engine.rollouts.known(initial, lost[0])
        kind = failure_kind(outcome) if outcome else None
        raise SkillcError(
            f"{len(lost)} of {total} validation examples could not be measured with the initial skill "
            f"({kind or 'transport'}; the first is `{lost[0].id}`)",
            hint="more than 5 % is too much to go on; see that the target model answers, then run the same command",
        )
    ids = tuple(example.id for example in lost)
    engine.observer.note(
        f"{len(lost)} of {total} validation examples stay unmeasured and are left out: {', '.join(ids)}"
    )
    kept = tuple(example for example in engine.dataset.validation if example.id not in set(ids))
    return replace(engine, dataset=replace(engine.dataset, validation=kept)), ids


def _unmeasured(engine: Engine, skill: Document) -> list[Example]:
    samples = range(engine.plan.optimize.samples)
    return [
        example
        for example in engine.dataset.validation
        if not all((o := engine.rollouts.known(skill, example, s)) and o.measured for s in samples)
    ]
