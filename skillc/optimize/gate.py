"""Stage 7: the declared gates on one candidate, cheapest evidence first, decided as soon as they can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from pydantic import JsonValue

from skillc.data.example import Example
from skillc.document.change import change
from skillc.document.skill import Document, tokens
from skillc.errors import SkillcError
from skillc.language.terms import State as LanguageState
from skillc.metrics.cells import MICRO, Cell
from skillc.optimize.engine import Engine, State
from skillc.optimize.evidence import Evidence, Range, SplitEvidence, TextEvidence
from skillc.optimize.gates import decide, decide_all
from skillc.optimize.intervals import Truth
from skillc.optimize.order import validation_order
from skillc.optimize.rollouts import Rollouts
from skillc.plan.schema import GatePlan, Plan

REQUEUES = 2

Result = Literal["accept", "reject", "undecided"]


@dataclass(frozen=True, slots=True)
class Decision:
    """What the gates say, and on what evidence.

    Attributes:
        blame: the first gate, in declared order, that does not hold; None where all hold or none is known to fail.
        evaluated: validation rollouts of the candidate that were known when the answer was.
        gains, losses: validation examples on which the candidate's goal was above, below the incumbent's.
        truths: by gate, as far as it was looked at.
    """

    result: Result
    blame: str | None
    evaluated: int
    of: int
    gains: int
    losses: int
    truths: tuple[tuple[str, str], ...]
    evidence: Evidence

    def to_json(self) -> dict[str, JsonValue]:
        """Pure values for the journal."""
        return {
            "result": self.result,
            "blame": self.blame,
            "evaluated": self.evaluated,
            "of": self.of,
            "gains": self.gains,
            "losses": self.losses,
            "gates": dict(self.truths),
        }


class Trial:
    """One candidate before its gates."""

    def __init__(
        self, engine: Engine, state: State, candidate: Document, batch: Sequence[Example], *, slow: bool
    ) -> None:
        self._engine = engine
        self._state = state
        self._candidate = candidate
        self._batch = tuple(batch)
        self.gates = gates_for(engine.plan, slow=slow)
        order = validation_order(
            engine.dataset.validation,
            lambda example: engine.rollouts.score(state.incumbent, example, engine.plan.goal.name),
            seed=engine.plan.data.seed,
        )
        self._cells = [(example, sample) for sample in range(engine.plan.optimize.samples) for example in order]

    async def decide(self) -> Decision:
        """Runs the stages in turn; the answer is that of full evaluation, and comes as early as it can."""
        for stage in ("text", "batch"):
            gates = [gate for gate in self.gates if gate.stage == stage]
            if stage == "batch" and gates:
                self._engine.observer.stage("gate on batch", len(self._batch))
                await self._engine.rollouts.measure(self._candidate, self._batch, stage="gate")
            if self._truth(gates) is Truth.FALSE:
                return self._decision("reject")
        return await self._validate()

    async def _validate(self) -> Decision:
        waves = [self._cells[i : i + self._engine.wave] for i in range(0, len(self._cells), self._engine.wave)]
        self._engine.observer.stage("gate", len(self._cells))
        for wave in [[], *waves]:
            await self._send(wave)
            decided = self._settled()
            if decided is not None:
                return decided
        for _ in range(REQUEUES):
            await self._send([cell for cell in self._cells if not self._measured(cell)])
            decided = self._settled()
            if decided is not None:
                return decided
        return self._decision("undecided")

    async def _send(self, cells: Sequence[tuple[Example, int]]) -> None:
        for sample in sorted({sample for _, sample in cells}):
            examples = [example for example, s in cells if s == sample]
            await self._engine.rollouts.measure(self._candidate, examples, stage="gate", sample=sample)

    def _measured(self, cell: tuple[Example, int]) -> bool:
        outcome = self._engine.rollouts.known(self._candidate, *cell)
        return outcome is not None and outcome.measured

    def _settled(self) -> Decision | None:
        truth = self._truth(self.gates)
        if truth is Truth.TRUE:
            return self._decision("accept")
        return self._decision("reject") if truth is Truth.FALSE else None

    def _truth(self, gates: Sequence[GatePlan]) -> Truth:
        return decide_all(gates, self.evidence()).truth

    def evidence(self) -> Evidence:
        """All that is known now."""
        states = skills(self._state, self._candidate)
        texts = TextEvidence(
            tokens={name: tokens(skill) for name, skill in states.items()},
            change=change(self._state.incumbent, self._candidate),
        )
        return evidence(self._engine, states, self._batch, texts)

    def _decision(self, result: Result) -> Decision:
        found = self.evidence()
        decided = decide_all(self.gates, found)
        gains, losses, known = compare(self._engine, self._candidate, self._state.incumbent)
        return Decision(
            result=result,
            blame=decided.blame if result == "reject" else None,
            evaluated=known,
            of=len(self._engine.dataset.validation),
            gains=gains,
            losses=losses,
            truths=tuple((name, truth.name.lower()) for name, truth in decided.truths),
            evidence=found,
        )


Skills = Mapping[LanguageState, Document]


def skills(state: State, candidate: Document) -> Skills:
    """The skills that a gate may name."""
    return {"candidate": candidate, "incumbent": state.incumbent, "best": state.best, "initial": state.initial}


def evidence(engine: Engine, known: Skills, batch: Sequence[Example], texts: TextEvidence) -> Evidence:
    """What is known of skills now; a state that is left out has no cells."""
    plan = engine.plan
    ranges = {m.name: Range(round(m.low * MICRO), round(m.high * MICRO)) for m in plan.metrics}

    def lookup(state: LanguageState, example: Example, sample: int) -> Mapping[str, Cell] | None:
        skill = known.get(state)
        outcome = engine.rollouts.known(skill, example, sample) if skill is not None else None
        return outcome.cells if outcome is not None else None

    def price(state: LanguageState, example: Example, sample: int) -> int | None:
        skill = known.get(state)
        outcome = engine.rollouts.known(skill, example, sample) if skill is not None else None
        return outcome.cost if outcome is not None else None

    return Evidence(
        validation=SplitEvidence(tuple(engine.dataset.validation), plan.optimize.samples, lookup, ranges, price),
        batch=SplitEvidence(tuple(batch), 1, lookup, ranges, price),
        texts=texts,
        planned=engine.planned,
        seed=plan.data.seed,
    )


def hopeless(engine: Engine, state: State) -> bool:
    """Whether no candidate at all could pass: a gate already fails with nothing known about one."""
    known: dict[LanguageState, Document] = dict(skills(state, state.incumbent))
    del known["candidate"]
    unknown = TextEvidence({name: tokens(skill) for name, skill in known.items()}, None)
    found = evidence(engine, known, (), unknown)
    gates = [gate for gate in gates_for(engine.plan, slow=False) if gate.stage != "batch"]
    return decide_all(gates, found).truth is Truth.FALSE


def check_requires(engine: Engine, state: State) -> None:
    """Decides each `require` on the baseline.

    Raises:
        SkillcError: one does not hold; it is named with its text.
    """
    states = skills(state, state.initial)
    texts = TextEvidence({name: tokens(skill) for name, skill in states.items()}, Fraction(0))
    found = evidence(engine, states, (), texts)
    for require in engine.plan.requires:
        if decide(require.term, found) is not Truth.TRUE:
            raise SkillcError(f"`require {require.name}` does not hold for the initial skill: {require.text}")


def gates_for(plan: Plan, *, slow: bool) -> tuple[GatePlan, ...]:
    """The gates that a candidate must pass: for a slow update those marked `for slow`, where there are any."""
    own = tuple(gate for gate in plan.gates if gate.for_ == "slow")
    if slow and own:
        return own
    return tuple(gate for gate in plan.gates if gate.for_ is None)


def compare(engine: Engine, candidate: Document, incumbent: Document) -> tuple[int, int, int]:
    """Validation examples on which the candidate gains, loses, and on which it was measured."""
    gains = losses = known = 0
    goal = engine.plan.goal.name
    for example in engine.dataset.validation:
        after = engine.rollouts.score(candidate, example, goal)
        before = engine.rollouts.score(incumbent, example, goal)
        if after is None or before is None:
            continue
        known += 1
        gains += after > before
        losses += after < before
    return gains, losses, known


async def complete(engine: Engine, skill: Document, *, stage: str) -> None:
    """Measures a skill on the whole validation split, all samples."""
    rollouts: Rollouts = engine.rollouts
    engine.observer.stage(stage, len(engine.dataset.validation) * engine.plan.optimize.samples)
    for sample in range(engine.plan.optimize.samples):
        await rollouts.measure(skill, engine.dataset.validation, stage=stage, sample=sample)
