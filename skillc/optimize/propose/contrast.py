"""Contrast for prompts: group related failures, and choose near right cases that show where a rule ends.

A failure alone does not say how wide a rule may be. So failures with the same right and the same given answer come
together, and beside them come the nearest cases that are right, those with the answers involved first. Training
examples on which the target was not run add right answers at no cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from skillc.document.skill import Document
from skillc.optimize.engine import Engine, State, failing
from skillc.optimize.propose.cases import shown_answer, shown_gold, shown_inputs
from skillc.optimize.rollouts import Outcome, is_failure
from skillc.optimize.schedule import seed_for, shuffled
from skillc.outcomes import Example
from skillc.plan.schema import Plan
from skillc.tokens import count_tokens

Measured = tuple[Example, Outcome]

# Of an answer, what tells it from others; and how many right answers a table may have before it says nothing.
_ANSWER = 40
_MOST_ANSWERS = 40
_A_CASE = 12
# With fewer failures all are shown, and none is left to judge by; else one of so many is held out.
_LEAST_TO_SPLIT = 6
_HELD_OUT = 3


@dataclass(frozen=True, slots=True)
class Answered:
    """A row of the confusion table: the answers given where one answer is right.

    Attributes:
        gold: the right answer.
        right: how many cases came out right.
        wrong: other answers with how often they were given, the most frequent first.
    """

    gold: str
    right: int
    wrong: tuple[tuple[str, int], ...]


def failures_of(plan: Plan, measured: Iterable[Measured]) -> list[Measured]:
    """The cases that were measured and fell short, related ones together.

    Those with the same right and the same given answer are one group; the largest group comes first, equals in the
    order of their first case.
    """
    groups: dict[tuple[str | None, str], list[Measured]] = {}
    for example, outcome in measured:
        if is_failure(plan, outcome):
            key = (shown_gold(plan, example), shown_answer(plan, outcome, _ANSWER))
            groups.setdefault(key, []).append((example, outcome))
    return [pair for group in sorted(groups.values(), key=len, reverse=True) for pair in group]


def held_out(failures: Sequence[Measured], ordinal: int = 0) -> list[Measured]:
    """The failures that an author is not shown, so that they can judge what it writes: a third, none of a few.

    Of failures in the order of `failures_of`, a third of each group; which third follows from the ordinal.
    """
    if len(failures) < _LEAST_TO_SPLIT:
        return []
    return [pair for i, pair in enumerate(failures) if i % _HELD_OUT == ordinal % _HELD_OUT]


def right_otherwise(engine: Engine, skill: Document, pairs: Iterable[Measured]) -> dict[str, Outcome]:
    """By failure, another rollout of the same example under the same skill that came out right."""
    found = {}
    for example, _ in pairs:
        for sample in range(1, engine.plan.optimize.samples):
            outcome = engine.rollouts.known(skill, example, sample)
            if outcome is not None and is_failure(engine.plan, outcome) is False:
                found[example.id] = outcome
                break
    return found


def rights_of(plan: Plan, measured: Iterable[Measured]) -> list[Measured]:
    """The cases that were measured and came out right, in their order."""
    return [(example, outcome) for example, outcome in measured if is_failure(plan, outcome) is False]


def confusion(plan: Plan, measured: Iterable[Measured]) -> list[Answered]:
    """How often which answer was given, by right answer; empty where gold is withheld or has too many values."""
    table: dict[str, Counter[str | None]] = {}
    for example, outcome in measured:
        gold, failed = shown_gold(plan, example), is_failure(plan, outcome)
        if gold is not None and failed is not None:
            given = shown_answer(plan, outcome, _ANSWER) if failed else None
            table.setdefault(gold, Counter())[given] += 1
    if len(table) > _MOST_ANSWERS:
        return []
    rows = []
    for gold in sorted(table, key=lambda gold: (-sum(table[gold].values()), gold)):
        wrong = [(given, n) for given, n in table[gold].most_common() if given is not None]
        rows.append(Answered(gold, table[gold][None], tuple(wrong)))
    return rows


def near_rights(engine: Engine, failures: Sequence[Measured], rights: Sequence[Measured], count: int) -> list[Measured]:
    """At most `count` of the right cases: for each failure in turn the nearest of each kind that it has.

    The kinds are: right with the failure's own right answer, right with the answer that it was given, any other.
    """
    plan = engine.plan
    by_id = {example.id: (example, outcome) for example, outcome in rights}
    golds = {example.id: shown_gold(plan, example) for example, _ in rights}
    chosen: dict[str, Measured] = {}
    for wanted in range(3):
        for example, outcome in failures:
            if len(chosen) >= count:
                break
            kinds = [shown_gold(plan, example), shown_answer(plan, outcome, _ANSWER)]
            like = kinds[wanted] if wanted < len(kinds) else None
            among = [name for name in by_id if name not in chosen and (wanted == 2 or golds[name] == like)]
            found = engine.near.to(example, 1, among=among)
            chosen.update((each.id, by_id[each.id]) for each in found)
    return list(chosen.values())[:count]


def further(engine: Engine, shown: Iterable[str], limit: int) -> list[Example]:
    """Training examples beside those that are shown, as many as fit into `limit` tokens; none where gold is withheld.

    They take turns by right answer, so that rare answers are among them, in an order drawn by the seed.
    """
    plan, there = engine.plan, set(shown)
    if "gold" not in plan.optimize.sees:
        return []
    groups: dict[str | None, list[Example]] = {}
    for example in shuffled(engine.dataset.train, seed_for(plan.data.seed, "further examples")):
        if example.id not in there:
            groups.setdefault(shown_gold(plan, example), []).append(example)
    turns = [each for turn in zip_longest(*groups.values()) for each in turn if each is not None]
    chosen: list[Example] = []
    left = limit
    for example in turns:
        texts = [*shown_inputs(example, plan.optimize.trajectory_limit).values(), shown_gold(plan, example) or ""]
        left -= sum(map(count_tokens, texts)) + _A_CASE
        if left < 0:
            break
        chosen.append(example)
    return chosen


# Failures that are remembered, as a multiple of those that one step takes in.
_REMEMBERED = 10
TIMES_UNEXPLAINED = 2


def replayed(engine: Engine, state: State, batch: Sequence[Example]) -> tuple[Example, ...]:
    """Up to `replay` remembered failures that are not in the batch, the latest first."""
    left_out = {example.id for example in batch} | retired(state)
    return tuple(e for e in state.memory.failures if e.id not in left_out)[: engine.plan.optimize.replay]


def retired(state: State) -> set[str]:
    """Ids of the examples for which authors found no rule so often that nobody is asked again."""
    return {name for name, times in state.counters.unexplained.items() if times >= TIMES_UNEXPLAINED}


def remembering(engine: Engine, state: State, batch: Sequence[Example]) -> State:
    """The state that remembers which examples of a batch its incumbent fails, and forgets those that came right."""
    here = {example.id for example in batch}
    earlier = [example for example in state.memory.failures if example.id not in here]
    latest = (*failing(engine, state.incumbent, batch), *earlier)
    return state.remembering(failures=latest[: _REMEMBERED * engine.plan.optimize.replay])
