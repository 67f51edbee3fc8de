"""Stage 3: the proposals of all minibatches become one list: a merge tree of fan-in 8, support counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from skillc.optimize.briefing import briefing
from skillc.optimize.engine import Engine, Place, State
from skillc.optimize.prompting import Kind, aggregate_messages
from skillc.optimize.proposals import Proposal, as_proposed, check_edits, joined, read_proposals, wording
from skillc.optimize.reflect import Reflection
from skillc.optimize.replies import AggregateReply
from skillc.optimize.rollouts import gather
from skillc.plan.merges import FAN_IN


@dataclass(frozen=True, slots=True)
class _List:
    """Proposals that have been merged so far, of failures or of successes."""

    kind: Kind
    proposals: list[Proposal]


async def aggregate(
    engine: Engine, state: State, reflections: Sequence[Reflection], place: Place, edits: int
) -> list[Proposal]:
    """One list without duplicates.

    Lists are merged within their kind until the last call can hold all that are left; that one settles what failures
    and successes have against each other. Where the optimizer gives no readable merge, equal edits are joined and all
    are kept.
    """
    level = [_List(r.kind, joined(r.proposals)) for r in reflections if r.proposals]
    ordinal = 0
    while len(level) > 1:
        groups = _groups(level)
        engine.observer.stage("aggregate", sum(len(group) > 1 for group in groups))
        level = await gather(
            [_merge(engine, state, group, place, ordinal + i, edits) for i, group in enumerate(groups)]
        )
        ordinal += len(groups)
    return level[0].proposals if level else []


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
    together = joined([proposal for part in group for proposal in part.proposals])
    most = edits * len(group)
    messages = aggregate_messages(
        patches=[[as_proposed(proposal) for proposal in part.proposals] for part in group],
        kinds=[part.kind for part in group],
        edit_budget=most,
        **briefing(engine, state),
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
    ids = {example: example for proposal in together for example in proposal.cures}
    merged = [_with_author(proposal, together) for proposal in read_proposals(reply.edits[:most], ids)]
    return _List(kind, joined(merged) or together)


def _with_author(merged: Proposal, proposals: Sequence[Proposal]) -> Proposal:
    """The merged proposal with what the author of its text has seen.

    That is the author of the proposal of this very wording. A new wording has all authors whose cases it cites, or all
    of them if it cites none.
    """
    same = [each for each in proposals if wording(each.edit) == wording(merged.edit)]
    citing = [each for each in proposals if set(each.cures) & set(merged.cures)]
    authors = same or citing or proposals
    return replace(merged, seen=frozenset().union(*(each.seen for each in authors)))
