"""Stage 3: the proposals of all minibatches become one list; a call only where readers overlap.

Proposals of different readers dispute where they change the same rule, cite the same case, or read alike whatever they
answer. These go through a merge tree of fan-in 8, with the cases that they cite; the others are united without a call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, zip_longest

from skillc.budget.steps import FAN_IN, MOST_CITED
from skillc.document.edits import Add, Replace
from skillc.optimize.engine import Engine, Place, State
from skillc.optimize.propose.cases import briefing, trajectory_view
from skillc.optimize.propose.near import Alike
from skillc.optimize.propose.prompting import Kind, PatchView, TrajectoryView, aggregate_messages
from skillc.optimize.propose.proposals import Proposal, as_proposed, check_edits, read_proposals, unite, wording
from skillc.optimize.propose.reflect import Reflection
from skillc.optimize.propose.replies import AggregateReply
from skillc.optimize.rollouts import gather

# From this share of their words on, two texts read alike. In recorded runs the rules of different readers that have
# nothing to do with each other stay below 0.25.
_ALIKE = 0.5


@dataclass(frozen=True, slots=True)
class _List:
    """Proposals that have been merged so far, of failures or of successes, and what their readers saw."""

    kind: Kind
    proposals: list[Proposal]
    summary: str = ""


async def aggregate(
    engine: Engine, state: State, reflections: Sequence[Reflection], place: Place, edits: int
) -> list[Proposal]:
    """One list without duplicates, in the order of its readers; what they dispute comes first, as it was settled.

    Lists are merged within their kind until the last call can hold all that are left; that one settles what failures
    and successes have against each other. Where the optimizer gives no readable merge, equal edits are united and all
    are kept.
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
            [_merge(engine, state, group, place, ordinal + i, edits) for i, group in enumerate(groups)]
        )
        ordinal += len(groups)
    return unite([*level[0].proposals, *(p for p in every if wording(p.edit) not in disputed)])


def _disputed(engine: Engine, state: State, reflections: Sequence[Reflection]) -> frozenset[str]:
    """The wordings of proposals that another reader's proposal overlaps or contradicts; equal ones do neither."""
    readers = [unite(reflection.proposals) for reflection in reflections]
    texts = [[_condition(engine, proposal) for proposal in each] for each in readers]
    # What a reader and the skill's own rules repeat is how rules are worded here, not what they are about.
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
    """Whether two proposals change the same rule or cite the same case."""
    same = not isinstance(first.edit, Add) and not isinstance(second.edit, Add) and first.edit.rule == second.edit.rule
    return same or bool(set(first.cures) & set(second.cures))


def _condition(engine: Engine, proposal: Proposal) -> str:
    """The text of an edit without labels and names of fields, so that rules with contradicting answers read alike."""
    text = proposal.edit.text if isinstance(proposal.edit, Add | Replace) else ""
    task = engine.plan.task
    names = [field.name for field in (*task.inputs, *task.outputs)]
    names += [label for field in task.outputs for label in field.type.labels]
    return re.sub(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)", " ", text)


def _groups(level: Sequence[_List]) -> list[list[_List]]:
    """What one round merges: all where they fit in one call, else each kind by itself, failures first."""
    if len(level) <= FAN_IN:
        return [sorted(level, key=lambda part: part.kind != "failures")]
    kinds: tuple[Kind, ...] = ("failures", "successes")
    by_kind = ([part for part in level if part.kind == kind] for kind in kinds)
    return [parts[i : i + FAN_IN] for parts in by_kind for i in range(0, len(parts), FAN_IN)]


async def _merge(engine: Engine, state: State, group: Sequence[_List], place: Place, ordinal: int, edits: int) -> _List:
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
        sample=(place.epoch, place.step, ordinal),
        check=lambda merged: check_edits(state.incumbent, merged.edits),
    )
    if reply is None:
        return _List(kind, together)
    ids = {tag: example for example, tag in tags.items()}
    merged = [_with_author(proposal, together) for proposal in read_proposals(reply.edits[: len(together)], ids)]
    return _List(kind, unite(merged) or together, " ".join(part.summary for part in group if part.summary))


def _cited(proposals: Sequence[Proposal]) -> list[str]:
    """Ids of the cases that proposals cite, each proposal's first one first, in turns."""
    turns = zip_longest(*(proposal.cures for proposal in proposals))
    return list(dict.fromkeys(name for turn in turns for name in turn if name is not None))


def _views(engine: Engine, state: State, tags: Mapping[str, str]) -> list[TrajectoryView]:
    plan, by_id = engine.plan, {example.id: example for example in engine.dataset.train}
    known = {name: engine.rollouts.known(state.incumbent, by_id[name]) for name in tags}
    limit = plan.optimize.trajectory_limit
    return [trajectory_view(plan, tags[n], by_id[n], o, limit=limit) for n, o in known.items() if o is not None]


def _with_author(merged: Proposal, proposals: Sequence[Proposal]) -> Proposal:
    """The merged proposal with what the author of its text has seen.

    That is the author of the proposal of this very wording. A new wording has all authors whose cases it cites, or all
    of them if it cites none.
    """
    same = [each for each in proposals if wording(each.edit) == wording(merged.edit)]
    citing = [each for each in proposals if set(each.cures) & set(merged.cures)]
    authors = same or citing or proposals
    return replace(merged, seen=frozenset().union(*(each.seen for each in authors)))
