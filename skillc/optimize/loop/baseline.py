"""Measure the initial skill, quarantine validation examples that cannot be measured, and warn of noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from math import sqrt

from skillc.document.skill import Document
from skillc.errors import SkillcError
from skillc.gates.terms import CallTerm, Constant, MetricTerm, conjuncts, sides
from skillc.optimize.engine import Engine, mean_score
from skillc.optimize.gate.gate import measure_validation
from skillc.optimize.rollouts import Outcome, failure_kind
from skillc.outcomes import MICRO, Example
from skillc.plan.schema import Plan

RETRIES = 2
MOST_QUARANTINED = Fraction(1, 20)


async def baseline(engine: Engine, initial: Document) -> tuple[Engine, tuple[str, ...]]:
    """Return the engine without the examples that cannot be measured, and their ids.

    Raises:
        SkillcError: more than 5 % of the validation split stays unmeasured, or a script fails its tests.
    """
    await engine.scripts.require(initial)
    await measure_validation(engine, initial, stage="baseline")
    for _ in range(RETRIES):
        await try_again(engine, initial)
    lost = _unmeasured(engine, initial)
    total = len(engine.dataset.validation)
    if Fraction(len(lost), total) > MOST_QUARANTINED or mean_score(engine, initial, engine.plan.goal.name) is None:
        raise _stopped(engine, initial, lost)
    ids = tuple(example.id for example in lost)
    if lost:
        engine.observer.note(
            f"excluded {_counted(len(lost), total)}, which could not be measured with the initial skill: "
            f"{', '.join(ids)} ({_kinds(engine, initial, lost)})"
        )
    kept = tuple(example for example in engine.dataset.validation if example.id not in set(ids))
    engine = replace(engine, dataset=replace(engine.dataset, validation=kept))
    warn_of_noise(engine, initial)
    return engine, ids


async def try_again(engine: Engine, skill: Document) -> None:
    """Run the unmeasured validation examples of a skill once more."""
    lost = _unmeasured(engine, skill)
    if lost:
        engine.observer.stage("baseline again", len(lost) * engine.plan.optimize.samples)
    for sample in range(engine.plan.optimize.samples if lost else 0):
        await engine.rollouts.measure(skill, lost, stage="baseline", sample=sample)


def _stopped(engine: Engine, skill: Document, lost: Sequence[Example]) -> SkillcError:
    """Describe which model failed, how and how often, with the first failure."""
    who, kind, detail = first_failure(engine, skill, lost[:1])
    return SkillcError(
        f"{_counted(len(lost), len(engine.dataset.validation))} could not be measured with the initial skill: {who} "
        f"failed ({_kinds(engine, skill, lost)}); the first is `{lost[0].id}`: {detail or kind}",
        hint=f"a run continues with at most 5 % unmeasured; {_HINTS.get(kind, _HINTS['transport'])}",
    )


_HINTS = {
    "transport": "check that the model answers, then run the same command again",
    "empty": "raise `max_tokens` in the model's block, so that the answer fits after its reasoning",
    "cut": "raise `max_tokens` in the model's block",
    "judge": "check that the judge's model answers, then run the same command again",
}


def first_failure(engine: Engine, skill: Document, examples: Sequence[Example]) -> tuple[str, str, str]:
    """Return which model failed first on some examples, the kind of the failure, and its message."""
    failures = [failure for example in examples if (failure := _failure(engine, skill, example)) is not None]
    kind, _, detail = failures[0].feedback.partition(": ") if failures else ("transport", "", "")
    if failures and failures[0].failure:
        kind, detail = "judge", failures[0].failure
    who = "a judge" if kind == "judge" else f"model `target` (`{engine.plan.models['target'].model}`)"
    return who, kind, detail


def _kinds(engine: Engine, skill: Document, lost: Sequence[Example]) -> str:
    found = [_failure(engine, skill, example) for example in lost]
    counts = Counter(failure_kind(outcome) or "transport" if outcome else "transport" for outcome in found)
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def _failure(engine: Engine, skill: Document, example: Example) -> Outcome | None:
    """Return the first unmeasured outcome of an example."""
    outcomes = (engine.rollouts.known(skill, example, sample) for sample in range(engine.plan.optimize.samples))
    return next((outcome for outcome in outcomes if outcome is not None and not outcome.measured), None)


def _counted(count: int, total: int) -> str:
    return f"{count} of {total} validation examples"


def _unmeasured(engine: Engine, skill: Document) -> list[Example]:
    samples = range(engine.plan.optimize.samples)
    return [
        example
        for example in engine.dataset.validation
        if not all((o := engine.rollouts.known(skill, example, s)) and o.measured for s in samples)
    ]


def warn_of_noise(engine: Engine, skill: Document) -> None:
    """Warn of each gate on regressions that a skill would not pass against itself (docs/design/statistics.md)."""
    for gate, metric, most in tolerances(engine.plan):
        rate = self_regression(engine, skill, metric)
        if rate is None:
            continue
        expected = float(rate) / sqrt(engine.plan.optimize.samples)
        if expected > most:
            engine.observer.note(
                f"the initial skill regresses against itself by {expected:.1%} from run to run, and the gate "
                f"`{gate}` admits {float(most):.1%}: it will reject by chance; lower the "
                "target's temperature, or raise `samples`"
            )


def self_regression(engine: Engine, skill: Document, metric: str) -> Fraction | None:
    """Return the A/A rate: what a skill loses against itself between two rollouts, as `regressed` counts it.

    It is the mean over validation examples of half the distance between samples 0 and 1, since half of the
    differences are losses; None if no example has both. Between means of k samples it is smaller by the root of k.
    """
    score = engine.rollouts.score
    distances = [
        abs(second - first)
        for example in engine.dataset.validation
        if (first := score(skill, example, metric, 0)) is not None
        and (second := score(skill, example, metric, 1)) is not None
    ]
    return Fraction(sum(distances), 2 * len(distances) * MICRO) if distances else None


def tolerances(plan: Plan) -> Iterator[tuple[str, str, Fraction]]:
    """Yield gate, metric and bound of each gate's `regressed(metric) <= bound`."""
    for gate in plan.gates:
        for part in conjuncts(gate.term):
            match sides(part):
                case (Constant(most), CallTerm("regressed", (MetricTerm(metric),))):
                    yield gate.name, metric, most
