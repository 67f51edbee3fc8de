"""Which skills candidates grow from: with `parents = pareto` the front over the validation examples (GEPA)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from skillc.data.example import Example
from skillc.document.skill import Document, digest
from skillc.metrics.cells import MICRO
from skillc.optimize.engine import Engine, Member, Place, State
from skillc.optimize.seeds import seed_for


def with_initial(engine: Engine, state: State) -> State:
    """The state with the initial skill in its pool, where there is one."""
    return with_member(engine, state, state.initial, (), accepted=True)


def with_member(engine: Engine, state: State, skill: Document, parents: Iterable[str], *, accepted: bool) -> State:
    """The state with one more skill to grow from; a kept one that is accepted later becomes an accepted one.

    Args:
        engine: the run.
        state: with the skill that the gates compared this one with as its incumbent.
        skill: it has a complete validation, or is about to.
        parents: digests of the skills that it was made from.
        accepted: whether it passed the gates.
    """
    if engine.plan.optimize.parents != "pareto":
        return state
    name = digest(skill)
    known = next((member for member in state.pool if member.id == name), None)
    if known is None:
        anchor = name if accepted else digest(state.incumbent)
        return replace(state, pool=(*state.pool, Member(name, skill, tuple(parents), accepted, anchor)))
    if known.accepted or not accepted:
        return state
    risen = replace(known, accepted=True, anchor=name)
    return replace(state, pool=tuple(risen if member is known else member for member in state.pool))


def with_parent(engine: Engine, state: State, place: Place) -> State:
    """The state whose incumbent is the parent of a step; as it is where candidates grow from the incumbent alone."""
    if engine.plan.optimize.parents != "pareto":
        return state
    return replace(state, incumbent=parent_of(engine, state, epoch=place.epoch, step=place.step), parent=None)


def with_best(engine: Engine, state: State) -> State:
    """The state whose incumbent is the best skill, for what is done at an epoch's end with a pool of parents."""
    return state if engine.plan.optimize.parents != "pareto" else replace(state, incumbent=state.best, parent=None)


def parent_of(engine: Engine, state: State, *, epoch: int, step: int) -> Document:
    """The skill that a step starts from: drawn from the front, by how often each stands on it."""
    members = whole(engine, state)
    if not members:
        return state.best
    weights = frequencies([column(engine, member.skill) for member in members])
    seed = seed_for(engine.plan.data.seed, "parent", epoch=epoch, step=step)
    return members[drawn(weights, seed)].skill


def whole(engine: Engine, state: State) -> list[Member]:
    """The members with a complete validation: no other may be compared example by example."""
    return [member for member in state.pool if None not in totals(engine, member.skill)]


def column(engine: Engine, skill: Document) -> list[int]:
    """The goal by validation example, summed over the samples, of a skill that was measured on all of them."""
    return [total for total in totals(engine, skill) if total is not None]


def totals(engine: Engine, skill: Document) -> list[int | None]:
    """The goal by validation example, summed over the samples; None where a sample was not measured."""
    samples, goal = engine.plan.optimize.samples, engine.plan.goal.name
    return [engine.rollouts.total(skill, e, goal, samples=samples) for e in engine.dataset.validation]


def frequencies(columns: Sequence[Sequence[int]]) -> list[int]:
    """How often each skill stands on the front of an example, after those that the others cover are left out.

    The front of an example are the skills that score highest there. A skill is covered if on each of its fronts some
    other that is still in stands too; the lowest in sum goes first, of equals the later one (Agrawal and others 2025,
    "GEPA: Reflective Prompt Evolution Can Outperform Reinforcement Learning", algorithm 2).

    Args:
        columns: of each skill its scores, example by example.
    """
    counts = Counter(_front(scores) for scores in zip(*columns, strict=True))
    left = set(range(len(columns)))
    for skill in sorted(left, key=lambda i: (sum(columns[i]), -i)):
        others = left - {skill}
        if all(front & others for front in counts if skill in front):
            left = others
    stands = [sum(times for front, times in counts.items() if i in front) for i in range(len(columns))]
    return [count if i in left else 0 for i, count in enumerate(stands)]


def _front(scores: Sequence[int]) -> frozenset[int]:
    most = max(scores)
    return frozenset(i for i, score in enumerate(scores) if score == most)


def drawn(weights: Sequence[int], seed: bytes) -> int:
    """An index with odds by weight; the first where there is no weight at all."""
    ticket = int.from_bytes(seed, "big") % max(1, sum(weights))
    for i, weight in enumerate(weights):
        if ticket < weight:
            return i
        ticket -= weight
    return 0


def unsolved(engine: Engine, state: State) -> list[Example]:
    """Validation examples that no member of the pool gets right; none without a pool."""
    if not state.pool:
        return []
    return [e for e in engine.dataset.validation if not any(is_right(engine, m.skill, e) for m in state.pool)]


def is_right(engine: Engine, skill: Document, example: Example) -> bool:
    """Whether every sample of an example has the highest goal there is."""
    samples, goal = engine.plan.optimize.samples, engine.plan.goal
    total = engine.rollouts.total(skill, example, goal.name, samples=samples)
    return total is not None and total >= goal.high * MICRO * samples


def anchor_of(state: State) -> Document:
    """What the gates compare a candidate with: the skill that it grows from, where that one is accepted itself.

    A kept skill failed a gate, so what grows from it meets the accepted skill behind it: no measure that would fail in
    one step passes in two.
    """
    if not state.pool:
        return state.incumbent
    by_id = {member.id: member for member in state.pool}
    parent = by_id.get(digest(state.incumbent))
    return state.incumbent if parent is None or parent.accepted else by_id[parent.anchor].skill
