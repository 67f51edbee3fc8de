"""Stage 2: what the optimizer learns from the batch, failures and successes apart, all minibatches at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skillc.optimize.briefing import briefing
from skillc.optimize.contrast import Measured, confusion, failures_of, held_out, near_rights, right_otherwise, rights_of
from skillc.optimize.engine import Engine, Place, State
from skillc.optimize.lapses import reminders, without_lapses
from skillc.optimize.lookups import GLANCE, Library, ask_with_lookups
from skillc.optimize.prompting import Kind, TrajectoryView, reflect_messages
from skillc.optimize.proposals import Proposal, check_edits, read_proposals
from skillc.optimize.replies import ReflectReply
from skillc.optimize.rollouts import gather
from skillc.optimize.rule_counts import Mark, read_marks
from skillc.optimize.sight import ids_by_tag, trajectory_views


@dataclass(frozen=True, slots=True)
class Reflection:
    """What one minibatch taught.

    Attributes:
        kind: which cases its reader saw.
        proposals: its edits.
        lapses: how many of its cases were lapses.
        marks: rules that helped or misled.
        unexplained: ids of cases for which it found no rule.
        summary: what its reader says of the causes.
    """

    kind: Kind
    proposals: tuple[Proposal, ...] = ()
    lapses: int = 0
    marks: tuple[Mark, ...] = ()
    unexplained: tuple[str, ...] = ()
    summary: str = ""


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
        optimize, optimizer = self._engine.plan.optimize, self._engine.optimizer
        messages = self._messages()
        if optimize.lookups:
            reply = await ask_with_lookups(
                optimizer, messages, self._library(), optimize.lookups, sample=sample, check=self._check
            )
        else:
            reply = await optimizer.ask(ReflectReply, messages, stage="reflect", sample=sample, check=self._check)
        return self._read(reply) if reply is not None else Reflection(self._kind)

    def _messages(self) -> Sequence[Mapping[str, str]]:
        optimize = self._engine.plan.optimize
        limit = min(GLANCE, optimize.trajectory_limit) if optimize.lookups else optimize.trajectory_limit
        return reflect_messages(
            kind=self._kind,
            trajectories=self._views(self._part, limit),
            right=self._views(self._contrast, limit, "k"),
            confusion=confusion(self._engine.plan, self._all) if self._kind == "failures" else (),
            kept_back=self._kept_back,
            edit_budget=self._edits,
            lapses=optimize.lapses and self._kind == "failures",
            rule_counts=optimize.rule_counts,
            lookups=optimize.lookups,
            others=len(self._all) - len(self._part),
            **briefing(self._engine, self._state),
        )

    def _views(self, pairs: Sequence[Measured], limit: int | None, letter: str = "t") -> list[TrajectoryView]:
        right = right_otherwise(self._engine, self._state.incumbent, pairs)
        return trajectory_views(self._engine.plan, pairs, limit=limit, letter=letter, right=right)

    def _library(self) -> Library:
        views = self._views([pair for pair in self._all if pair[1].measured], None)
        return Library({view.tag: view for view in views}, self._engine.plan.optimize.trajectory_limit)

    def _check(self, reply: ReflectReply) -> None:
        check_edits(self._state.incumbent, reply.edits)

    def _read(self, reply: ReflectReply) -> Reflection:
        optimize = self._engine.plan.optimize
        ids = ids_by_tag(self._part)
        edits, lapses = list(reply.edits), reply.lapses if optimize.lapses and self._kind == "failures" else ()
        if lapses:
            # The budget is one for both; what cites more cases comes first, and the optimizer's own order breaks ties.
            edits = sorted([*without_lapses(edits, lapses), *reminders(lapses)], key=lambda edit: -len(edit.cures))
        marks = read_marks(reply.marks, self._state.incumbent, ids) if optimize.rule_counts else ()
        proposals = read_proposals(edits[: self._edits], ids)
        lapsed = {tag for lapse in lapses for tag in lapse.cases if tag in ids}
        unexplained = tuple(ids[tag] for tag in reply.unexplained if tag in ids) if self._kind == "failures" else ()
        return Reflection(self._kind, tuple(proposals), len(lapsed), marks, unexplained, reply.summary)


def _parts(pairs: Sequence[Measured], size: int) -> list[Sequence[Measured]]:
    return [pairs[i : i + size] for i in range(0, len(pairs), size)]
