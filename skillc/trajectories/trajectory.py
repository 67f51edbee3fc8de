"""What happened in one rollout, in one form for every kind: messages, tool calls, observations and changed files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, fields, replace
from itertools import groupby
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from skillc.dataclass import dataclass
from skillc.json_values import JsonObject
from skillc.redaction import redact_value
from skillc.tokens import count_tokens, trim

Outcome = Literal["finished", "turns", "time", "failed"]
"""How a rollout ended: by itself, at its limit of turns or time, or by a failure of what it ran in."""


@dataclass(frozen=True, slots=True)
class Message:
    """A text of the model, or of the user that it talks to."""

    text: str
    role: Literal["assistant", "user"] = "assistant"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool, an action in an environment, or a command.

    Attributes:
        tool: its name in the program; empty if there is no tool that the agent could have called so.
        name: the name that the agent used, where it differs.
    """

    tool: str
    arguments: JsonObject = field(default_factory=dict)
    name: str = ""

    @property
    def shown(self) -> str:
        """The name that the agent used, with that of the program where it differs."""
        return f"{self.name} ({self.tool})" if self.name and self.tool else self.name or self.tool


@dataclass(frozen=True, slots=True)
class Observation:
    """What a tool or an environment answered; `failed` if it was an error."""

    text: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file of the workspace that the rollout changed; its text is None where it is no UTF-8 or too large."""

    path: str
    change: Literal["added", "changed", "removed"]
    text: str | None = None


Step: TypeAlias = Message | ToolCall | Observation | FileChange
_KINDS: Mapping[str, type[Any]] = MappingProxyType(
    {"message": Message, "call": ToolCall, "observation": Observation, "file": FileChange}
)
_NAMES = {kind: name for name, kind in _KINDS.items()}


@dataclass(frozen=True, slots=True)
class Trajectory:
    """The steps of one rollout, in order, how it ended, and what it came to.

    Attributes:
        answer: value by output of the task; None if there is no readable answer.
        problem: why there is none; the rollout gets the worst score of each metric.
        reward: the score that an environment gave, 0 to 1; None without one.
        turns: calls of the model, or turns that an agent reports.
        seconds: wall time, in which a call of a model counts with the time that it took when it was sent, also if its
            reply is cached, and without waiting for a slot. A rollout of one turn has the time of its call alone. No
            prompt shows it, since it differs between runs of the same calls.
        tokens: of all calls.
        cost: nano-dollars at list price; None if a price is unknown.
        timed: whether `seconds` is that time; False if a cached reply has none.
    """

    steps: tuple[Step, ...] = ()
    answer: JsonObject | None = None
    problem: str | None = None
    outcome: Outcome = "finished"
    reward: float | None = None
    turns: int = 1
    seconds: float = 0.0
    tokens: int = 0
    cost: int | None = 0
    timed: bool = True

    @property
    def reply(self) -> str:
        """The last message of the model; empty if it wrote none."""
        texts = (step.text for step in reversed(self.steps) if isinstance(step, Message) and step.role == "assistant")
        return next(texts, "")

    def calls(self) -> tuple[ToolCall, ...]:
        """Return the calls of tools, in order."""
        return tuple(step for step in self.steps if isinstance(step, ToolCall))

    def to_json(self) -> JsonObject:
        """Return the form of records and reports, without values that are defaults."""
        steps: list[Any] = [[_NAMES[type(step)], *_values(step)] for step in self.steps]
        rest = {each.name: getattr(self, each.name) for each in fields(self)[1:]}
        return {"steps": steps, **{name: value for name, value in rest.items() if value != _DEFAULTS[name]}}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Trajectory:
        """Read what `to_json` returned."""
        steps = tuple(_KINDS[kind](*values) for kind, *values in value["steps"])
        return cls(**{**value, "steps": steps})


_DEFAULTS = {each.name: each.default for each in fields(Trajectory)}


def one_turn(reply: str, answer: JsonObject | None = None, **more: Any) -> Trajectory:
    """Return the trajectory of a single reply."""
    return Trajectory((Message(reply),), answer, **more)


def _values(step: Step) -> list[Any]:
    values = [getattr(step, name) for name in step.__dataclass_fields__]
    return values[:-1] if isinstance(step, ToolCall) and not step.name else values


# ---- as an optimizer reads it ----------------------------------------------------------------------


def render(trajectory: Trajectory, limit: int | None) -> str:
    """Return the steps as text of about `limit` tokens; all of it with None.

    If it is too long, the decisive steps get the space first: the last one, failed observations with their calls, then
    the others from the end. A step that does not fit whole is shortened, and steps left out are counted.
    """
    texts = [_text(step) for step in trajectory.steps]
    if limit is None or sum(map(count_tokens, texts)) <= limit:
        return "\n".join(texts)
    kept: dict[int, str] = {}
    left = limit
    for i in _by_weight(trajectory.steps):
        size = count_tokens(texts[i])
        if size > left and left < _WORTH_SHOWING:
            continue
        text = kept[i] = trim(texts[i], min(left, max(limit // 2, _WORTH_SHOWING)))
        left = max(0, left - count_tokens(text))
    return "\n".join(_with_gaps(kept, len(texts)))


_WORTH_SHOWING = 20
"""Tokens below which a part of a step is of no use."""


def _text(step: Step) -> str:
    match step:
        case Message(text, role):
            return text if role == "assistant" else f"[user] {text}"
        case ToolCall(_, arguments):
            written = f" {json.dumps(arguments, ensure_ascii=False)}" if arguments else ""
            return f"[call] {step.shown}{written}"
        case Observation(text, failed):
            return f"[{'error' if failed else 'result'}] {text}"
        case FileChange(path, change, text):
            return f"[file {change}] {path}" + (f"\n{text}" if text is not None else "")


def _by_weight(steps: Sequence[Step]) -> Iterable[int]:
    """Yield the numbers of the steps, the decisive first."""
    failed = {i for i, step in enumerate(steps) if isinstance(step, Observation) and step.failed}
    causes = {i - 1 for i in failed if i and isinstance(steps[i - 1], ToolCall)}
    last = len(steps) - 1
    yield last
    for group in (failed | causes, set(range(last)) - failed - causes):
        yield from sorted(group - {last}, reverse=True)


def _with_gaps(kept: Mapping[int, str], total: int) -> Iterable[str]:
    for is_kept, numbers in groupby(range(total), kept.__contains__):
        if is_kept:
            yield from (kept[i] for i in numbers)
        else:
            yield f"[{len(list(numbers))} steps left out]"


# ---- without secrets ------------------------------------------------------------------------------


def redacted(trajectory: Trajectory, hide: Callable[[str], str]) -> Trajectory:
    """Return the trajectory with `hide` applied to every text in it: arguments of tools, the answer, the problem."""
    return replace(
        trajectory,
        steps=tuple(_redacted(step, hide) for step in trajectory.steps),
        answer=redact_value(trajectory.answer, hide),
        problem=hide(trajectory.problem) if trajectory.problem is not None else None,
    )


def _redacted(step: Step, hide: Callable[[str], str]) -> Step:
    match step:
        case ToolCall(tool, arguments, name):
            return ToolCall(hide(tool), redact_value(arguments, hide), hide(name))
        case FileChange(path, change, text):
            return FileChange(hide(path), change, hide(text) if text is not None else None)
        case _:
            return replace(step, text=hide(step.text))
