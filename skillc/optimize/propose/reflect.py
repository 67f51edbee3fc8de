"""Ask the optimizer what a batch teaches: one reflection a minibatch, all at once, failures and successes apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from skillc.optimize.engine import Engine, Place, State
from skillc.optimize.propose.cases import briefing, ids_by_tag, trajectory_views
from skillc.optimize.propose.contrast import (
    Measured,
    confusion,
    failures_of,
    held_out,
    near_rights,
    right_otherwise,
    rights_of,
)
from skillc.optimize.propose.prompting import Kind, Messages, ReflectRequest, TrajectoryView, reflect_messages
from skillc.optimize.propose.proposals import Proposal, check_edits, read_proposals
from skillc.optimize.propose.replies import ProposedEdit, ReflectReply
from skillc.optimize.rollouts import gather
from skillc.optimize.strategies.mechanism import Ask, Question


@dataclass(frozen=True, slots=True)
class Reflection:
    """What one minibatch taught.

    Attributes:
        kind: which cases its reader saw.
        proposals: its edits.
        unexplained: ids of cases for which it found no rule.
        summary: what its reader says of the causes.
        reply: the whole reply, None if there is none.
        ids: of its cases, by their tags in the reply.
    """

    kind: Kind
    proposals: tuple[Proposal, ...] = ()
    unexplained: tuple[str, ...] = ()
    summary: str = ""
    reply: ReflectReply | None = None
    ids: Mapping[str, str] = field(default_factory=dict)


async def reflect(
    engine: Engine, state: State, measured: Sequence[Measured], place: Place, edits: int, *, first: int = 0
) -> list[Reflection]:
    """One reflection of each minibatch, in minibatch order: failures first, then successes.

    Rollouts that were not measured are left out: nobody knows whether they failed. `first` is the ordinal of the first
    minibatch in this step.
    """
    optimize = engine.plan.optimize
    failures, successes = failures_of(engine.plan, measured), rights_of(engine.plan, measured)
    held = held_out(failures)
    seen = [pair for pair in failures if pair not in held]
    jobs: list[tuple[Kind, Sequence[Measured]]] = [("failures", part) for part in _parts(seen, optimize.minibatch)]
    if optimize.successes and failures:
        jobs += [("successes", part) for part in _parts(successes, optimize.minibatch)]
    engine.observer.stage("reflect", len(jobs))
    reflectors = [_Reflector(engine, state, *job, measured, edits, kept_back=bool(held)) for job in jobs]
    return await gather([each.run((place.epoch, place.step, i)) for i, each in enumerate(reflectors, first)])


class _Reflector:
    """One minibatch before the optimizer."""

    def __init__(
        self,
        engine: Engine,
        state: State,
        kind: Kind,
        part: Sequence[Measured],
        batch: Sequence[Measured],
        edits: int,
        *,
        kept_back: bool,
    ) -> None:
        self._engine, self._state, self._kind, self._edits = engine, state, kind, edits
        self._part, self._kept_back = part, kept_back
        # What may be looked up: the minibatch under its own names, then the rest of the batch.
        own = {example.id for example, _ in part}
        self._all = [*part, *(pair for pair in batch if pair[0].id not in own)]
        rights = rights_of(engine.plan, self._all) if kind == "failures" else []
        self._contrast = near_rights(engine, part, rights, engine.plan.optimize.minibatch)

    async def run(self, sample: tuple[int, ...]) -> Reflection:
        ask: Ask = _ask_once
        for mechanism in self._engine.mechanisms:
            ask = mechanism.asking(ask)
        reply = await ask(self._engine, Question(self._messages(), self._whole_views, sample, self._check))
        return self._read(reply) if reply is not None else Reflection(self._kind)

    def _messages(self) -> Messages:
        limit = self._engine.plan.optimize.trajectory_limit
        for mechanism in self._engine.mechanisms:
            limit = mechanism.shown_tokens(limit)
        request = ReflectRequest(
            kind=self._kind,
            trajectories=self._views(self._part, limit),
            edit_budget=self._edits,
            right=self._views(self._contrast, limit, "k"),
            confusion=confusion(self._engine.plan, self._all) if self._kind == "failures" else (),
            kept_back=self._kept_back,
            others=len(self._all) - len(self._part),
        )
        for mechanism in self._engine.mechanisms:
            request = mechanism.request(request)
        return reflect_messages(briefing(self._engine, self._state), request)

    def _views(self, pairs: Sequence[Measured], limit: int | None, letter: str = "t") -> list[TrajectoryView]:
        right = right_otherwise(self._engine, self._state.incumbent, pairs)
        return trajectory_views(self._engine.plan, pairs, limit=limit, letter=letter, right=right)

    def _whole_views(self) -> Mapping[str, TrajectoryView]:
        views = self._views([pair for pair in self._all if pair[1].measured], None)
        return {view.tag: view for view in views}

    def _check(self, reply: ReflectReply) -> None:
        check_edits(self._state.incumbent, reply.edits)

    def _read(self, reply: ReflectReply) -> Reflection:
        ids = ids_by_tag(self._part)
        edits: Sequence[ProposedEdit] = reply.edits
        for mechanism in self._engine.mechanisms:
            edits = mechanism.edits(self._kind, reply, edits)
        proposals = read_proposals(list(edits[: self._edits]), ids)
        unexplained = tuple(ids[tag] for tag in reply.unexplained if tag in ids) if self._kind == "failures" else ()
        return Reflection(self._kind, tuple(proposals), unexplained, reply.summary, reply, ids)


async def _ask_once(engine: Engine, question: Question) -> ReflectReply | None:
    return await engine.optimizer.ask(
        ReflectReply, question.messages, stage="reflect", sample=question.sample, check=question.check
    )


def _parts(pairs: Sequence[Measured], size: int) -> list[Sequence[Measured]]:
    return [pairs[i : i + size] for i in range(0, len(pairs), size)]
