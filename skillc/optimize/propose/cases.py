"""Choose the cases of a prompt, and render them as far as the program lets the optimizer see them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, zip_longest
from types import MappingProxyType
from typing import TypeVar

from pydantic import JsonValue

from skillc.budget.call_sizes import EFFECTS_LIMIT, REJECTED_LIMIT
from skillc.document.skill import Document, for_optimizer
from skillc.optimize.engine import CandidateEffect, Engine, RejectedEdit, SearchState, failing_examples
from skillc.optimize.propose.prompting import Briefing, SectionView, TrajectoryView
from skillc.optimize.rollouts import Outcome, is_failure
from skillc.optimize.schedule import seed_for, shuffled
from skillc.outcomes import MICRO, Example, Scored
from skillc.plan.initial import first_decides
from skillc.plan.schema import Plan
from skillc.tokens import count_tokens

# What DSPy's chat adapter writes around the fields of a reply.
_MARKER = re.compile(r"\[\[ ## \w+ ## \]\]")


def trajectory_view(
    plan: Plan, tag: str, example: Example, outcome: Outcome, *, limit: int | None, right: Outcome | None = None
) -> TrajectoryView:
    """One rollout, its texts trimmed to `limit` tokens each, or whole with None; `right` is another one, if any."""
    goal = outcome.cells[plan.goal.name]
    return TrajectoryView(
        tag=tag,
        inputs=visible_inputs(example, limit),
        answer=visible_answer(plan, outcome, limit),
        gold=visible_gold(plan, example),
        feedback=visible_feedback(plan, outcome),
        trajectory=_steps(plan, outcome, limit),
        score=f"{goal.value / MICRO:g}" if isinstance(goal, Scored) else "not measured",
        otherwise=(_steps(plan, right, limit), visible_answer(plan, right, limit)) if right is not None else None,
    )


def trajectory_views(
    plan: Plan,
    pairs: Sequence[tuple[Example, Outcome]],
    *,
    limit: int | None,
    letter: str = "t",
    right: Mapping[str, Outcome] = MappingProxyType({}),
) -> list[TrajectoryView]:
    """Rollouts under the tags `t1`, `t2` and so on, or with another letter; `right` as in `trajectory_view`, by id."""
    return [
        trajectory_view(plan, f"{letter}{i}", example, outcome, limit=limit, right=right.get(example.id))
        for i, (example, outcome) in enumerate(pairs, 1)
    ]


def _steps(plan: Plan, outcome: Outcome, limit: int | None) -> str | None:
    seen = "trajectory" in plan.optimize.sees and not _only_answers(outcome)
    return trim(outcome.reply, limit) if seen else None


def ids_by_tag(pairs: Sequence[tuple[Example, Outcome]]) -> dict[str, str]:
    """The examples' ids by the tags that `trajectory_views` gives them."""
    return {f"t{i}": example.id for i, (example, _) in enumerate(pairs, 1)}


def _only_answers(outcome: Outcome) -> bool:
    """Whether a reply holds the answer and, beside the markers of its fields, nothing else."""
    values = [_shown(value) for value in outcome.answer.values()] if outcome.answer is not None else []
    return _MARKER.sub("", outcome.reply).split() == " ".join(values).split()


def visible_inputs(example: Example, limit: int | None) -> dict[str, str]:
    """The example's inputs as texts, each trimmed."""
    return {name: trim(_shown(value), limit) for name, value in example.inputs.items()}


def visible_answer(plan: Plan, outcome: Outcome, limit: int | None) -> str:
    """What the target answered; its reply where no answer could be read from it, unless trajectories are withheld."""
    if outcome.answer is not None:
        return trim(_shown(outcome.answer), limit)
    return trim(outcome.reply, limit) if "trajectory" in plan.optimize.sees else "(no answer could be read)"


def visible_gold(plan: Plan, example: Example) -> str | None:
    """The right answer, None where the program withholds it."""
    return _shown(example.gold) if "gold" in plan.optimize.sees else None


def visible_feedback(plan: Plan, outcome: Outcome) -> str | None:
    """The metrics' feedback, None where the program withholds it. Where it withholds gold, theirs does not tell it."""
    return outcome.feedback if "feedback" in plan.optimize.sees else None


def _shown(value: object) -> str:
    """A value as a reader wants it: the bare text of a single answer, JSON of anything larger."""
    if isinstance(value, str):
        return value
    if hasattr(value, "items"):
        entries: dict[str, JsonValue] = dict(value.items())
        if len(entries) == 1:
            return _shown(next(iter(entries.values())))
        return json.dumps(entries, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False)


def first_sentences(text: str, limit: int) -> str:
    """The first sentences of a text that fit into `limit` tokens together; the first one in any case."""
    first, *more = re.split(r"(?<=[.!?;])\s+", " ".join(text.split()))
    for sentence in more:
        if count_tokens(longer := f"{first} {sentence}") > limit:
            break
        first = longer
    return first


def shorten(text: str, characters: int) -> str:
    """The beginning of a text on one line, cut behind a word."""
    line = " ".join(text.split())
    return line if len(line) <= characters else f"{line[:characters].rsplit(' ', 1)[0]} …"


def trim(text: str, limit: int | None) -> str:
    """A text of at most about `limit` tokens: its beginning and its end, with a note of what is left out."""
    if limit is None or len(text) <= limit:
        return text
    tokens = count_tokens(text)
    if tokens <= limit:
        return text
    half = max(1, len(text) * limit // tokens // 2)
    return f"{text[:half]}\n[{tokens - limit} tokens left out]\n{text[-half:]}"


T = TypeVar("T")


def briefing(engine: Engine, state: SearchState) -> Briefing:
    """The shared part of a prompt: the same for all reflections of a step, so that a prefix cache hits."""
    sections = [
        SectionView(section.name, section.mode, section.limit, section.tokens)
        for section in state.incumbent.sections
        if section.mode != "frozen"
    ]
    notes: dict[str, str] = {}
    for mechanism in engine.mechanisms:
        notes |= mechanism.notes(state)
    return Briefing(
        skill=for_optimizer(state.incumbent, notes),
        task=engine.plan.task,
        sections=sections,
        meta=state.memory.meta,
        rejected=rejected_lines(state.incumbent, state.memory.rejected) if engine.plan.optimize.rejected_buffer else [],
        knowledge=engine.plan.optimize.knowledge,
        last=recent_effects(state),
        first_decides=first_decides(engine.plan.skill, engine.plan.task),
    )


def rejected_lines(skill: Document, entries: Sequence[RejectedEdit]) -> list[str]:
    """The rejected-edit buffer as a prompt shows it, oldest first: the newest entries that fit, each whole.

    What was put aside once and is in the skill now is left out.
    """
    present = {f"add to {section.name}: {rule.text}" for section in skill.sections for rule in section.rules}
    lines = [f"{' '.join(entry.text.split())} ({entry.reason})" for entry in entries if entry.text not in present]
    return take_fitting(lines[::-1], count_tokens, REJECTED_LIMIT)[::-1]


def recent_effects(state: SearchState) -> list[CandidateEffect]:
    """What the last candidates did, as a prompt shows it: the newest that fit, each whole."""
    every = [*([state.memory.again] if state.memory.again else []), *state.memory.effects]
    return take_fitting(every, lambda effect: effect.tokens, EFFECTS_LIMIT)


def take_fitting(entries: Sequence[T], size: Callable[[T], int], limit: int) -> list[T]:
    """The first entries that fit into so many tokens together."""
    sums = accumulate(map(size, entries))
    return [entry for entry, used in zip(entries, sums, strict=True) if used <= limit]


Measured = tuple[Example, Outcome]

# Of an answer, what tells it from others; and how many right answers a table may have before it says nothing.
_ANSWER = 40
_MOST_ANSWERS = 40
_A_CASE = 12
# With fewer failures all are shown, and none is left to judge by; else one of so many is held out.
_LEAST_TO_SPLIT = 6
_HELD_OUT = 3


@dataclass(frozen=True, slots=True)
class ConfusionRow:
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
            key = (visible_gold(plan, example), visible_answer(plan, outcome, _ANSWER))
            groups.setdefault(key, []).append((example, outcome))
    return [pair for group in sorted(groups.values(), key=len, reverse=True) for pair in group]


def held_out(failures: Sequence[Measured], ordinal: int = 0) -> list[Measured]:
    """The failures that an author is not shown, so that they can judge what it writes: a third, none of a few.

    Of failures in the order of `failures_of`, a third of each group; which third follows from the ordinal.
    """
    if len(failures) < _LEAST_TO_SPLIT:
        return []
    return [pair for i, pair in enumerate(failures) if i % _HELD_OUT == ordinal % _HELD_OUT]


def successful_reruns(engine: Engine, skill: Document, pairs: Iterable[Measured]) -> dict[str, Outcome]:
    """By failure, another rollout of the same example under the same skill that came out right."""
    found = {}
    for example, _ in pairs:
        for sample in range(1, engine.plan.optimize.samples):
            outcome = engine.rollouts.known(skill, example, sample)
            if outcome is not None and is_failure(engine.plan, outcome) is False:
                found[example.id] = outcome
                break
    return found


def successes_of(plan: Plan, measured: Iterable[Measured]) -> list[Measured]:
    """The cases that were measured and came out right, in their order."""
    return [(example, outcome) for example, outcome in measured if is_failure(plan, outcome) is False]


def confusion(plan: Plan, measured: Iterable[Measured]) -> list[ConfusionRow]:
    """How often which answer was given, by right answer; empty where gold is withheld or has too many values."""
    table: dict[str, Counter[str | None]] = {}
    for example, outcome in measured:
        gold, failed = visible_gold(plan, example), is_failure(plan, outcome)
        if gold is not None and failed is not None:
            given = visible_answer(plan, outcome, _ANSWER) if failed else None
            table.setdefault(gold, Counter())[given] += 1
    if len(table) > _MOST_ANSWERS:
        return []
    rows = []
    for gold in sorted(table, key=lambda gold: (-sum(table[gold].values()), gold)):
        wrong = [(given, n) for given, n in table[gold].most_common() if given is not None]
        rows.append(ConfusionRow(gold, table[gold][None], tuple(wrong)))
    return rows


def near_successes(
    engine: Engine, failures: Sequence[Measured], rights: Sequence[Measured], count: int
) -> list[Measured]:
    """At most `count` of the right cases: for each failure in turn the nearest of each kind that it has.

    The kinds are: right with the failure's own right answer, right with the answer that it was given, any other.
    """
    plan = engine.plan
    by_id = {example.id: (example, outcome) for example, outcome in rights}
    golds = {example.id: visible_gold(plan, example) for example, _ in rights}
    chosen: dict[str, Measured] = {}
    for wanted in range(3):
        for example, outcome in failures:
            if len(chosen) >= count:
                break
            kinds = [visible_gold(plan, example), visible_answer(plan, outcome, _ANSWER)]
            like = kinds[wanted] if wanted < len(kinds) else None
            among = [name for name in by_id if name not in chosen and (wanted == 2 or golds[name] == like)]
            found = engine.near.to(example, 1, among=among)
            chosen.update((each.id, by_id[each.id]) for each in found)
    return list(chosen.values())[:count]


def further_examples(engine: Engine, shown: Iterable[str], limit: int) -> list[Example]:
    """Training examples beside those that are shown, as many as fit into `limit` tokens; none where gold is withheld.

    They take turns by right answer, so that rare answers are among them, in an order drawn by the seed.
    """
    plan, there = engine.plan, set(shown)
    if "gold" not in plan.optimize.sees:
        return []
    groups: dict[str | None, list[Example]] = {}
    for example in shuffled(engine.dataset.train, seed_for(plan.data.seed, "further examples")):
        if example.id not in there:
            groups.setdefault(visible_gold(plan, example), []).append(example)
    turns = [each for turn in zip_longest(*groups.values()) for each in turn if each is not None]
    chosen: list[Example] = []
    left = limit
    for example in turns:
        texts = [*visible_inputs(example, plan.optimize.trajectory_limit).values(), visible_gold(plan, example) or ""]
        left -= sum(map(count_tokens, texts)) + _A_CASE
        if left < 0:
            break
        chosen.append(example)
    return chosen


# Failures that are remembered, as a multiple of those that one step takes in.
_REMEMBERED = 10
TIMES_UNEXPLAINED = 2


def failures_to_replay(engine: Engine, state: SearchState, batch: Sequence[Example]) -> tuple[Example, ...]:
    """Up to `replay` remembered failures that are not in the batch, the latest first."""
    left_out = {example.id for example in batch} | abandoned_examples(state)
    return tuple(e for e in state.memory.failures if e.id not in left_out)[: engine.plan.optimize.replay]


def abandoned_examples(state: SearchState) -> set[str]:
    """Ids of the examples for which authors found no rule so often that nobody is asked again."""
    return {name for name, times in state.counters.unexplained.items() if times >= TIMES_UNEXPLAINED}


def remember_failures(engine: Engine, state: SearchState, batch: Sequence[Example]) -> SearchState:
    """The state that remembers which examples of a batch its incumbent fails, and forgets those that came right."""
    here = {example.id for example in batch}
    earlier = [example for example in state.memory.failures if example.id not in here]
    latest = (*failing_examples(engine, state.incumbent, batch), *earlier)
    return state.with_memory(failures=latest[: _REMEMBERED * engine.plan.optimize.replay])
