"""Ask the optimizer what a batch teaches: one reflection a minibatch, with lookups and lapses if they are on.

The protocol is the prompt's own, so any model can follow it: a reply `{"lookup": ...}` is a question, and each turn is
an ordinary question to the optimizer with a sample of its own, under the same ledger and cache.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from skillc.optimize.ask import Messages, Optimizer
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
from skillc.optimize.propose.prompting import HitView, Kind, TrajectoryView, lookup_messages, reflect_messages
from skillc.optimize.propose.proposals import Proposal, check_edits, read_proposals
from skillc.optimize.propose.replies import LapseReply, LookReply, Lookup, ProposedEdit, ReflectReply
from skillc.optimize.rollouts import gather
from skillc.optimize.strategies.rule_counts import Mark, read_marks
from skillc.plan.initial import REMINDERS
from skillc.text import counted
from skillc.tokens import count_tokens


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


# Tokens of an input that a prompt shows of its own trajectories where the rest can be looked up.
GLANCE = 200
MOST_HITS = 12
_AROUND_HIT = 80


@dataclass(frozen=True)
class Library:
    """The trajectories of a batch, whole, as far as the program lets the optimizer see them.

    Attributes:
        views: by tag, in order.
        part: tokens of one part.
    """

    views: Mapping[str, TrajectoryView]
    part: int

    def parts(self, tag: str) -> list[str]:
        """One trajectory in parts of about `part` tokens each."""
        text = _whole(self.views[tag])
        size = self._size(text)
        return [text[i : i + size] for i in range(0, len(text), size)]

    def _size(self, text: str) -> int:
        """Characters of one part."""
        return max(1, len(text) * self.part // max(1, count_tokens(text)))

    def listed(self) -> list[HitView]:
        """Every trajectory with its score, its number of parts and how it begins."""
        return [
            HitView(tag, len(self.parts(tag)), view.score, view.gold, _beginning(view))
            for tag, view in self.views.items()
        ]

    def found(self, text: str) -> list[HitView]:
        """Where a text first stands in each trajectory that holds it, ignoring case: the part, and what is around."""
        wanted, hits = re.compile(re.escape(text.strip()), re.IGNORECASE), []
        for tag, view in self.views.items():
            whole = _whole(view)
            place = wanted.search(whole)
            if place:
                excerpt = whole[max(0, place.start() - _AROUND_HIT) : place.end() + _AROUND_HIT]
                number = place.start() // self._size(whole) + 1
                hits.append(HitView(tag, number, view.score, view.gold, " ".join(excerpt.split())))
        return hits

    def answer(self, lookup: Lookup) -> tuple[list[HitView], str]:
        """What a question gives: trajectories, and a text beside them or instead of them."""
        if lookup.op == "list":
            return self.listed(), f"{len(self.views)} trajectories"
        if lookup.op == "search":
            hits = self.found(lookup.text)
            more = f", the first {MOST_HITS} are shown" if len(hits) > MOST_HITS else ""
            return hits[:MOST_HITS], f"{len(hits)} of {len(self.views)} trajectories hold this text{more}"
        tag = lookup.tag or ""
        if tag not in self.views:
            return [], f"there is no trajectory `{tag}`; `list` names them"
        parts = self.parts(tag)
        if lookup.part > len(parts):
            return [], f"`{tag}` has {counted(len(parts), 'part')}"
        return [], f"`{tag}`, part {lookup.part} of {len(parts)}:\n{parts[lookup.part - 1]}"


def _whole(view: TrajectoryView) -> str:
    """A trajectory as one text; what the program withholds is not in it."""
    parts = [f"input {name}:\n{value}" for name, value in view.inputs.items()]
    named = (("steps", view.trajectory), ("answer", view.answer), ("gold", view.gold), ("feedback", view.feedback))
    return "\n\n".join([*parts, *(f"{name}:\n{text}" for name, text in named if text is not None)])


def _beginning(view: TrajectoryView) -> str:
    text = " ".join(" ".join(view.inputs.values()).split())
    return text[: 2 * _AROUND_HIT]


async def ask_with_lookups(
    optimizer: Optimizer,
    messages: Messages,
    library: Library,
    most: int,
    *,
    sample: tuple[int, ...],
    check: Callable[[ReflectReply], None],
) -> ReflectReply | None:
    """A reflection that may ask up to `most` questions first; None where no reply can be read."""
    for turn in range(most):
        reply = await optimizer.ask(
            LookReply,
            messages,
            stage="reflect",
            sample=(*sample, turn),
            check=lambda r: None if r.lookup else check(r),
            done=False,
        )
        if reply is None or reply.lookup is None:
            optimizer.advance()
            return reply
        hits, text = library.answer(reply.lookup)
        asked = json.dumps({"lookup": reply.lookup.model_dump(mode="json", exclude_defaults=True)}, ensure_ascii=False)
        messages = lookup_messages(messages, asked=asked, hits=hits, text=text, left=most - turn - 1)
    return await optimizer.ask(ReflectReply, messages, stage="reflect", sample=(*sample, most), check=check)


def without_lapses(edits: Sequence[ProposedEdit], lapses: Sequence[LapseReply]) -> list[ProposedEdit]:
    """The edits with what mends the skill alone: a case that is a lapse is cured by no edit of the rules.

    An edit that was meant for lapses only goes; one that cites nothing stays.
    """
    lapsed = {tag for lapse in lapses for tag in lapse.cases}
    kept = []
    for edit in edits:
        cures = tuple(tag for tag in edit.cures if tag not in lapsed)
        if cures or not edit.cures:
            kept.append(edit.model_copy(update={"cures": cures}))
    return kept


def reminders(lapses: Sequence[LapseReply]) -> list[ProposedEdit]:
    """An edit for each reminder; it goes through the same screen and the same gates as any other."""
    edits = []
    for lapse in lapses:
        of = f"rule {lapse.rule}" if lapse.rule else "a rule"
        why = f"lapse: {of} was right and was not followed on {len(lapse.cases) or 'some'} cases"
        edits.append(ProposedEdit(op="add", section=REMINDERS, text=lapse.reminder, rationale=why, cures=lapse.cases))
    return edits
