"""The environment of a rollout as tools get it, in their parameter `environment`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from skillc.tasks.environments.protocol import InadmissibleAction
from skillc.tools.functions import CURRENT
from skillc.trajectories.trajectory import Observation, Step

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
        """Act, from a function that is no coroutine; return the observation.

        Args:
            action: as the environment's `step` takes it.
        """
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
