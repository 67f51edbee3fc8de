"""Questions to the optimizer model: typed replies, asked again once with what was wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from skillc.models.calls import Call, Message
from skillc.models.client import Client
from skillc.models.failures import CallFailed
from skillc.optimize.observer import Observer
from skillc.optimize.prompting import reask_messages
from skillc.optimize.replies import MalformedReply, Reply, read_reply

R = TypeVar("R", bound=Reply)
Messages = Sequence[Mapping[str, str]]


class Optimizer:
    """The optimizer model behind the client."""

    def __init__(self, client: Client, observer: Observer) -> None:
        self._client = client
        self._observer = observer

    async def ask(self, kind: type[R], messages: Messages, *, stage: str, sample: tuple[int, ...]) -> R | None:
        """One typed reply, or None where the model gave none that can be read.

        Args:
            kind: the reply's class.
            messages: the prompt.
            stage: the stage that asks, for the ledger.
            sample: (epoch, step, ordinal): a step that recurs is not given the same reply for ever.
        """
        reply = ""
        try:
            reply = await self._complete(messages, stage, (*sample, 0))
            return read_reply(kind, reply)
        except MalformedReply as problem:
            again = reask_messages(messages, reply, str(problem))
        except CallFailed as problem:
            return self._without(stage, str(problem))
        try:
            return read_reply(kind, await self._complete(again, stage, (*sample, 1)))
        except (MalformedReply, CallFailed) as problem:
            return self._without(stage, str(problem))

    async def _complete(self, messages: Messages, stage: str, sample: tuple[int, ...]) -> str:
        sent = tuple(Message(role=m["role"], content=m["content"]) for m in messages)
        completion = await self._client.complete(Call(role="optimizer", stage=stage, messages=sent, sample=sample))
        self._observer.advance()
        return completion.text

    def _without(self, stage: str, problem: str) -> None:
        self._observer.note(f"{stage}: one reply of the optimizer was left out: {problem}")
