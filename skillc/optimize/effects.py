"""What the last candidates did on training cases, so that the optimizer learns what its edits do.

Only cases count that the loop measured for a purpose: those of the screen, those of a draft's trial, and those of a
batch that an earlier incumbent met too. What was sent ahead does not count, because that depends on the caps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import JsonValue

from skillc.data.examples import Example
from skillc.document.edits import apply_edits
from skillc.document.skill import Document, digest
from skillc.optimize.engine import Effect, Engine, Part, State
from skillc.optimize.proposals import wording
from skillc.optimize.sight import shortened, shown_answer, shown_gold, shown_inputs
from skillc.optimize.trials import moved

if TYPE_CHECKING:
    from skillc.optimize.decide import Patch

# Candidates that are remembered, and the cases of each kind that one part of a candidate shows.
_CANDIDATES = 3
_CASES = 3
# Characters of a case and of an answer.
_INPUT, _ANSWER = 160, 60


def with_effect(
    engine: Engine,
    state: State,
    before: Document,
    patch: Patch,
    outcome: str,
    fates: Sequence[Mapping[str, JsonValue]],
) -> State:
    """The state that remembers what a candidate did; one without a trial leaves nothing to remember.

    Args:
        engine: the surroundings.
        state: the loop's.
        before: what the candidate was made from.
        patch: the candidate.
        outcome: how it was decided, in words.
        fates: what became of its proposals.
    """
    if patch.trial:
        after = patch.tried or patch.candidate
        parts = [_part(engine, before, after, shortened(patch.text, _INPUT), "", patch.trial)]
    else:
        told = {str(each["edit"]): each for each in fates}
        listed = engine.plan.optimize.rejected_buffer
        parts = []
        for proposal in patch.proposals:
            alone = apply_edits(before, (proposal.edit,)).document
            changes = {n: c for n, c in (*proposal.moved, *proposal.guarded) if n not in proposal.chance}
            text = wording(proposal.edit)
            row = told.get(text, {})
            fate = str(row.get("fate", ""))
            if listed and fate == "rejected":
                # The list of rejected edits has it whole, with its counts.
                text = shortened(text, _INPUT)
            elif "why" in row:
                fate += f": {row['why']}"
            parts.append(_part(engine, before, alone, text, fate, changes))
    if not parts:
        return state
    texts = {part.text for part in parts}
    earlier = [replace(each, parts=tuple(p for p in each.parts if p.text not in texts)) for each in state.effects]
    effects = [Effect(outcome, tuple(parts)), *(each for each in earlier if each.parts)]
    return replace(state, effects=tuple(effects[:_CANDIDATES]))


def with_batch(engine: Engine, state: State, batch: Sequence[Example]) -> State:
    """The state after a measured batch: what changed on those of its cases that an earlier incumbent met."""
    now, before = state.incumbent, {example.id: state.met.get(example.id) for example in batch}
    better: list[str] = []
    worse: list[str] = []
    for example in batch:
        old = before[example.id]
        change = moved(engine, old, now, example) if old is not None and digest(old) != digest(now) else None
        if old is not None and change:
            (better if change > 0 else worse).append(_line(engine, old, now, example))
    again = Part("cases of this step that an earlier skill met too", "", _cut(better), _cut(worse))
    return replace(
        state,
        met={**state.met, **dict.fromkeys(before, now)},
        again=Effect("the skill as it is now", (again,)) if better or worse else None,
    )


def _part(engine: Engine, before: Document, after: Document, text: str, fate: str, changes: Mapping[str, int]) -> Part:
    lines: dict[bool, list[str]] = {True: [], False: []}
    for example in engine.dataset.train:
        if changes.get(example.id):
            lines[changes[example.id] > 0].append(_line(engine, before, after, example))
    return Part(text, fate, _cut(lines[True]), _cut(lines[False]))


def _line(engine: Engine, before: Document, after: Document, example: Example) -> str:
    """A case in few words, with its answers under both skills and the right one."""
    plan = engine.plan
    inputs = " | ".join(shown_inputs(example, plan.optimize.trajectory_limit).values())
    outcomes = [engine.rollouts.known(skill, example) for skill in (before, after)]
    old, new = (None if each is None else shortened(shown_answer(plan, each, _ANSWER), _ANSWER) for each in outcomes)
    gold = shown_gold(plan, example)
    told = [f"was {old}"] if old else []
    told += [f"now {new}"] if new else []
    told += [f"right is {shortened(gold, _ANSWER)}"] if gold is not None and new != shortened(gold, _ANSWER) else []
    return f"{shortened(inputs, _INPUT)}: {', '.join(told)}"


def _cut(lines: Sequence[str]) -> tuple[str, ...]:
    """The first few lines, and how many there are besides."""
    more = len(lines) - _CASES
    return (*lines[:_CASES], f"and {more} more") if more > 0 else tuple(lines)
