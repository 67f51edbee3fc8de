"""Stage 3: the proposals of all minibatches become one list: a merge tree of fan-in 8, support counted."""

from __future__ import annotations

from collections.abc import Sequence

from skillc.optimize.briefing import briefing
from skillc.optimize.engine import Engine, Place, State
from skillc.optimize.prompting import aggregate_messages
from skillc.optimize.proposals import Proposal, as_proposed, read_proposals, wording
from skillc.optimize.replies import AggregateReply
from skillc.optimize.rollouts import gather

FAN_IN = 8


async def aggregate(
    engine: Engine, state: State, proposals: Sequence[Sequence[Proposal]], place: Place, edits: int
) -> list[Proposal]:
    """One list without duplicates. Where the optimizer gives no readable merge, equal edits are joined and all kept."""
    level = [joined(part) for part in proposals if part]
    ordinal = 0
    while len(level) > 1:
        groups = [level[i : i + FAN_IN] for i in range(0, len(level), FAN_IN)]
        engine.observer.stage("aggregate", len(groups))
        level = await gather(
            [_merge(engine, state, group, place, ordinal + i, edits) for i, group in enumerate(groups)]
        )
        ordinal += len(groups)
    return list(level[0]) if level else []


async def _merge(
    engine: Engine, state: State, group: Sequence[Sequence[Proposal]], place: Place, ordinal: int, edits: int
) -> list[Proposal]:
    together = joined([proposal for part in group for proposal in part])
    if len(group) == 1:
        return together
    messages = aggregate_messages(
        patches=[[as_proposed(proposal) for proposal in part] for part in group],
        edit_budget=edits * len(group),
        **briefing(engine, state),
    )
    reply = await engine.optimizer.ask(
        AggregateReply, messages, stage="aggregate", sample=(place.epoch, place.step, ordinal)
    )
    if reply is None:
        return together
    ids = {example: example for proposal in together for example in proposal.cures}
    return joined(read_proposals(reply.edits, ids)) or together


def joined(proposals: Sequence[Proposal]) -> list[Proposal]:
    """Equal edits become one: their supports add up, their examples unite. The order is that of first appearance."""
    first: dict[str, Proposal] = {}
    for proposal in proposals:
        key = wording(proposal.edit)
        seen = first.get(key)
        if seen is None:
            first[key] = proposal
        else:
            cures = tuple(dict.fromkeys((*seen.cures, *proposal.cures)))
            first[key] = Proposal(seen.edit, cures, seen.support + proposal.support)
    return list(first.values())
