"""Two parents become one: rule by rule, what either of them changed since a common ancestor (GEPA's merge)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from skillc.budget.steps import merges_parents
from skillc.data.example import Example
from skillc.document.skill import digest
from skillc.optimize.decide import Patch, settle
from skillc.optimize.engine import Engine, Member, Place, State
from skillc.optimize.merge_rules import merge_rules
from skillc.optimize.parents import column, frequencies, whole
from skillc.optimize.seeds import seed_for


@dataclass(frozen=True, slots=True)
class Pair:
    """Two parents, neither of which descends from the other, and the skill that both descend from.

    Attributes:
        first: the one with the higher goal, of equals the earlier one; the gates compare with it.
        second: the other.
        wins: on how many validation examples either is better than the other.
    """

    first: Member
    second: Member
    ancestor: Member
    wins: tuple[int, int]

    @property
    def key(self) -> tuple[str, str]:
        """Names the pair, whichever of the two comes first."""
        return min(self.first.id, self.second.id), max(self.first.id, self.second.id)


async def merge(engine: Engine, state: State, batch: Sequence[Example], place: Place) -> State:
    """The state after the merge of one pair, through all gates; the batch gates read the epoch's last batch.

    A pair is merged once in a run. One whose merge gives a skill that is in the pool already costs nothing, and the
    next is tried. It never counts for patience.

    Raises:
        BudgetReached: a cap does not admit a call.
    """
    if not merges_parents(engine.plan):
        return state
    known = {member.id for member in state.pool}
    for pair in pairs_of(engine, state):
        seed = seed_for(engine.plan.data.seed, f"merge {pair.key}", epoch=place.epoch)
        merged = merge_rules(pair.ancestor.skill, pair.first.skill, pair.second.skill, wins=pair.wins, seed=seed)
        state = replace(state, merged=state.merged | {pair.key})
        if not merged.edits or digest(merged.document) in known:
            continue
        shown: dict[str, JsonValue] = {"ancestor": pair.ancestor.id, "edits": [*merged.edits]}
        patch = Patch((), merged.document, shown, parents=(pair.first.id, pair.second.id))
        return await settle(engine, replace(state, incumbent=pair.first.skill), patch, batch, place)
    return state


# ---- which two ------------------------------------------------------------------------------------


def pairs_of(engine: Engine, state: State) -> list[Pair]:
    """Pairs on the front that were not merged, each right where the other is not; those that promise most first.

    A pair promises the sum of the higher of its two scores over the validation examples; equals by sha256.
    """
    members = whole(engine, state)
    columns = {member.id: column(engine, member.skill) for member in members}
    weights = frequencies([columns[member.id] for member in members])
    front = [member for member, weight in zip(members, weights, strict=True) if weight]
    found = [pair for pair in _pairs(front, state.pool, columns) if all(pair.wins) and pair.key not in state.merged]

    def promise(pair: Pair) -> tuple[int, bytes]:
        together = zip(columns[pair.first.id], columns[pair.second.id], strict=True)
        return -sum(map(max, together)), seed_for(engine.plan.data.seed, f"pair {pair.key}")

    return sorted(found, key=promise)


def _pairs(front: Sequence[Member], pool: Sequence[Member], columns: Mapping[str, Sequence[int]]) -> Iterator[Pair]:
    order = {member.id: i for i, member in enumerate(pool)}
    lines = {member.id: ancestors(member, pool) for member in front}
    for i, one in enumerate(front):
        for other in front[i + 1 :]:
            common = lines[one.id] & lines[other.id]
            if one.id in lines[other.id] or other.id in lines[one.id] or not common:
                continue
            first, second = (one, other) if sum(columns[one.id]) >= sum(columns[other.id]) else (other, one)
            both = list(zip(columns[first.id], columns[second.id], strict=True))
            wins = sum(a > b for a, b in both), sum(b > a for a, b in both)
            yield Pair(first, second, pool[max(order[name] for name in common)], wins)


def ancestors(member: Member, pool: Sequence[Member]) -> frozenset[str]:
    """Digests of all that a skill descends from."""
    by_id = {each.id: each for each in pool}
    found: set[str] = set()
    open_ = list(member.parents)
    while open_:
        name = open_.pop()
        if name in by_id and name not in found:
            found.add(name)
            open_ += by_id[name].parents
    return frozenset(found - {member.id})
