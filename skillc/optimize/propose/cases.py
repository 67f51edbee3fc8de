"""Choose the cases of a prompt, and render them as far as the program lets the optimizer see them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, zip_longest
from types import MappingProxyType
from typing import TypeVar

from pydantic import JsonValue

from skillc.budget.call_sizes import EFFECTS_LIMIT, REJECTED_LIMIT
from skillc.dataclass import dataclass
from skillc.document.offer import OPEN
from skillc.document.skill import Document, for_optimizer, has_text_rules, script_sections
from skillc.optimize.engine import CandidateEffect, Engine, RejectedEdit, SearchState, failing_examples
from skillc.optimize.propose.prompting import Briefing, SectionView, TrajectoryView
from skillc.optimize.rollouts import Outcome, is_failure
from skillc.optimize.schedule import seed_for, shuffled
from skillc.outcomes import MICRO, Example, Scored
from skillc.plan.initial import first_decides
from skillc.plan.schema import Plan
from skillc.program.names import field_names
from skillc.tokens import count_tokens, trim
from skillc.tools.tool import text_lines, with_texts
from skillc.trajectories.signals import signals
from skillc.trajectories.trajectory import Message, Observation, Step, ToolCall, Trajectory, render

# What DSPy's chat adapter writes around the fields of a reply.
_FIELD = re.compile(r"\[\[ ## (\w+) ## \]\]")


def trajectory_view(
    plan: Plan, tag: str, example: Example, outcome: Outcome, *, limit: int | None, right: Outcome | None = None
) -> TrajectoryView:
    """Return one rollout with texts of at most `limit` tokens; `right` is a successful rollout of the same example."""
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
    """Return rollouts with the tags `t1`, `t2`, or another letter; `right` as in `trajectory_view`, by id."""
    return [
        trajectory_view(plan, f"{letter}{i}", example, outcome, limit=limit, right=right.get(example.id))
        for i, (example, outcome) in enumerate(pairs, 1)
    ]


def _steps(plan: Plan, outcome: Outcome, limit: int | None) -> str | None:
    seen = "trajectory" in plan.optimize.sees and not _only_answers(outcome)
    return rendered_steps(_readable(plan, outcome), limit) if seen else None


def _readable(plan: Plan, outcome: Outcome) -> Trajectory:
    """Remove from the steps the parts that a prompt shows elsewhere: the answer, the skill's text, field markers."""
    trajectory, steps = outcome.trajectory, outcome.trajectory.steps
    if len(steps) <= 1:
        return trajectory
    opening, kept = ToolCall(OPEN, {"name": plan.skill.artifact}), list[Step]()
    for before, step in zip((None, *steps), steps, strict=False):
        if isinstance(step, Message) and step.role == "assistant":
            last = step is steps[-1]
            if not (last and outcome.answer is None):
                step = Message(_own_words(step.text, field_names(plan.task).values() if last else ()))
        elif isinstance(step, Observation) and not step.failed and before == opening:
            step = Observation(f"{step.text.splitlines()[0]}\n(its text)")
        if not isinstance(step, Message) or step.text:
            kept.append(step)
    return replace(trajectory, steps=tuple(kept))


def _own_words(reply: str, hidden: Iterable[str]) -> str:
    """Return a reply without field markers and without the fields `hidden`."""
    before, *parts = _FIELD.split(reply)
    if not parts:
        return reply
    out = {"completed", OPEN, *hidden}
    texts = [before, *(text for name, text in zip(parts[::2], parts[1::2], strict=True) if name not in out)]
    return "\n".join(text.strip() for text in texts if text.strip())


def rendered_calls(plan: Plan, outcome: Outcome, limit: int | None) -> str | None:
    """Return an agent's tool calls and their results, without its own text, in at most about `limit` tokens.

    None if it called no tool, if the task has one turn, or if the program withholds trajectories.
    """
    if plan.task.rollout.one_turn or "trajectory" not in plan.optimize.sees:
        return None
    steps = _readable(plan, outcome).steps
    if not any(isinstance(step, Observation) for step in steps):
        return None
    kept = tuple(step for step in steps if not isinstance(step, Message) or step.role == "user")
    return render(replace(outcome.trajectory, steps=kept), limit)


def rendered_steps(trajectory: Trajectory, limit: int | None) -> str:
    """Return a reply, or the steps of several turns with the signals in them, in at most about `limit` tokens."""
    if len(trajectory.steps) <= 1 and all(isinstance(step, Message) for step in trajectory.steps):
        return trim(trajectory.reply, limit)
    return "\n".join([render(trajectory, limit), *(f"[note] {signal}" for signal in signals(trajectory))])


def ids_by_tag(pairs: Sequence[tuple[Example, Outcome]], letter: str = "t") -> dict[str, str]:
    """Return the examples' ids by the tags of `trajectory_views`."""
    return {f"{letter}{i}": example.id for i, (example, _) in enumerate(pairs, 1)}


def _only_answers(outcome: Outcome) -> bool:
    """Return whether a rollout is a single reply with only the answer and its field markers."""
    if len(outcome.trajectory.steps) > 1:
        return False
    values = [_shown(value) for value in outcome.answer.values()] if outcome.answer is not None else []
    return _FIELD.sub("", outcome.trajectory.reply).split() == " ".join(values).split()


def visible_inputs(example: Example, limit: int | None) -> dict[str, str]:
    """Return the example's inputs as trimmed texts; an image as its label."""
    return {
        name: example.labels[name] if name in example.labels else trim(_shown(value), limit)
        for name, value in example.inputs.items()
    }


def visible_answer(plan: Plan, outcome: Outcome, limit: int | None) -> str:
    """Return the target's answer; its reply if no answer is readable, unless trajectories are withheld."""
    if outcome.answer is not None:
        return trim(_shown(outcome.answer), limit)
    return trim(outcome.trajectory.reply, limit) if "trajectory" in plan.optimize.sees else "(no answer could be read)"


def visible_gold(plan: Plan, example: Example) -> str | None:
    """Return the right answer, None if the program withholds it or there is none, as in an environment."""
    return _shown(example.gold) if "gold" in plan.optimize.sees and example.gold else None


def visible_feedback(plan: Plan, outcome: Outcome) -> str | None:
    """Return the metrics' feedback, None if the program withholds it."""
    return outcome.feedback if "feedback" in plan.optimize.sees else None


def _shown(value: object) -> str:
    """Write a value: the bare text of a single answer, JSON of anything larger."""
    if isinstance(value, str):
        return value
    if hasattr(value, "items"):
        entries: dict[str, JsonValue] = dict(value.items())
        if len(entries) == 1:
            return _shown(next(iter(entries.values())))
        return json.dumps(entries, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False)


def first_sentences(text: str, limit: int) -> str:
    """Return the first sentences of a text within `limit` tokens, at least one."""
    first, *more = re.split(r"(?<=[.!?;])\s+", " ".join(text.split()))
    for sentence in more:
        if count_tokens(longer := f"{first} {sentence}") > limit:
            break
        first = longer
    return first


def shorten(text: str, characters: int) -> str:
    """Return the beginning of a text on one line, cut after a word."""
    line = " ".join(text.split())
    return line if len(line) <= characters else f"{line[:characters].rsplit(' ', 1)[0]} …"


T = TypeVar("T")


def briefing(engine: Engine, state: SearchState) -> Briefing:
    """Return the shared part of a prompt, the same for all reflections of a step, so that a prefix cache hits."""
    notes: dict[str, str] = {}
    for mechanism in engine.mechanisms:
        notes |= mechanism.notes(state)
    scripts = script_sections(state.incumbent)
    for section in scripts:
        if section.name in engine.scripts.sources:
            notes |= {rule.id: f"its tests:\n{engine.scripts.sources[section.name]}" for rule in section.rules}
    return Briefing(
        skill=for_optimizer(state.incumbent, notes),
        task=engine.plan.task,
        sections=section_views(state.incumbent),
        meta=state.memory.meta,
        rejected=rejected_lines(state.incumbent, state.memory.rejected) if engine.plan.optimize.rejected_buffer else [],
        knowledge=engine.plan.optimize.knowledge,
        last=recent_effects(state),
        first_decides=first_decides(engine.plan.skill, engine.plan.task),
        opens=engine.plan.skill.load == "on_demand",
        lead="" if has_text_rules(state.incumbent) else state.incumbent.lead,
        tools=text_lines(with_texts(engine.tools, state.incumbent, renames=engine.plan.skill.renames_tools)),
        renames_tools=engine.plan.skill.renames_tools,
        answered=engine.dataset.answered,
        scripts=[(each.name, each.file or "", rule.id) for each in scripts for rule in each.rules],
    )


def section_views(skill: Document) -> list[SectionView]:
    """Return the sections that the optimizer may edit."""
    return [SectionView(s.name, s.mode, s.limit, s.tokens) for s in skill.sections if s.mode != "frozen"]


def rejected_lines(skill: Document, entries: Sequence[RejectedEdit]) -> list[str]:
    """Return the newest entries of the rejected-edit buffer that fit in a prompt, oldest first.

    Edits that are in the skill now are skipped.
    """
    present = {f"add to {section.name}: {rule.text}" for section in skill.sections for rule in section.rules}
    scripts = tuple(f"replace {rule.id}:" for section in script_sections(skill) for rule in section.rules)

    def line(entry: RejectedEdit) -> str:
        text = shorten(entry.text, _SCRIPT) if entry.text.startswith(scripts) else " ".join(entry.text.split())
        return f"{text} ({entry.reason})"

    lines = [line(entry) for entry in entries if entry.text not in present]
    return take_fitting(lines[::-1], count_tokens, REJECTED_LIMIT)[::-1]


def recent_effects(state: SearchState) -> list[CandidateEffect]:
    """Return the newest effects of candidates that fit in a prompt."""
    every = [*([state.memory.again] if state.memory.again else []), *state.memory.effects]
    return take_fitting(every, lambda effect: effect.tokens, EFFECTS_LIMIT)


def take_fitting(entries: Sequence[T], size: Callable[[T], int], limit: int) -> list[T]:
    """Return the first entries within `limit` tokens."""
    sums = accumulate(map(size, entries))
    return [entry for entry, used in zip(entries, sums, strict=True) if used <= limit]


Measured = tuple[Example, Outcome]

# Tokens by which answers are compared, and the maximum number of right answers in a useful confusion table.
_ANSWER = 40
_MOST_ANSWERS = 40
_A_CASE = 12
# Characters of a rejected script in a prompt; its reason says what failed.
_SCRIPT = 400
# Minimum number of failures for holding some out, and the share that is held out: one in this many.
_LEAST_TO_SPLIT = 6
_HELD_OUT = 3


@dataclass(frozen=True, slots=True)
class ConfusionRow:
    """A row of the confusion table.

    Attributes:
        right: the number of successes.
        wrong: wrong answers with their counts, the most frequent first.
    """

    gold: str
    right: int
    wrong: tuple[tuple[str, int], ...]


def failures_of(plan: Plan, measured: Iterable[Measured]) -> list[Measured]:
    """Return the measured failures, grouped by right and given answer, the largest group first."""
    groups: dict[tuple[str | None, str], list[Measured]] = {}
    for example, outcome in measured:
        if is_failure(plan, outcome):
            key = (visible_gold(plan, example), visible_answer(plan, outcome, _ANSWER))
            groups.setdefault(key, []).append((example, outcome))
    return [pair for group in sorted(groups.values(), key=len, reverse=True) for pair in group]


def held_out(failures: Sequence[Measured], ordinal: int = 0) -> list[Measured]:
    """Return the failures that are held out from the author to judge its edits: a third, or none if there are few.

    `failures` is in the order of `failures_of`. The ordinal selects which third of each group is held out.
    """
    if len(failures) < _LEAST_TO_SPLIT:
        return []
    return [pair for i, pair in enumerate(failures) if i % _HELD_OUT == ordinal % _HELD_OUT]


def successful_reruns(engine: Engine, skill: Document, pairs: Iterable[Measured]) -> dict[str, Outcome]:
    """Return a successful rollout of the same example under the same skill, by failure."""
    found = {}
    for example, _ in pairs:
        for sample in range(1, engine.plan.optimize.samples):
            outcome = engine.rollouts.known(skill, example, sample)
            if outcome is not None and is_failure(engine.plan, outcome) is False:
                found[example.id] = outcome
                break
    return found


def successes_of(plan: Plan, measured: Iterable[Measured]) -> list[Measured]:
    """Return the measured successes, in order."""
    return [(example, outcome) for example, outcome in measured if is_failure(plan, outcome) is False]


def confusion(plan: Plan, measured: Iterable[Measured]) -> list[ConfusionRow]:
    """Count the given answers by right answer; empty if gold is withheld or has too many values."""
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
    """Choose at most `count` successes that show where a rule ends: for each failure in turn the nearest of each kind.

    The kinds are: the failure's right answer, its given answer, any other.
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


# Tokens of the calls in a further example.
_CALLS = 300


def looks_things_up(plan: Plan, measured: Iterable[Measured]) -> bool:
    """Return whether rollouts contain an agent's observations, without which an example is of little use."""
    return any(rendered_calls(plan, outcome, _CALLS) is not None for _, outcome in measured)


def calls_on(engine: Engine, skills: Sequence[Document], example: Example) -> str | None:
    """Return the calls on an example, under the first of the skills with which it was run."""
    outcomes = (engine.rollouts.known(skill, example) for skill in skills)
    outcome = next((each for each in outcomes if each is not None and each.measured), None)
    return rendered_calls(engine.plan, outcome, _CALLS) if outcome is not None else None


def further_examples(
    engine: Engine, shown: Iterable[str], limit: int, calls: Callable[[Example], str | None] | None = None
) -> list[Example]:
    """Choose further training examples with a right answer within `limit` tokens; none if gold is withheld.

    They alternate between right answers, so that rare answers are included, in an order drawn by the seed. With
    `calls`, only examples with known calls are chosen.
    """
    plan, there = engine.plan, set(shown)
    groups: dict[str, list[Example]] = {}
    for example in shuffled(engine.dataset.train, seed_for(plan.data.seed, "further examples")):
        gold = visible_gold(plan, example)
        if example.id not in there and gold is not None and (calls is None or calls(example) is not None):
            groups.setdefault(gold, []).append(example)
    turns = [each for turn in zip_longest(*groups.values()) for each in turn if each is not None]
    chosen: list[Example] = []
    left = limit
    for example in turns:
        texts = [*visible_inputs(example, plan.optimize.trajectory_limit).values(), visible_gold(plan, example) or ""]
        texts += [calls(example) or ""] if calls is not None else []
        left -= sum(map(count_tokens, texts)) + _A_CASE
        if left < 0:
            break
        chosen.append(example)
    return chosen


# Remembered failures, as a multiple of those replayed in one step.
_REMEMBERED = 10
TIMES_UNEXPLAINED = 2


def failures_to_replay(engine: Engine, state: SearchState, batch: Sequence[Example]) -> tuple[Example, ...]:
    """Return up to `replay` remembered failures outside of the batch, the latest first."""
    left_out = {example.id for example in batch} | abandoned_examples(state)
    return tuple(e for e in state.memory.failures if e.id not in left_out)[: engine.plan.optimize.replay]


def abandoned_examples(state: SearchState) -> set[str]:
    """Return the ids of the examples for which authors found no rule too often."""
    return {name for name, times in state.counters.unexplained.items() if times >= TIMES_UNEXPLAINED}


def remember_failures(engine: Engine, state: SearchState, batch: Sequence[Example]) -> SearchState:
    """Remember the failures of the incumbent in a batch, and forget its successes."""
    here = {example.id for example in batch}
    earlier = [example for example in state.memory.failures if example.id not in here]
    latest = (*failing_examples(engine, state.incumbent, batch), *earlier)
    return state.with_memory(failures=latest[: _REMEMBERED * engine.plan.optimize.replay])
