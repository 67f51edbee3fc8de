"""Reflect on each minibatch of a batch, and aggregate the proposals of all reflections into one list.

Proposals of different reflections conflict if they change the same rule, cite the same case, or have similar texts
apart from the answers. Conflicting ones go through a merge tree of fan-in 8, with the cases that they cite; the others
are merged without a call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from itertools import permutations, zip_longest

from skillc.budget.steps import FAN_IN, MOST_CITED
from skillc.dataclass import dataclass
from skillc.document.edits import Add, Replace
from skillc.models.concurrency import gather
from skillc.optimize.engine import Engine, Position, SearchState
from skillc.optimize.propose.cases import (
    Measured,
    briefing,
    confusion,
    failures_of,
    held_out,
    ids_by_tag,
    near_successes,
    rendered_calls,
    successes_of,
    successful_reruns,
    trajectory_view,
    trajectory_views,
)
from skillc.optimize.propose.near import Alike
from skillc.optimize.propose.prompting import (
    Kind,
    Messages,
    PatchView,
    ReflectRequest,
    TrajectoryView,
    aggregate_messages,
    reflect_messages,
)
from skillc.optimize.propose.proposals import Proposal, as_proposed, check_edits, read_proposals, unite, wording
from skillc.optimize.propose.replies import AggregateReply, ProposedEdit, ReflectReply
from skillc.optimize.strategies.mechanism import Ask, ReflectionPrompt


@dataclass(frozen=True, slots=True)
class Reflection:
    """The reflection on one minibatch.

    Attributes:
        unexplained: ids of cases for which it found no rule.
        summary: its explanation of the causes.
        ids: of its cases, by their tags in the reply.
    """

    kind: Kind
    proposals: tuple[Proposal, ...] = ()
    unexplained: tuple[str, ...] = ()
    summary: str = ""
    reply: ReflectReply | None = None
    ids: Mapping[str, str] = field(default_factory=dict)


async def reflect(
    engine: Engine, state: SearchState, measured: Sequence[Measured], position: Position, edits: int, *, first: int = 0
) -> list[Reflection]:
    """Reflect on each minibatch of the measured rollouts: failures first, then successes.

    `first` is the ordinal of the first minibatch in the step.
    """
    optimize = engine.plan.optimize
    failures, successes = failures_of(engine.plan, measured), successes_of(engine.plan, measured)
    held = held_out(failures)
    seen = [pair for pair in failures if pair not in held]
    jobs: list[tuple[Kind, Sequence[Measured]]] = [("failures", part) for part in _parts(seen, optimize.minibatch)]
    if optimize.successes and failures:
        jobs += [("successes", part) for part in _parts(successes, optimize.minibatch)]
    engine.observer.stage("reflect", len(jobs))
    reflectors = [_Reflector(engine, state, *job, measured, edits, kept_back=bool(held)) for job in jobs]
    return await gather([each.run((position.epoch, position.step, i)) for i, each in enumerate(reflectors, first)])


class _Reflector:
    """The reflection on one minibatch."""

    def __init__(
        self,
        engine: Engine,
        state: SearchState,
        kind: Kind,
        part: Sequence[Measured],
        batch: Sequence[Measured],
        edits: int,
        *,
        kept_back: bool,
    ) -> None:
        self._engine, self._state, self._kind, self._edits = engine, state, kind, edits
        self._part, self._kept_back = part, kept_back
        # Trajectories for lookups: the minibatch under its own tags, then the rest of the batch.
        own = {example.id for example, _ in part}
        self._all = [*part, *(pair for pair in batch if pair[0].id not in own)]
        rights = successes_of(engine.plan, self._all) if kind == "failures" else []
        self._contrast = near_successes(engine, part, rights, engine.plan.optimize.minibatch)

    async def run(self, sample: tuple[int, ...]) -> Reflection:
        async def ask_once(engine: Engine, prompt: ReflectionPrompt) -> ReflectReply | None:
            return await engine.optimizer.ask(
                ReflectReply, prompt.messages, stage="reflect", sample=prompt.sample, check=prompt.check
            )

        ask: Ask = ask_once
        for mechanism in self._engine.mechanisms:
            ask = mechanism.wrap_ask(ask)
        reply = await ask(self._engine, ReflectionPrompt(self._messages(), self._whole_views, sample, self._check))
        return self._read(reply) if reply is not None else Reflection(self._kind)

    def _messages(self) -> Messages:
        limit = self._engine.plan.optimize.trajectory_limit
        for mechanism in self._engine.mechanisms:
            limit = mechanism.trajectory_tokens(limit)
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
        right = successful_reruns(self._engine, self._state.incumbent, pairs)
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
        shown = self._all if any(each.name == "lookups" for each in self._engine.mechanisms) else self._part
        read = frozenset(example.id for example, _ in (*shown, *self._contrast))
        proposals = [replace(each, read=read) for each in read_proposals(list(edits[: self._edits]), ids)]
        unexplained = tuple(ids[tag] for tag in reply.unexplained if tag in ids) if self._kind == "failures" else ()
        return Reflection(self._kind, tuple(proposals), unexplained, reply.summary, reply, ids)


def _parts(pairs: Sequence[Measured], size: int) -> list[Sequence[Measured]]:
    return [pairs[i : i + size] for i in range(0, len(pairs), size)]


# Two texts are similar if they share at least this part of their words. In recorded runs, unrelated rules of different
# reflections stay below 0.25.
_ALIKE = 0.5


@dataclass(frozen=True, slots=True)
class _List:
    """The proposals merged so far, from failures or from successes, and their summaries."""

    kind: Kind
    proposals: list[Proposal]
    summary: str = ""


async def aggregate(
    engine: Engine, state: SearchState, reflections: Sequence[Reflection], position: Position, edits: int
) -> list[Proposal]:
    """Return one list without duplicates: the merged conflicting proposals, then the others in order.

    Lists are merged within their kind until one call can contain the rest, which resolves conflicts of failures with
    successes. Without a readable merge all proposals are kept, equal ones united.
    """
    every = unite([proposal for reflection in reflections for proposal in reflection.proposals])
    disputed = _disputed(engine, state, reflections)
    if not disputed:
        return every
    parts = [(r, [p for p in unite(r.proposals) if wording(p.edit) in disputed]) for r in reflections]
    level = [_List(r.kind, proposals, r.summary) for r, proposals in parts if proposals]
    ordinal = 0
    while len(level) > 1:
        groups = _groups(level)
        engine.observer.stage("aggregate", sum(len(group) > 1 for group in groups))
        level = await gather(
            [_merge(engine, state, group, position, ordinal + i, edits) for i, group in enumerate(groups)]
        )
        ordinal += len(groups)
    return unite([*level[0].proposals, *(p for p in every if wording(p.edit) not in disputed)])


def _disputed(engine: Engine, state: SearchState, reflections: Sequence[Reflection]) -> frozenset[str]:
    """Return the wordings of proposals that conflict with another reflection's; equal ones do not conflict."""
    readers = [unite(reflection.proposals) for reflection in reflections]
    texts = [[_condition(engine, proposal) for proposal in each] for each in readers]
    # Words that the proposals and the skill's rules repeat are style, not subject.
    indexes = [Alike(each, [rule.text for rule in state.incumbent.rules]) for each in texts]
    found: set[str] = set()
    for one, other in permutations(range(len(readers)), 2):
        for first, text in zip(readers[one], texts[one], strict=True):
            for second, share in zip(readers[other], indexes[other].within(text), strict=True):
                names = {wording(first.edit), wording(second.edit)}
                if len(names) > 1 and (share >= _ALIKE or _touch(first, second)):
                    found |= names
    return frozenset(found)


def _touch(first: Proposal, second: Proposal) -> bool:
    """Return whether two proposals change the same rule or cite the same case."""
    same = not isinstance(first.edit, Add) and not isinstance(second.edit, Add) and first.edit.rule == second.edit.rule
    return same or bool(set(first.cures) & set(second.cures))


def _condition(engine: Engine, proposal: Proposal) -> str:
    """Return the text of an edit without labels and field names, so that rules with opposite answers are similar."""
    text = proposal.edit.text if isinstance(proposal.edit, Add | Replace) else ""
    task = engine.plan.task
    names = [field.name for field in (*task.inputs, *task.outputs)]
    names += [label for field in task.outputs for label in field.type.labels]
    return re.sub(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)", " ", text)


def _groups(level: Sequence[_List]) -> list[list[_List]]:
    """Group the lists for one round: all if one call can contain them, else by kind, failures first."""
    if len(level) <= FAN_IN:
        return [sorted(level, key=lambda part: part.kind != "failures")]
    kinds: tuple[Kind, ...] = ("failures", "successes")
    by_kind = ([part for part in level if part.kind == kind] for kind in kinds)
    return [parts[i : i + FAN_IN] for parts in by_kind for i in range(0, len(parts), FAN_IN)]


async def _merge(
    engine: Engine, state: SearchState, group: Sequence[_List], position: Position, ordinal: int, edits: int
) -> _List:
    if len(group) == 1:
        return group[0]
    kind: Kind = "failures" if any(part.kind == "failures" for part in group) else "successes"
    together = unite([proposal for part in group for proposal in part.proposals])
    cited = _cited(together)
    tags = {example: f"t{i}" for i, example in enumerate(cited, 1)}
    messages = aggregate_messages(
        briefing(engine, state),
        patches=[
            PatchView(part.kind, part.summary, [as_proposed(proposal, tags) for proposal in part.proposals])
            for part in group
        ],
        cases=_views(engine, state, {example: tags[example] for example in cited[:MOST_CITED]}),
        most=len(together),
        edit_budget=edits,
    )
    reply = await engine.optimizer.ask(
        AggregateReply,
        messages,
        stage="aggregate",
        sample=(position.epoch, position.step, ordinal),
        check=lambda merged: check_edits(state.incumbent, merged.edits),
    )
    if reply is None:
        return _List(kind, together)
    ids = {tag: example for example, tag in tags.items()}
    merged = [_with_author(proposal, together) for proposal in read_proposals(reply.edits[: len(together)], ids)]
    return _List(kind, unite(merged) or together, " ".join(part.summary for part in group if part.summary))


def _cited(proposals: Sequence[Proposal]) -> list[str]:
    """Return the ids of the cases that proposals cite, in turns."""
    turns = zip_longest(*(proposal.cures for proposal in proposals))
    return list(dict.fromkeys(name for turn in turns for name in turn if name is not None))


def _views(engine: Engine, state: SearchState, tags: Mapping[str, str]) -> list[TrajectoryView]:
    plan, by_id = engine.plan, {example.id: example for example in engine.dataset.train}
    known = {name: engine.rollouts.known(state.incumbent, by_id[name]) for name in tags}
    limit = plan.optimize.trajectory_limit
    return [
        replace(trajectory_view(plan, tags[n], by_id[n], o, limit=limit), trajectory=rendered_calls(plan, o, limit))
        for n, o in known.items()
        if o is not None
    ]


def _with_author(merged: Proposal, proposals: Sequence[Proposal]) -> Proposal:
    """Set the examples that the author of a merged proposal has seen.

    Its author is that of the proposal with the same wording. A new wording has all authors whose cases it cites, or
    all authors if it cites none.
    """
    same = [each for each in proposals if wording(each.edit) == wording(merged.edit)]
    citing = [each for each in proposals if set(each.cures) & set(merged.cures)]
    authors = same or citing or proposals
    read = frozenset().union(*(each.read for each in proposals))
    return replace(merged, seen=frozenset().union(*(each.seen for each in authors)), read=read)
