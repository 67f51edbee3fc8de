"""Chat examples and preference pairs from a recorded run, in the conversational layouts that TRL reads.

Only rollouts of training examples are taken, validation on request, and test never. The prompt is the one that the
target got: it is made again by the module that the rollout used.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, TypeAlias

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.export.rollouts import Row
from skillc.models.roles import declared_secrets
from skillc.optimize.rollouts import Outcome
from skillc.outcomes import MICRO, Example, Scored
from skillc.plan.schema import Plan
from skillc.redaction import Redactor
from skillc.review.run_view import RunView, read_run
from skillc.review.stored import NO_SKILL
from skillc.tasks.kind import Skill

Keep = Literal["keep", "drop"]
Split = Literal["train", "validation"]
Kind = Literal["sft", "dpo"]

LENGTH_BIAS = 1.25
"""The ratio of mean lengths, chosen to rejected, from which DPO may learn the length instead of what is right (Park et
al. 2024, arXiv:2403.19159)."""
_ONE_TURN = ("predict", "chain_of_thought")

Messages: TypeAlias = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Chats:
    """Rows for training, and what they are made of.

    Attributes:
        rows: in the order of the data; `prompt` and `completion`, or `prompt`, `chosen` and `rejected`.
        examples: those behind the rows, in the same order; empty for sessions.
        splits: number of rows by split.
        left_out: number of examples that gave no row, by reason.
        sessions: keys of the sessions behind the rows.
        lengths: mean characters of the completions, or of chosen and rejected answers.
    """

    kind: Kind
    rows: tuple[Row, ...] = field(repr=False)
    examples: tuple[Example, ...] = field(default=(), repr=False)
    splits: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    sessions: tuple[str, ...] = ()
    lengths: Mapping[str, float] = field(default_factory=dict)
    skill: Keep | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is dangerous about the rows, a sentence each."""
        chosen, rejected = self.lengths.get("chosen", 0.0), self.lengths.get("rejected", 0.0)
        if not chosen or not rejected or 1 / LENGTH_BIAS < chosen / rejected < LENGTH_BIAS:
            return ()
        longer = "longer" if chosen > rejected else "shorter"
        return (
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
        _check(view, skill)
        self._hide = Redactor(declared_secrets(view.plan, os.environ if environ is None else environ))
        best = [view.best, *(each for each in reversed(view.versions) if each != view.best)]
        others = [each for each in view.skills if each not in best]
        self._order = {name: number for number, name in enumerate([*best, *others, NO_SKILL])}

    def sft(self) -> Chats:
        """Return one chat example for each example with a right rollout: the best one.

        Of several with the highest score, the one of the compiled skill, then the shortest reply.
        """
        rows, left, splits, kept = list[Row](), Counter[str](), Counter[str](), list[Example]()
        prompts = _Prompts(self.view)
        for split, example, tries in self._tried(left):
            right = [each for each in tries if each.score >= self._threshold and each.reply.strip()]
            if not right:
                left["no right answer" if tries else "no measured rollout"] += 1
                continue
            best = min(right, key=lambda each: (-each.score, each.order, len(each.reply), each.reply))
            prompt = prompts.of(None if self.skill == "drop" else best.skill, example)
            rows.append(self._row({"prompt": prompt, "completion": _assistant(best.reply)}))
            kept.append(example)
            splits[split] += 1
        lengths = {"completion": fmean(_length(row, "completion") for row in rows)} if rows else {}
        return Chats("sft", tuple(rows), tuple(kept), splits, left, lengths=lengths, skill=self.skill)

    def dpo(self, margin: float = 0.5) -> Chats:
        """Return one pair for each example with a right rollout and one that is worse by at least `margin`.

        The rejected answer is a readable one where there is one, so that the pair is about what is right and not about
        the form; then the worst, then the one whose length is nearest to the chosen answer's.

        Raises:
            SkillcError: the margin is not above 0.
        """
        if not margin > 0:
            raise SkillcError(f"a margin of `{margin:g}` accepts pairs of equal scores", hint="use one above 0")
        rows, left, splits, kept = list[Row](), Counter[str](), Counter[str](), list[Example]()
        least = round(margin * MICRO)
        prompts = _Prompts(self.view)
        for split, example, tries in self._tried(left):
            right = [each for each in tries if each.score >= self._threshold and each.reply.strip()]
            if not right:
                left["no right answer" if tries else "no measured rollout"] += 1
                continue
            top = min(right, key=lambda each: (-each.score, each.order, len(each.reply), each.reply))
            wrong = [
                each
                for each in tries
                if each.score <= min(top.score - least, self._threshold - 1)
                and each.reply.strip() not in ("", top.reply.strip())
            ]
            if not wrong:
                left["no wrong answer by the margin"] += 1
                continue
            worst = min(wrong, key=lambda each: _unlike(each, top))
            prompt = prompts.of(None if self.skill == "drop" else top.skill, example)
            row = {"prompt": prompt, "chosen": _assistant(top.reply), "rejected": _assistant(worst.reply)}
            rows.append(self._row(row))
            kept.append(example)
            splits[split] += 1
        return Chats("dpo", tuple(rows), tuple(kept), splits, left, lengths=pair_lengths(rows), skill=self.skill)

    def _row(self, row: Mapping[str, Messages]) -> Row:
        plain: dict[str, Any] = dict(row)
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


def pair_lengths(rows: Sequence[Row]) -> dict[str, float]:
    """Return the mean characters of chosen and of rejected answers; nothing without pairs."""
    return {side: fmean(_length(row, side) for row in rows) for side in ("chosen", "rejected")} if rows else {}


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
    kind = plan.task.rollout.kind
    if kind not in _ONE_TURN:
        raise SkillcError(
            f"prompts of `{kind}` rollouts cannot be made again",
            hint="rollouts of one turn can be exported; of agents, use `--from-sessions`",
        )
    if plan.skill.load == "on_demand" and skill == "keep":
        raise SkillcError(
            "the target opens this skill by itself (`load = on_demand`), so no prompt contains it",
            hint="use `--skill drop`",
        )
    if any(field.type.kind in ("image", "file") for field in plan.task.inputs):
        raise SkillcError("inputs that are images or files cannot be exported as chat examples", hint=_TEXT_ONLY)


_TEXT_ONLY = "chat examples contain text only"


class _Prompts:
    """The messages that the target gets, made by the module and the adapter of rollouts, without a call."""

    def __init__(self, view: RunView) -> None:
        self._view = view
        self._modules = dict[str | None, Any]()

    def of(self, skill: str | None, example: Example) -> Messages:
        """Return the messages for an example, with a skill by its digest, or without one."""
        text = None if skill in (None, NO_SKILL) else Skill.of(self._view.skills[skill]).text
        if text not in self._modules:
            self._modules[text] = _module(self._view.plan, text, self._view.program.parent)
        return prompt_messages(self._modules[text], example)


def _module(plan: Plan, text: str | None, root: Path) -> Any:
    from skillc.program.module import SkillModule
    from skillc.program.names import as_read, instructions

    task = plan.task
    return SkillModule(as_read(task), plan.skill.name, instructions(task, text), root=root)


def prompt_messages(module: Any, example: Example) -> Messages:
    """Return the messages that a module sends for an example. Nothing is sent: the model of this call records them."""
    import dspy

    class Recorded(Exception):  # noqa: N818 -- ends the call, no error
        pass

    class Recorder(dspy.ChatAdapter):  # type: ignore[misc]  # dspy has no types
        messages: Messages

        def format(self, *args: Any, **kwargs: Any) -> Any:
            self.messages = super().format(*args, **kwargs)
            raise Recorded

    recorder = Recorder(use_json_adapter_fallback=False)
    try:
        # No call is made: the adapter raises as soon as it has the messages.
        with dspy.context(lm=dspy.LM("none/none"), adapter=recorder, warn_on_type_mismatch=False):
            module(**example.inputs)
    except Recorded:
        pass
    return [{"role": str(each["role"]), "content": str(each["content"])} for each in recorder.messages]


def _assistant(text: str) -> Messages:
    return [{"role": "assistant", "content": text}]


def _length(row: Row, side: str) -> int:
    messages: Any = row[side]
    return sum(len(each["content"]) for each in messages if each["role"] == "assistant")
