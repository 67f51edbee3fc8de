"""What the target gets and does in a turn, and how it acts with `agent = predict` or `chain_of_thought`.

`Seen` is what the environment answered, and `Handle` the environment as tools get it, in their parameter `environment`.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from skillc.dataclass import dataclass
from skillc.document.offer import OPEN, most_opened
from skillc.document.skill import Document
from skillc.json_values import JsonObject
from skillc.language.rollouts import ACT
from skillc.models.calls import Message
from skillc.outcomes import Example
from skillc.tasks.environments.prompts import Form, Reads, Turn
from skillc.tasks.environments.protocol import InadmissibleAction
from skillc.tasks.opening import Openings
from skillc.text import counted
from skillc.tools.functions import CURRENT
from skillc.trajectories.trajectory import Message as Said
from skillc.trajectories.trajectory import Observation, Step, ToolCall

Ask = Callable[[tuple[Message, ...]], Awaitable[str]]
_ENDED = "the rollout has ended"


@dataclass(frozen=True, slots=True)
class Seen:
    """What the environment answered to an action.

    Attributes:
        text: as the target reads it, with the words of a simulated user.
        observation: without them; None if there is none.
        actions: the possible ones afterwards, if the environment names them.
        done: whether the rollout is over.
        said: what a simulated user said.
    """

    text: str
    observation: Observation | None = None
    actions: Sequence[str] | None = None
    done: bool = False
    said: tuple[Step, ...] = ()

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of the trajectory."""
        return (*((self.observation,) if self.observation is not None else ()), *self.said)


class EnvironmentOfTools:
    """What a tool may do with the environment of its rollout."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def step(self, action: Any) -> str:
        """Act, as the environment's `step`; return the observation. For a function that is no coroutine."""
        handle = self._handle
        if handle.on_loop():
            raise RuntimeError("a coroutine function awaits `environment.astep(...)`")
        if not handle.open:
            raise InadmissibleAction(_ENDED)
        return asyncio.run_coroutine_threadsafe(handle.step(action), handle.loop).result()

    async def astep(self, action: Any) -> str:
        """As `step`, from a coroutine function."""
        return await self._handle.step(action)


class Handle:
    """The environment of one rollout for its tools.

    Attributes:
        loop: that of the rollout; functions on threads hand their actions to it.
        open: whether the rollout goes on.
        seen: what was answered last.
    """

    def __init__(self, send: Callable[[Any], Awaitable[Seen]], seen: Seen) -> None:
        self.loop = asyncio.get_running_loop()
        self.seen = seen
        self._send = send
        # A tool may act twice at once, or go on after its time limit: a process answers one request at a time.
        self._lock = asyncio.Lock()
        self.open = True
        self._failure: Exception | None = None
        self._said: list[Step] = []
        self._failed = False

    def on_loop(self) -> bool:
        """Return whether the caller is on the loop of the rollout."""
        try:
            return asyncio.get_running_loop() is self.loop
        except RuntimeError:
            return False

    async def step(self, action: Any) -> str:
        """Act; return the observation. An action goes on where its caller is cancelled, so that its reply is read.

        Raises:
            TypeError, ValueError: the action is no JSON value.
        """
        json.dumps(action, allow_nan=False)
        return await asyncio.shield(self._step(action))

    async def _step(self, action: Any) -> str:
        async with self._lock:
            if self._failure is not None or self.seen.done or not self.open:
                raise InadmissibleAction(_ENDED)
            try:
                self.seen = seen = await self._send(action)
            except Exception as failed:
                self._failure = failed
                raise
            self._failed |= seen.observation is not None and seen.observation.failed
            self._said += seen.said
            return seen.text

    @contextmanager
    def passed(self) -> Iterator[None]:
        """Pass the environment to the tools that are called inside."""
        self._failed = False
        token = CURRENT.set(EnvironmentOfTools(self))
        try:
            yield
        finally:
            CURRENT.reset(token)

    def checked(self, seen: Observation) -> Observation:
        """Return the result of a tool, failed if an action in it was not possible.

        Raises:
            EnvironmentFailed, RolloutFailed, CallFailed: the environment or the simulated user failed, which is no
                result of a tool.
        """
        if self._failure is not None:
            raise self._failure
        return replace(seen, failed=seen.failed or self._failed)

    async def close(self) -> None:
        """Wait for an action that is under way, and refuse further ones.

        Raises:
            EnvironmentFailed, RolloutFailed, CallFailed: it failed.
        """
        self.open = False
        async with self._lock:
            if self._failure is not None:
                raise self._failure

    def said(self) -> tuple[Step, ...]:
        """Return what a simulated user has said since the last call."""
        said, self._said = tuple(self._said), []
        return said


@dataclass(frozen=True, slots=True)
class Moment:
    """What a target may answer in one turn.

    Attributes:
        observation: since the last turn; None where a tool has answered it already.
        actions: the possible ones, if the environment names them.
        handle: the environment for tools that act.
        last: whether only the answer can follow, after the last turn.
    """

    observation: str | None
    actions: Sequence[str] | None = None
    handle: Handle | None = None
    last: bool = False


@dataclass(frozen=True, slots=True)
class Acted:
    """What a target did in one turn: an action, its last answer, or neither, with a problem or by a tool.

    Attributes:
        action: value by output, for the environment.
        problem: why there is neither, unless a tool was called.
        answer: value by output; the rollout ends.
    """

    action: JsonObject | None = None
    problem: str | None = None
    answer: JsonObject | None = None


class TurnAgent(ABC):
    """The target of one attempt at a rollout; it adds what it does to the `steps` of the rollout."""

    def __init__(self, steps: list[Step]) -> None:
        self.steps = steps

    @abstractmethod
    async def act(self, turn: Moment) -> Acted:
        """Answer an observation.

        Raises:
            RolloutFailed: a tool is down.
            EnvironmentFailed: the environment failed in a tool.
            CallFailed, PermanentFailure, BudgetReached: from the model.
        """


class ReplyingAgent(TurnAgent):
    """A target whose reply is its action.

    A reply that opens a skill takes no turn: the text joins the instructions, and the observation is shown again.
    `text` is that of the skills that are always read, and `offered` are those that the target may open.
    """

    def __init__(
        self,
        form: Form,
        example: Example,
        text: str | None,
        offered: Sequence[Document],
        ask: Ask,
        steps: list[Step],
    ) -> None:
        super().__init__(steps)
        self._form = form
        self._example = example
        self._text = text
        self._openings = Openings(offered)
        self._most = most_opened(len(offered))
        self._left = self._most
        self._ask = ask
        self._past: list[Turn] = []

    async def act(self, turn: Moment) -> Acted:
        """As `TurnAgent.act`."""
        assert turn.observation is not None
        form, actions, shown = self._form, turn.actions, turn.observation
        while True:
            offered = self._openings.closed if self._left else ()
            reads = Reads(self._text, self._openings.opened, offered)
            reply = await self._ask(form.messages(reads, self._example, self._past, shown, actions))
            name = form.opens(reply, actions) if self._most else None
            if name is None or not self._left:
                break
            self._left -= 1
            seen = self._openings.open(name)
            self.steps += [*((Said(reply),) if form.reasons else ()), *self._openings.steps[-2:]]
            shown = f"{turn.observation}\n\n[{OPEN}: {seen.text}]" if seen.failed else turn.observation
        self._past.append(Turn.of(turn.observation, reply))
        used_up = f"no further skill can be opened, after {counted(self._most, 'time')}"
        action, problem = form.action(reply, actions) if name is None else (None, used_up)
        if action is None:
            self.steps.append(Said(reply))
        else:
            self.steps += acted(reply if form.reasons and not form.whole else "", action)
        return Acted(action, problem)


def acted(said: str, action: JsonObject) -> tuple[Step, ...]:
    """Return the steps of an action: what the target said before it, and the action."""
    call = ToolCall(ACT, dict(action))
    return (Said(said), call) if said else (call,)
