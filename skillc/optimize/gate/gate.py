"""Gather the evidence of gates, measure what is missing, and represent a decision."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Literal

from pydantic import JsonValue

from skillc.data.overlap import overlap
from skillc.dataclass import dataclass
from skillc.document.skill import Document, tokens
from skillc.gates.evaluate import decide_all
from skillc.gates.evidence import Evidence, MetricRange, SplitEvidence, TextEvidence
from skillc.gates.intervals import Interval, Truth
from skillc.gates.terms import SkillState, StateTerm, calls
from skillc.models.failures import BudgetReached, EndpointUnreachable
from skillc.optimize.engine import Engine, SearchState
from skillc.optimize.gate.credit import Flips
from skillc.optimize.host import stop_reason
from skillc.optimize.rollouts import Outcome, Rollouts
from skillc.outcomes import MICRO, Cell, Example
from skillc.plan.schema import Plan

Result = Literal["accept", "reject", "beaten", "undecided"]


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of the gates on a candidate, with its evidence.

    Attributes:
        result: `beaten` if the candidate failed no gate but lost to another of its pool.
        blame: the first failed gate in declared order; None if no gate failed.
        beaten_by: rank in the pool of the candidate that beat it.
        of: number of examples of the validation split.
        flips: examples whose goal the candidate changed, as far as measured.
        incumbent, goal: the means of the goal for the incumbent and for the candidate at the decision.
        truths: the truth of each gate, as far as evaluated.
        drawn: the drawing of each failed or undecided gate, with the value of each operand.
        brief: the same on one line.
    """

    result: Result
    blame: str | None
    beaten_by: int | None
    of: int
    flips: Flips
    incumbent: Interval
    goal: Interval
    truths: tuple[tuple[str, str], ...]
    drawn: tuple[tuple[str, str], ...]
    brief: str

    def to_json(self) -> dict[str, JsonValue]:
        """Return values for the history."""
        return {
            "result": self.result,
            "blame": self.blame,
            "evaluated": self.flips.known,
            "of": self.of,
            "gains": len(self.flips.cured),
            "losses": len(self.flips.broke),
            "gates": dict(self.truths),
            "goal": {"incumbent": mean_json(self.incumbent), "candidate": mean_json(self.goal)},
            **({"drawn": dict(self.drawn), "brief": self.brief} if self.drawn else {}),
        }


def mean_json(value: Interval | Fraction | None) -> JsonValue:
    """Write a mean for the history: six digits, or both ends of an open interval."""
    if isinstance(value, Interval):
        if isinstance(value.low, float) or isinstance(value.high, float):
            return None
        return mean_json(value.low) if value.low == value.high else [mean_json(value.low), mean_json(value.high)]
    return None if value is None else f"{float(value):.6f}".rstrip("0").rstrip(".")


Skills = Mapping[SkillState, Document]


def skills_by_name(state: SearchState, candidate: Document) -> Skills:
    """Return the skills that a gate may name."""
    return {"candidate": candidate, "incumbent": state.incumbent, "best": state.best, "initial": state.initial}


def metric_ranges(plan: Plan) -> dict[str, MetricRange]:
    """Return the ranges of all metrics, by name."""
    return {
        m.name: MetricRange(round(m.low * MICRO), round(m.high * MICRO), m.unit, m.rates is not None)
        for m in plan.metrics
    }


def evidence(engine: Engine, known: Skills, batch: Sequence[Example], read: TextEvidence) -> Evidence:
    """Return the current evidence on the given skills; a skill that is not given has no cells."""
    plan = engine.plan
    ranges = metric_ranges(plan)

    def outcome(state: SkillState, example: Example, sample: int) -> Outcome | None:
        skill = known.get(state)
        return engine.rollouts.known(skill, example, sample) if skill is not None else None

    def lookup(state: SkillState, example: Example, sample: int) -> Mapping[str, Cell] | None:
        found = outcome(state, example, sample)
        return found.cells if found is not None else None

    def price(state: SkillState, example: Example, sample: int) -> int | None:
        found = outcome(state, example, sample)
        return found.trajectory.cost if found is not None and found.measured else None

    def split(examples: Sequence[Example], samples: int) -> SplitEvidence:
        return SplitEvidence(
            tuple(examples), samples, lookup, ranges, price, engine.max_rollout_cost, engine.rollouts.holds
        )

    return Evidence(
        validation=split(engine.dataset.validation, plan.optimize.samples),
        batch=split(batch, 1),
        texts=read,
        planned=engine.planned,
        seed=plan.data.seed,
    )


def text_evidence(engine: Engine, known: Skills, change: Fraction | None, base: int | None = None) -> TextEvidence:
    """Return the evidence of gates on the texts of skills.

    `change` is the share of `base` tokens that the candidate changes; None without a candidate.
    """
    terms = [*(gate.term for gate in engine.plan.gates), *(each.term for each in engine.plan.requires)]
    overlaps = [call for term in terms for call in calls(term) if call.function == "overlap"]
    read = {each.state for call in overlaps for each in call.arguments if isinstance(each, StateTerm)}
    train, task = engine.dataset.train, engine.plan.task
    return TextEvidence(
        tokens={name: tokens(skill) for name, skill in known.items()},
        change=change,
        overlap={name: overlap(skill, train, task) for name, skill in known.items() if name in read},
        base=base,
    )


def is_hopeless(engine: Engine, state: SearchState) -> bool:
    """Return whether no candidate can pass: a gate fails before any evidence on the candidate."""
    known: dict[SkillState, Document] = dict(skills_by_name(state, state.incumbent))
    del known["candidate"]
    found = evidence(engine, known, (), text_evidence(engine, known, None))
    gates = [gate for gate in engine.step_gates if gate.stage != "batch"]
    return decide_all(gates, found).truth is Truth.FALSE


def goal_of(engine: Engine, skill: Document) -> Interval:
    """Return the mean of the goal on the whole validation split; unmeasured examples span the goal's range."""
    known = evidence(engine, {"candidate": skill}, (), TextEvidence({}, None)).validation
    column = known.column("candidate", engine.plan.goal.name)
    return known.mean(column.low, column.high)


async def measure_validation(engine: Engine, skill: Document, *, stage: str) -> None:
    """Measure a skill on the whole validation split, all samples; only unmeasured ones are run."""
    samples = range(engine.plan.optimize.samples)
    missing = [engine.rollouts.unmeasured(skill, engine.dataset.validation, sample) for sample in samples]
    engine.observer.stage(stage, sum(map(len, missing)))
    for sample, examples in enumerate(missing):
        await engine.rollouts.measure(skill, examples, stage=stage, sample=sample)


async def measure_arm(
    engine: Engine,
    skill: Document | None,
    examples: Sequence[Example],
    *,
    stage: str,
    what: str,
    rollouts: Rollouts | None = None,
    samples: Sequence[int] | None = None,
) -> bool:
    """Measure a skill for an optional comparison; return whether the budget admitted all of it.

    Args:
        engine: the run.
        skill: None for no skill.
        examples: to measure it on.
        stage: for the ledger.
        what: name of the comparison, for the note if it is skipped.
        rollouts: by default those of the engine.
        samples: by default those of the plan.
    """
    samples = range(engine.plan.optimize.samples) if samples is None else samples
    engine.observer.stage(stage, len(examples) * len(samples))
    try:
        for sample in samples:
            await (rollouts or engine.rollouts).measure(skill, examples, stage=stage, sample=sample)
    except BudgetReached:
        engine.observer.note(f"skipped {what}: the budget does not admit it")
    except EndpointUnreachable as away:
        engine.observer.note(f"skipped {what}: {away.message}")
    except asyncio.CancelledError:
        stop_reason(engine.observer)
    else:
        return True
    return False
