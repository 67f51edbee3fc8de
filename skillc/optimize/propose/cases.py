"""Cases as a prompt shows them, limited to what the program lets the optimizer see, and the shared briefing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import TypeVar

from pydantic import JsonValue

from skillc.budget.call_sizes import EFFECTS_LIMIT, REJECTED_LIMIT
from skillc.document.skill import Document, for_optimizer
from skillc.optimize.engine import Effect, Engine, Rejected, State
from skillc.optimize.propose.prompting import Briefing, SectionView, TrajectoryView
from skillc.optimize.rollouts import Outcome
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
        inputs=shown_inputs(example, limit),
        answer=shown_answer(plan, outcome, limit),
        gold=shown_gold(plan, example),
        feedback=shown_feedback(plan, outcome),
        trajectory=_steps(plan, outcome, limit),
        score=f"{goal.value / MICRO:g}" if isinstance(goal, Scored) else "not measured",
        otherwise=(_steps(plan, right, limit), shown_answer(plan, right, limit)) if right is not None else None,
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
    return trimmed(outcome.reply, limit) if seen else None


def ids_by_tag(pairs: Sequence[tuple[Example, Outcome]]) -> dict[str, str]:
    """The examples' ids by the tags that `trajectory_views` gives them."""
    return {f"t{i}": example.id for i, (example, _) in enumerate(pairs, 1)}


def _only_answers(outcome: Outcome) -> bool:
    """Whether a reply holds the answer and, beside the markers of its fields, nothing else."""
    values = [_shown(value) for value in outcome.answer.values()] if outcome.answer is not None else []
    return _MARKER.sub("", outcome.reply).split() == " ".join(values).split()


def shown_inputs(example: Example, limit: int | None) -> dict[str, str]:
    """The example's inputs as texts, each trimmed."""
    return {name: trimmed(_shown(value), limit) for name, value in example.inputs.items()}


def shown_answer(plan: Plan, outcome: Outcome, limit: int | None) -> str:
    """What the target answered; its reply where no answer could be read from it, unless trajectories are withheld."""
    if outcome.answer is not None:
        return trimmed(_shown(outcome.answer), limit)
    return trimmed(outcome.reply, limit) if "trajectory" in plan.optimize.sees else "(no answer could be read)"


def shown_gold(plan: Plan, example: Example) -> str | None:
    """The right answer, None where the program withholds it."""
    return _shown(example.gold) if "gold" in plan.optimize.sees else None


def shown_feedback(plan: Plan, outcome: Outcome) -> str | None:
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


def opening(text: str, limit: int) -> str:
    """The first sentences of a text that fit into `limit` tokens together; the first one in any case."""
    first, *more = re.split(r"(?<=[.!?;])\s+", " ".join(text.split()))
    for sentence in more:
        if count_tokens(longer := f"{first} {sentence}") > limit:
            break
        first = longer
    return first


def shortened(text: str, characters: int) -> str:
    """The beginning of a text on one line, cut behind a word."""
    line = " ".join(text.split())
    return line if len(line) <= characters else f"{line[:characters].rsplit(' ', 1)[0]} …"


def trimmed(text: str, limit: int | None) -> str:
    """A text of at most about `limit` tokens: its beginning and its end, with a note of what is left out."""
    if limit is None or len(text) <= limit:
        return text
    tokens = count_tokens(text)
    if tokens <= limit:
        return text
    half = max(1, len(text) * limit // tokens // 2)
    return f"{text[:half]}\n[{tokens - limit} tokens left out]\n{text[-half:]}"


T = TypeVar("T")


def briefing(engine: Engine, state: State) -> Briefing:
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
        rejected=shown_rejected(state.incumbent, state.memory.rejected) if engine.plan.optimize.rejected_buffer else [],
        knowledge=engine.plan.optimize.knowledge,
        last=shown_effects(state),
        first_decides=first_decides(engine.plan.skill, engine.plan.task),
    )


def shown_rejected(skill: Document, entries: Sequence[Rejected]) -> list[str]:
    """The rejected-edit buffer as a prompt shows it, oldest first: the newest entries that fit, each whole.

    What was put aside once and is in the skill now is left out.
    """
    present = {f"add to {section.name}: {rule.text}" for section in skill.sections for rule in section.rules}
    lines = [f"{' '.join(entry.text.split())} ({entry.reason})" for entry in entries if entry.text not in present]
    return fitting(lines[::-1], count_tokens, REJECTED_LIMIT)[::-1]


def shown_effects(state: State) -> list[Effect]:
    """What the last candidates did, as a prompt shows it: the newest that fit, each whole."""
    every = [*([state.memory.again] if state.memory.again else []), *state.memory.effects]
    return fitting(every, lambda effect: effect.tokens, EFFECTS_LIMIT)


def fitting(entries: Sequence[T], size: Callable[[T], int], limit: int) -> list[T]:
    """The first entries that fit into so many tokens together."""
    sums = accumulate(map(size, entries))
    return [entry for entry, used in zip(entries, sums, strict=True) if used <= limit]
