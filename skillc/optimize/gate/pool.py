"""Race the candidates of a pool: measure all in lockstep on one example order until one or none remains."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from skillc.document.change import base_of_change, change
from skillc.document.skill import Document, digest
from skillc.gates.draw import brief, draw, gate_state
from skillc.gates.evaluate import decide_all
from skillc.gates.evidence import Evidence
from skillc.gates.intervals import Interval, Truth
from skillc.gates.stages import reads_batch
from skillc.gates.terms import SkillState
from skillc.models.concurrency import gather
from skillc.optimize.engine import Engine, SearchState
from skillc.optimize.gate.credit import flips
from skillc.optimize.gate.gate import Decision, Result, evidence, mean_json, skills_by_name, text_evidence
from skillc.optimize.host import CandidateProgress
from skillc.outcomes import Example
from skillc.plan.schema import GatePlan

REQUEUES = 2

Cell = tuple[Example, int]
_STATES: tuple[SkillState, ...] = ("incumbent", "best", "initial")


async def race(
    engine: Engine,
    state: SearchState,
    candidates: Sequence[Document],
    batch: Sequence[Example],
    *,
    gates: Sequence[GatePlan] | None = None,
    first_wave: Callable[[], None] | None = None,
) -> list[Decision]:
    """Decide a pool of distinct candidates against the incumbent, in order; at most one is accepted.

    A candidate leaves when a gate fails, or when it can no longer reach the goal of another that passes all gates. Of
    those that pass, the one with the highest goal is accepted; ties go to fewer tokens, then to the earlier candidate.
    Winner and decisions equal those of full evaluation.

    `batch` contains the training examples for gates on the batch. By default the gates are the plan's gates for steps.
    `first_wave` is called once, right before the first wave on validation is sent, if any.
    """
    pool = _Pool(engine, state, candidates, batch, gates)
    if pool.reject_by("text") or await pool.on_batch():
        return pool.decisions()
    await pool.on_validation(first_wave)
    return pool.decisions()


async def take_best(
    engine: Engine,
    state: SearchState,
    candidates: Sequence[Document],
    batch: Sequence[Example],
    *,
    gates: Sequence[GatePlan] | None = None,
    first_wave: Callable[[], None] | None = None,
) -> list[Decision]:
    """Accept the candidate of a pool with the highest goal, whatever its gates decide (`accept = always`).

    The gates are still recorded, to compare the two arms. All candidates are measured on the whole validation split;
    one with an unmeasured example is `undecided`. `first_wave` is never called.
    """
    pool = _Pool(engine, state, candidates, batch, gates)
    await pool.on_everything()
    return pool.decisions()


def passes_text_gates(
    engine: Engine, state: SearchState, candidate: Document, gates: Sequence[GatePlan] | None = None
) -> bool:
    """Return whether a candidate passes the gates that read only texts, which need no rollout."""
    return not _Pool(engine, state, [candidate], (), gates).reject_by("text")


class _Racer:
    """One candidate with its evidence; `rank` is its index in the pool."""

    def __init__(self, rank: int, candidate: Document, known: Evidence, gates: Sequence[GatePlan], goal: str) -> None:
        self.rank = rank
        self.candidate = candidate
        self.evidence = known
        self.result: Result | None = None
        self.beaten_by: int | None = None
        self._gates = gates
        self._goal = goal
        self._definite: dict[str, Truth] = {}

    def truth(self, stage: str | None = None) -> Truth:
        """Evaluate the gates, or those of one stage; definite truths are kept."""
        gates = [gate for gate in self._gates if stage in (None, gate.stage)]
        decided = decide_all(gates, self.evidence, self._definite)
        self._definite.update((name, truth) for name, truth in decided.truths if truth is not Truth.UNKNOWN)
        return decided.truth

    def goal(self, state: SkillState = "candidate") -> Interval:
        """Return the mean of the goal on the current evidence."""
        split = self.evidence.validation
        column = split.column(state, self._goal)
        return split.mean(column.low, column.high)

    def progress(self) -> CandidateProgress:
        """Return its evidence for display; an example counts once all of its samples are measured."""
        split = self.evidence.validation
        own, old = split.column("candidate", self._goal), split.column("incumbent", self._goal)
        known = (own.low == own.high) & (old.low == old.high)
        gains, losses = int((known & (own.low > old.low)).sum()), int((known & (own.low < old.low)).sum())
        self.truth()
        unknown = Truth.UNKNOWN
        gates = [
            gate_state(gate.name, self._definite.get(gate.name, unknown), gate.term, self.evidence)
            for gate in self._gates
        ]
        return CandidateProgress(
            self.rank + 1, gains, losses, int(known.sum()), len(split.examples), mean_json(self.goal()), tuple(gates)
        )

    @property
    def tie_break(self) -> tuple[int, int]:
        """Fewer tokens, then the earlier candidate."""
        return self.evidence.texts.tokens["candidate"] or 0, self.rank

    def cannot_beat(self, other: _Racer) -> bool:
        """Return whether its goal can no longer exceed that of `other`, which passes all gates."""
        best, theirs = self.goal().high, other.goal().low
        return theirs > best or (theirs == best and other.tie_break < self.tie_break)


class _Pool:
    """The candidates of one decision."""

    def __init__(
        self,
        engine: Engine,
        state: SearchState,
        candidates: Sequence[Document],
        batch: Sequence[Example],
        gates: Sequence[GatePlan] | None,
    ) -> None:
        self._engine, self._state, self._batch = engine, state, tuple(batch)
        self._gates = engine.step_gates if gates is None else gates
        self._racers = [self._racer(rank, candidate) for rank, candidate in enumerate(candidates)]

    def _racer(self, rank: int, candidate: Document) -> _Racer:
        known = skills_by_name(self._state, candidate)
        parent = self._state.incumbent
        read = text_evidence(self._engine, known, change(parent, candidate), base_of_change(parent))
        goal = self._engine.plan.goal.name
        return _Racer(rank, candidate, evidence(self._engine, known, self._batch, read), self._gates, goal)

    @property
    def _racing(self) -> list[_Racer]:
        return [racer for racer in self._racers if racer.result is None]

    def reject_by(self, stage: str) -> bool:
        """Reject candidates that fail a gate of this stage; return True if none remain."""
        for racer in self._racing:
            if racer.truth(stage) is Truth.FALSE:
                racer.result = "reject"
        return not self._racing

    async def on_batch(self) -> bool:
        """Decide the gates on the training batch, wave by wave; return True if no candidate remains."""
        reading = [gate for gate in self._gates if reads_batch(gate.term)]
        if not (self._batch and reading):
            return self.reject_by("batch")
        self._engine.observer.stage("gate on batch", len(self._batch) * len(self._racing))
        # A gate that also reads validation is decided later, on the whole batch.
        whole = any(gate.stage == "validation" for gate in reading)
        order = self._ordered(self._batch)
        for start in range(0, len(order), self._engine.wave):
            wave = order[start : start + self._engine.wave]
            await gather([self._engine.rollouts.measure(racer.candidate, wave, stage="gate") for racer in self._racing])
            for racer in self._racing:
                racer.evidence.batch.refresh("candidate", wave)
            if self.reject_by("batch"):
                return True
            if not whole and all(racer.truth("batch") is Truth.TRUE for racer in self._racing):
                return False
        return self.reject_by("batch")

    async def on_validation(self, first_wave: Callable[[], None] | None) -> None:
        """Decide the gates on validation, wave by wave; unmeasured cells are sent again twice."""
        if self._settled():
            return
        cells = self._cells()
        again: Sequence[tuple[Document, list[Cell]]] = self._unmeasured_before()
        self._engine.observer.stage("gate", len(cells) * len(self._racing) + sum(len(own) for _, own in again))
        if first_wave is not None:
            first_wave()
        for start in range(0, len(cells), self._engine.wave):
            wave = cells[start : start + self._engine.wave]
            await self._send({racer.rank: wave for racer in self._racing}, again)
            again = ()
            self._engine.observer.seen([racer.progress() for racer in self._racing])
            if self._settled():
                return
        for _ in range(REQUEUES):
            missing = {racer.rank: self._missing(racer, cells) for racer in self._racing}
            if not any(missing.values()):
                break
            self._engine.observer.stage("gate again", sum(map(len, missing.values())))
            await self._send(missing, ())
            self._engine.observer.seen([racer.progress() for racer in self._racing])
            if self._settled():
                return
        self._accept_best([racer for racer in self._racing if racer.truth() is Truth.TRUE])

    async def on_everything(self) -> None:
        """Measure all candidates on all of validation, unmeasured cells up to three times, and accept the best."""
        cells = self._cells()
        for attempt in range(1 + REQUEUES):
            missing = {racer.rank: self._missing(racer, cells) for racer in self._racers}
            if not any(missing.values()):
                break
            again = self._unmeasured_before()
            count = sum(map(len, missing.values())) + sum(len(own) for _, own in again)
            self._engine.observer.stage("gate again" if attempt else "gate", count)
            await self._send(missing, again)
        self._accept_best([racer for racer in self._racers if not self._missing(racer, cells)])

    def _cells(self) -> list[Cell]:
        order = self._ordered(self._engine.dataset.validation)
        return [(example, sample) for sample in range(self._engine.plan.optimize.samples) for example in order]

    def _ordered(self, examples: Sequence[Example]) -> list[Example]:
        engine, state = self._engine, self._state
        return validation_order(
            examples,
            lambda example: engine.rollouts.score(state.incumbent, example, engine.plan.goal.name),
            seed=engine.plan.data.seed,
            flips=lambda example: state.counters.flips.get(example.id, 0),
        )

    def _unmeasured_before(self) -> list[tuple[Document, list[Cell]]]:
        """Return the failed cells of the incumbent and the best skill, which are retried once a step."""
        engine, state = self._engine, self._state
        known = {digest(skill): skill for skill in (state.incumbent, state.best)}
        return [
            (
                skill,
                [
                    (example, sample)
                    for example in engine.dataset.validation
                    for sample in range(engine.plan.optimize.samples)
                    if (outcome := engine.rollouts.known(skill, example, sample)) and not outcome.measured
                ],
            )
            for skill in known.values()
        ]

    def _missing(self, racer: _Racer, cells: Sequence[Cell]) -> list[Cell]:
        known = self._engine.rollouts.known
        return [cell for cell in cells if (outcome := known(racer.candidate, *cell)) is None or not outcome.measured]

    async def _send(self, cells: dict[int, list[Cell]], again: Sequence[tuple[Document, list[Cell]]]) -> None:
        """Send cells of candidates (by rank) and of other skills concurrently, and wait for all of them."""
        measure = self._engine.rollouts.measure
        jobs = [*((self._racers[rank].candidate, own) for rank, own in cells.items()), *again]
        await gather(
            [
                measure(skill, [example for example, s in own if s == sample], stage="gate", sample=sample)
                for skill, own in jobs
                for sample in sorted({sample for _, sample in own})
            ]
        )
        repeated = [example for _, own in again for example, _ in own]
        for racer in self._racing:
            racer.evidence.validation.refresh("candidate", [example for example, _ in cells.get(racer.rank, ())])
            for state in _STATES if repeated else ():
                racer.evidence.validation.refresh(state, repeated)

    def _settled(self) -> bool:
        """Drop candidates that fail a gate or cannot beat another; return whether the race is over."""
        holding = []
        for racer in self._racing:
            truth = racer.truth()
            if truth is Truth.FALSE:
                racer.result = "reject"
            elif truth is Truth.TRUE:
                holding.append(racer)
        for racer in self._racing:
            ahead = next((other for other in holding if other is not racer and racer.cannot_beat(other)), None)
            if ahead is not None:
                racer.result, racer.beaten_by = "beaten", ahead.rank
        left = self._racing
        if len(left) == 1 and left[0] in holding:
            left[0].result = "accept"
        return not self._racing

    def _accept_best(self, fit: Sequence[_Racer]) -> None:
        """End the race: accept the candidate of `fit` with the highest lower bound of its goal; defer the others."""
        best = min(fit, key=lambda racer: (-racer.goal().low, racer.tie_break), default=None)
        for racer in self._racing:
            if racer is best:
                racer.result = "accept"
            elif best is not None and racer in fit:
                racer.result, racer.beaten_by = "beaten", best.rank
            else:
                racer.result = "undecided"

    def decisions(self) -> list[Decision]:
        """Return the decision of each candidate, in order."""
        return [self._decision(racer) for racer in self._racers]

    def _decision(self, racer: _Racer) -> Decision:
        assert racer.result is not None
        decided = decide_all(self._gates, racer.evidence)
        blame = decided.blame if racer.result == "reject" else None
        truths = dict(decided.truths)
        open_ = [gate for gate in self._gates if truths[gate.name] is Truth.UNKNOWN]
        failed = [gate for gate in self._gates if gate.name == blame]
        explained = failed or (open_ if racer.result == "undecided" else [])
        return Decision(
            result=racer.result,
            blame=blame,
            beaten_by=racer.beaten_by,
            of=len(self._engine.dataset.validation),
            flips=flips(self._engine, racer.candidate, self._state.incumbent),
            incumbent=racer.goal("incumbent"),
            goal=racer.goal(),
            truths=tuple((name, truth.name.lower()) for name, truth in decided.truths),
            drawn=tuple((gate.name, draw(gate.term, racer.evidence)) for gate in explained),
            brief="; ".join(brief(gate.term, racer.evidence) for gate in explained),
        )


def validation_order(
    examples: Sequence[Example],
    score: Callable[[Example], int | None],
    *,
    seed: int,
    flips: Callable[[Example], int] = lambda example: 0,
) -> list[Example]:
    """Sort examples by the incumbent's score, failures first; ties by flips, then by sha256(seed, example).

    Failures come first because a candidate that cures none of them cannot be better. Examples on which the incumbent is
    unmeasured come last, because they decide nothing. `flips` counts the earlier candidates whose score differed from
    the incumbent's: the next candidate's probably differs there too.
    """

    def key(example: Example) -> tuple[bool, int, int, bytes]:
        known = score(example)
        digest = hashlib.sha256(f"{seed}\0{example.id}".encode()).digest()
        return known is None, known or 0, -flips(example), digest

    return sorted(examples, key=key)
