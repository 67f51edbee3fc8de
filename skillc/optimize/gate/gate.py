"""Stage 7: the evidence that the gates of a candidate read, and the decision."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from pydantic import JsonValue

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
from skillc.plan.schema import FieldPlan, TaskPlan

Result = Literal["accept", "reject", "beaten", "undecided"]


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of the gates on a candidate, with its evidence.

    Attributes:
        result: `beaten` is a candidate that lost against another of its pool, without a failed gate.
        blame: the first failed gate in declared order; None if no gate failed.
        beaten_by: rank in the pool of the candidate that beat it.
        of: examples of the validation split.
        flips: what the candidate changed on them, as far as measured.
        incumbent, goal: the means of the goal for the incumbent and for the candidate at the decision.
        truths: the truth of each gate, as far as evaluated.
        drawn: each gate that failed or stayed open, with the value of each operand below it.
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


def evidence(engine: Engine, known: Skills, batch: Sequence[Example], read: TextEvidence) -> Evidence:
    """Return the current evidence on skills; an omitted skill has no cells."""
    plan = engine.plan
    ranges = {m.name: MetricRange(round(m.low * MICRO), round(m.high * MICRO), m.unit) for m in plan.metrics}

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
    """Return what gates read of the texts of skills.

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
    """Return whether no candidate at all can pass: a gate fails without any evidence on the candidate."""
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
    """Measure a skill for a comparison that the run can do without, and return whether the budget admitted all of it.

    Args:
        engine: the run.
        skill: None for no skill.
        examples: to measure it on.
        stage: for the ledger.
        what: the comparison, for the note that it was skipped.
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


RUN = 5
SHORTEST = 2

_BY_ITSELF = r"\u2e80-\U0010ffff"
_WORD = re.compile(rf"(?!_)(?=\w)[{_BY_ITSELF}]|[^\W_{_BY_ITSELF}]+")
_NO_TEXT = frozenset({"labels", "bool", "number", "integer", "file", "image"})

Words = tuple[str, ...]


def overlap(skill: Document, examples: Iterable[Example], task: TaskPlan) -> Fraction:
    """Return the share of a skill's trained words that are copied from a training example, in runs of five words."""
    texts = [words(text) for text in _trained(skill)]
    total = sum(len(text) for text in texts)
    places = _runs(texts)
    if not places:
        return Fraction(0)
    copied: set[tuple[int, int]] = set()
    known = frozenset(word for text in texts for word in text)
    for example in examples:
        for text in example_words(example, task):
            if len(text) < SHORTEST or known.isdisjoint(text):
                continue
            length = min(RUN, len(text))
            runs = {text[i : i + length] for i in range(len(text) - length + 1)}
            for run in runs & places.keys():
                copied.update((text_, i + j) for text_, i in places[run] for j in range(length))
                del places[run]
    return Fraction(len(copied), total)


def words(text: str) -> Words:
    """Return the case-folded words of a text."""
    return tuple(_WORD.findall(text.casefold()))


def example_words(example: Example, task: TaskPlan) -> Iterator[Words]:
    """Yield the words of each text of an example, of inputs and of right answers."""
    for fields, values in ((task.inputs, example.inputs), (task.outputs, example.gold)):
        for field in fields:
            if _is_text(field):
                yield from (words(text) for text in _texts(values.get(field.name)))


def _is_text(field: FieldPlan) -> bool:
    type_ = field.type.item if field.type.kind == "list" and field.type.item is not None else field.type
    return type_.kind not in _NO_TEXT


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)


def _trained(skill: Document) -> Iterator[str]:
    """Yield each rule and each slow section by itself, so that no run spans two of them."""
    for section in skill.sections:
        if section.mode == "slow":
            yield section.text
        elif section.mode == "trainable":
            yield from (rule.text for rule in section.rules)


def _runs(texts: Sequence[Words]) -> dict[Words, list[tuple[int, int]]]:
    """Return the positions of each run of two to five words: (text, first word)."""
    places: dict[Words, list[tuple[int, int]]] = {}
    for number, text in enumerate(texts):
        for length in range(SHORTEST, RUN + 1):
            for i in range(len(text) - length + 1):
                places.setdefault(text[i : i + length], []).append((number, i))
    return places
