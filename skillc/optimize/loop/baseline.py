"""Work before the first decision: measure the baseline, check the `require`s, measure the null arm.

Validation examples that cannot be measured are quarantined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from skillc.budget.steps import patience_of
from skillc.dataclass import dataclass
from skillc.document.skill import Document
from skillc.errors import SkillcError
from skillc.gates.evaluate import decide
from skillc.gates.intervals import Interval, Truth
from skillc.gates.terms import MetricTerm, calls
from skillc.optimize.engine import Engine, SearchState, mean_score
from skillc.optimize.gate.gate import evidence, measure_validation, skills_by_name, text_evidence
from skillc.optimize.null_arm import measure_null_arm, regression_notes
from skillc.optimize.rollouts import Outcome, failure_kind
from skillc.optimize.schedule import Patience
from skillc.outcomes import Example, Scored
from skillc.plan.judges import reads_judge
from skillc.plan.schema import MetricPlan, Plan

RETRIES = 2
MOST_QUARANTINED = Fraction(1, 20)
# The second measurement for `flip_rate`: its stage in the ledger, and the number of attempts.
_STAGE = "second measurement"
_ATTEMPTS = 3


async def begin(
    engine: Engine, initial: Document, *, begun: SearchState | None = None
) -> tuple[Engine, SearchState, tuple[str, ...]]:
    """Measure the baseline, check the `require`s, set the reserve aside, and measure a null arm that runs first.

    `begun` is as in `train`.

    Returns:
        The engine, the first state and the quarantined ids.

    Raises:
        BudgetReached: the caps do not admit the baseline.
        EndpointUnreachable: the target stayed unreachable.
        PermanentFailure, MetricError, SkillcError: the run cannot continue.
    """
    engine, quarantined = await baseline(engine, initial)
    state = first_state(engine, initial)
    if begun is not None:
        state = replace(state, initial=begun.initial, decisions=begun.decisions, accepted=begun.accepted)
    await check_requires(engine, state)
    engine.reserve.set_aside()
    if engine.null_arm == "first" and begun is None:
        state = replace(state, null_arm=await measure_null_arm(engine, initial))
    return engine, state, quarantined


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
    for note in regression_notes(engine, initial):
        engine.observer.note(note)
    return engine, ids


async def try_again(engine: Engine, skill: Document) -> None:
    """Retry the unmeasured validation examples of a skill once."""
    lost = _unmeasured(engine, skill)
    if lost:
        engine.observer.stage("baseline again", len(lost) * engine.plan.optimize.samples)
    for sample in range(engine.plan.optimize.samples if lost else 0):
        await engine.rollouts.measure(skill, lost, stage="baseline", sample=sample)


def _stopped(engine: Engine, skill: Document, lost: Sequence[Example]) -> SkillcError:
    """Describe which model failed, how often, and the first failure."""
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
        example for example in engine.dataset.validation if not engine.rollouts.is_measured(skill, example, samples)
    ]


def first_state(engine: Engine, initial: Document) -> SearchState:
    """Return the state after the baseline."""
    budget = engine.plan.budget
    goal = mean_score(engine, initial, engine.plan.goal.name) or Fraction(0)
    patience = Patience(patience_of(engine.plan, len(engine.dataset.train)), budget.min_gain, goal)
    return SearchState(initial, initial, initial, patience)


# ---- requires --------------------------------------------------------------------------------------


async def check_requires(engine: Engine, state: SearchState) -> None:
    """Check each `require` on the baseline, and on a second measurement if one reads `flip_rate`.

    Raises:
        SkillcError: one does not hold.
        PermanentFailure, BudgetReached, MetricError: from models and metrics.
    """
    if not engine.plan.requires:
        return
    known = skills_by_name(state, state.initial)
    flips = await measure_flips(engine, state.initial)
    found = evidence(engine, known, (), text_evidence(engine, known, Fraction(0)))
    found = replace(found, flips={name: each.rate for name, each in flips.items()})
    for require in engine.plan.requires:
        if decide(require.term, found) is not Truth.TRUE:
            message = f"`require {require.name}` does not hold for the initial skill: {require.text}"
            read = [call.arguments[0] for call in calls(require.term) if call.function == "flip_rate"]
            counts = [
                f"`{each.name}` differs on {flips[each.name].differing} of {flips[each.name].measured} examples"
                for each in read
                if isinstance(each, MetricTerm)
            ]
            hint = "ask a panel of judges, or write clearer levels; `temperature = 0` alone is no remedy"
            raise SkillcError("; ".join([message, *counts]), hint=hint if counts else None)


@dataclass(frozen=True, slots=True)
class FlipCount:
    """Counts of examples on which a second measurement differs from the first.

    Attributes:
        differing: examples on which it differs.
        measured: examples with both.
        examples: all examples.
    """

    differing: int
    measured: int
    examples: int

    @property
    def rate(self) -> Interval:
        """The share of all examples as an interval: an example without both measurements may or may not differ."""
        if not self.examples:
            return Interval(Fraction(0), Fraction(1))
        missing = self.examples - self.measured
        return Interval(Fraction(self.differing, self.examples), Fraction(self.differing + missing, self.examples))


def flipping_metrics(plan: Plan) -> tuple[MetricPlan, ...]:
    """Return the metrics whose flip rate a `require` reads."""
    read = (call for each in plan.requires for call in calls(each.term) if call.function == "flip_rate")
    named = {call.arguments[0].name for call in read if isinstance(call.arguments[0], MetricTerm)}
    return tuple(metric for metric in plan.metrics if metric.name in named)


async def measure_flips(engine: Engine, skill: Document) -> Mapping[str, FlipCount]:
    """Measure a skill again on validation; return the flips by metric, empty if no `require` reads them.

    For a metric that reads a judge the same rollouts are judged again, for any other the examples are rolled out again.

    Raises:
        PermanentFailure, BudgetReached, MetricError: from models and metrics.
    """
    wanted = flipping_metrics(engine.plan)
    if not wanted:
        return {}
    examples, plan = engine.dataset.validation, engine.plan
    judged = {metric.name for metric in wanted if reads_judge(plan, metric)}
    rolled = {metric.name for metric in wanted} - judged
    engine.observer.stage(_STAGE, len(examples) * (bool(judged) + bool(rolled)))
    second: dict[str, list[Outcome | None]] = {}
    if judged:
        found = await engine.rollouts.judge_again(skill, examples, stage=_STAGE, attempts=_ATTEMPTS)
        second |= dict.fromkeys(judged, found)
    if rolled:
        sample = plan.optimize.samples
        for _ in range(_ATTEMPTS):
            todo = engine.rollouts.unmeasured(skill, examples, sample)
            await engine.rollouts.measure(skill, todo, stage=_STAGE, sample=sample)
        again = [engine.rollouts.known(skill, example, sample) for example in examples]
        second |= dict.fromkeys(rolled, again)
    first = [engine.rollouts.known(skill, example) for example in examples]
    return {metric.name: _compared(metric.name, first, second[metric.name]) for metric in wanted}


def _compared(metric: str, first: list[Outcome | None], second: list[Outcome | None]) -> FlipCount:
    pairs = [(_score(metric, one), _score(metric, other)) for one, other in zip(first, second, strict=True)]
    both = [(one, other) for one, other in pairs if one is not None and other is not None]
    return FlipCount(sum(one != other for one, other in both), len(both), len(pairs))


def _score(metric: str, outcome: Outcome | None) -> int | None:
    cell = outcome.cells.get(metric) if outcome is not None else None
    return cell.value if isinstance(cell, Scored) else None
