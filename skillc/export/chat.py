"""Chat examples and preference pairs from a recorded run, in the conversational layouts that TRL reads.

Only rollouts of training examples are taken, validation on request, and test never. The prompt is the one that the
target got: it is made again by the module that the rollout used.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.export.rollouts import Row
from skillc.export.turns import Messages, Turn, Turns
from skillc.models.roles import declared_secrets
from skillc.optimize.rollouts import Outcome
from skillc.outcomes import MICRO, Example, Scored
from skillc.redaction import Redactor
from skillc.review.run_view import RunView, read_run
from skillc.review.stored import NO_SKILL

Keep = Literal["keep", "drop"]
Split = Literal["train", "validation"]
Kind = Literal["sft", "dpo"]

LENGTH_BIAS = 1.25
"""The ratio of mean lengths, chosen to rejected, from which DPO may learn the length instead of what is right (Park et
al. 2024, arXiv:2403.19159)."""


@dataclass(frozen=True, slots=True)
class Chats:
    """Rows for training, and what they are made of.

    Attributes:
        rows: in the order of the data; `prompt` and `completion`, or `prompt`, `chosen` and `rejected`.
        examples: those behind the rows, in the same order, each once.
        splits: number of rows by split.
        left_out: number of examples that gave no row, by reason.
        sessions: keys of the sessions behind the rows.
        lengths: mean characters of the completions, or of chosen and rejected answers.
        skill: whether prompts keep the skill's text, or the system instructions of a session.
        notes: further warnings.
    """

    kind: Kind
    rows: tuple[Row, ...] = field(repr=False)
    examples: tuple[Example, ...] = field(default=(), repr=False)
    splits: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    sessions: tuple[str, ...] = ()
    lengths: Mapping[str, float] = field(default_factory=dict)
    skill: Keep | None = None
    notes: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is dangerous about the rows, a sentence each."""
        chosen, rejected = self.lengths.get("chosen", 0.0), self.lengths.get("rejected", 0.0)
        if not chosen or not rejected or 1 / LENGTH_BIAS < chosen / rejected < LENGTH_BIAS:
            return self.notes
        longer = "longer" if chosen > rejected else "shorter"
        return (
            *self.notes,
            f"length bias: chosen answers have {chosen:.0f} characters on average, rejected ones {rejected:.0f}; DPO "
            f"may learn to answer {longer} instead of right",
        )


@dataclass(frozen=True, slots=True)
class _Try:
    """A measured rollout of an example. `order` is that of its skill: the compiled one first, then the newest."""

    outcome: Outcome
    skill: str
    order: int
    score: int

    @property
    def reply(self) -> str:
        return self.outcome.trajectory.reply


class RunChats:
    """Chat examples of a run.

    Args:
        program: the program, or the folder of its skill.
        run: the beginning of the id of another run than the last.
        skill: whether prompts keep the skill's text; `drop` trains its content into the weights.
        splits: `train`, and `validation` on request.
        threshold: the lowest score of the goal at which an answer is right.
        environ: has the values of the secrets that are redacted.

    Raises:
        SkillcError: as `read_run`; the run was not recorded on this machine; the data changed; or the prompts of the
            kind of rollout cannot be made again.
    """

    def __init__(
        self,
        program: Path,
        run: str | None = None,
        *,
        skill: Keep = "drop",
        splits: Sequence[Split] = ("train",),
        threshold: float = 1.0,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.view = view = read_run(program, run)
        self.skill: Keep = skill
        self._splits = frozenset(splits)
        self._threshold = round(threshold * MICRO)
        self._one_turn = view.plan.task.rollout.one_turn
        _check(view, skill)
        self._hide = Redactor(declared_secrets(view.plan, os.environ if environ is None else environ))
        best = [view.best, *(each for each in reversed(view.versions) if each != view.best)]
        others = [each for each in view.skills if each not in best]
        self._order = {name: number for number, name in enumerate([*best, *others, NO_SKILL])}

    def sft(self) -> Chats:
        """Return the chat examples of each example with a right rollout: the turns of the best one.

        Of several with the highest score, the one of the compiled skill, then the shortest reply. A turn whose call
        failed is in the prompts of later ones, and no row.
        """
        rows, left, splits, kept = list[Row](), Counter[str](), Counter[str](), list[Example]()
        with Turns(self.view) as turns:
            for split, example, top, _ in self._right(left):
                played = turns.of(self._prompted(top), example, top.outcome.trajectory)
                good = [each for each in played if not each.failed]
                if not good:
                    left["turns cannot be told apart"] += 1
                    continue
                left.update({"turns whose call failed": len(played) - len(good)} if len(good) < len(played) else ())
                rows += [self._row({"prompt": each.prompt, "completion": [each.reply]}, each) for each in good]
                kept.append(example)
                splits[split] += len(good)
        lengths = {"completion": fmean(spoken_length(row, "completion") for row in rows)} if rows else {}
        return Chats("sft", tuple(rows), tuple(kept), splits, left, lengths=lengths, skill=self.skill)

    def dpo(self, margin: float = 0.5) -> Chats:
        """Return one pair for each example with a right rollout and one that is worse by at least `margin`.

        The rejected answer is a readable one where there is one, so that the pair is about what is right and not about
        the form; then the worst, then the one whose length is nearest to the chosen answer's. Of an agent, the two
        replies are those where the rollouts part.

        Raises:
            SkillcError: the margin is not above 0.
        """
        if not margin > 0:
            raise SkillcError(f"a margin of `{margin:g}` accepts pairs of equal scores", hint="use one above 0")
        rows, left, splits, kept = list[Row](), Counter[str](), Counter[str](), list[Example]()
        least = round(margin * MICRO)
        with Turns(self.view) as turns:
            for split, example, top, tries in self._right(left):
                wrong = [
                    each
                    for each in tries
                    if each.score <= min(top.score - least, self._threshold - 1)
                    and (not self._one_turn or each.reply.strip() not in ("", top.reply.strip()))
                ]
                if not wrong:
                    left["no wrong answer by the margin"] += 1
                    continue
                skill = self._prompted(top)
                right = turns.of(skill, example, top.outcome.trajectory)
                others = (
                    turns.of(skill, example, each.outcome.trajectory)
                    for each in sorted(wrong, key=lambda each: _unlike(each, top))
                )
                pair = next((found for other in others if (found := parting(right, other)) is not None), None)
                if pair is None:
                    left["no reply where a right and a wrong rollout part"] += 1
                    continue
                sides = {"prompt": pair[0].prompt, "chosen": [pair[0].reply], "rejected": [pair[1].reply]}
                rows.append(self._row(sides, pair[0]))
                kept.append(example)
                splits[split] += 1
        return Chats("dpo", tuple(rows), tuple(kept), splits, left, lengths=pair_lengths(rows), skill=self.skill)

    def _right(self, left: Counter[str]) -> Iterator[tuple[str, Example, _Try, list[_Try]]]:
        """Yield the examples with a right rollout, the best one and all; count the others."""
        for split, example, tries in self._tried(left):
            right = [
                each for each in tries if each.score >= self._threshold and (not self._one_turn or each.reply.strip())
            ]
            if right:
                top = min(right, key=lambda each: (-each.score, each.order, len(each.reply), each.reply))
                yield split, example, top, tries
            else:
                left["no right answer" if tries else "no measured rollout"] += 1

    def _prompted(self, top: _Try) -> str | None:
        """Return the skill in the prompts."""
        return None if self.skill == "drop" else top.skill

    def _row(self, row: Mapping[str, Messages], turn: Turn) -> Row:
        plain: dict[str, Any] = {**row, **({"tools": list(turn.tools)} if turn.tools else {})}
        hidden: Row = self._hide.value(plain)
        return hidden

    def _tried(self, left: Counter[str]) -> Iterator[tuple[str, Example, list[_Try]]]:
        """Yield the examples that may be trained on, with their measured rollouts; count the others."""
        tries = defaultdict[str, list[_Try]](list)
        outcomes, goal = self.view.outcomes, self.view.plan.goal.name
        for skill, example, sample in outcomes if outcomes is not None else ():
            outcome = self.view.outcome(skill, example, sample)
            cell = outcome.cells.get(goal) if outcome is not None else None
            if outcome is not None and isinstance(cell, Scored):
                tries[example].append(_Try(outcome, skill, self._order.get(skill, len(self._order)), cell.value))
        for name, placed in self.view.examples.items():
            if placed.split not in self._splits:
                left[f"of {placed.split}"] += 1
                continue
            yield placed.split, placed.example, tries[name]


def parting(right: Sequence[Turn], wrong: Sequence[Turn]) -> tuple[Turn, Turn] | None:
    """Return the first turns of two rollouts whose replies differ; None if their prompts do by then."""
    for one, other in zip(right, wrong, strict=False):
        if one.prompt != other.prompt:
            return None
        if one.reply != other.reply:
            return None if one.failed else (one, other)
    return None


def pair_lengths(rows: Sequence[Row]) -> dict[str, float]:
    """Return the mean characters of chosen and of rejected answers; nothing without pairs."""
    return {side: fmean(spoken_length(row, side) for row in rows) for side in ("chosen", "rejected")} if rows else {}


def _unlike(each: _Try, top: _Try) -> tuple[bool, int, int, int, str]:
    return each.outcome.answer is None, each.score, abs(len(each.reply) - len(top.reply)), each.order, each.reply


def _check(view: RunView, skill: Keep) -> None:
    plan = view.plan
    if view.outcomes is None:
        raise SkillcError(
            f"the rollouts of run `{view.run[:8]}` are not on this machine",
            hint="they are in `.skillc`, on the machine that compiled",
        )
    if not view.examples:
        raise SkillcError(
            "the data changed since this compile, so the splits of its examples are unknown",
            hint="compile again, or bring back the data that the lock names",
        )
    if plan.skill.load == "on_demand" and skill == "keep":
        raise SkillcError(
            "the target opens this skill by itself (`load = on_demand`), so no prompt contains it",
            hint="use `--skill drop`",
        )
    if any(field.type.kind in ("image", "file") for field in plan.task.inputs):
        raise SkillcError("inputs that are images or files cannot be exported as chat examples", hint=_TEXT_ONLY)


_TEXT_ONLY = "chat examples contain text only"


def spoken_length(row: Row, side: str) -> int:
    """Return the characters of the assistant's messages and calls on a side of a row."""
    messages: Any = row[side]
    spoken = [each for each in messages if each["role"] == "assistant"]
    return sum(len(each["content"]) + sum(len(json.dumps(c)) for c in each.get("tool_calls", ())) for each in spoken)
