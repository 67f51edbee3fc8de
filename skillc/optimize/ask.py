"""Ask the optimizer model for typed replies; retry an unreadable one once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from skillc.models.calls import Call, Message
from skillc.models.client import Client
from skillc.models.failures import CallFailed
from skillc.optimize.host import Observer, Record, Unrecorded, Value
from skillc.optimize.propose.prompting import reask_messages
from skillc.optimize.propose.replies import MalformedReply, R, read_reply

Messages = Sequence[Mapping[str, str]]


class Optimizer:
    """The optimizer model behind the client, and the record of the run.

    Attributes:
        failed: questions so far without a whole reply.
    """

    failed: int = 0

    def __init__(self, client: Client, observer: Observer, record: Record | None = None) -> None:
        self._client = client
        self._observer = observer
        self._record = record or Unrecorded()

    async def ask(
        self,
        kind: type[R],
        messages: Messages,
        *,
        stage: str,
        sample: tuple[int, ...],
        check: Callable[[R], None] | None = None,
        done: bool = True,
    ) -> R | None:
        """Return one typed reply, or None if no reply can be read.

        An unreadable reply, or one that `check` rejects, is retried once with the problem in the prompt. The second
        reply is not checked: the caller handles its faults. If it is unreadable, the first reply is returned.

        Args:
            kind: the class of the reply.
            messages: the prompt.
            stage: the stage that asks, for the ledger.
            sample: (epoch, step, ordinal), so that a repeated step can get another reply.
            check: raises `MalformedReply` if the reply does not fit the document.
            done: whether to report one unit of the stage's work as done.
        """
        reply = await self._ask(kind, messages, stage, sample, check)
        if done:
            self.advance()
        return reply

    def advance(self) -> None:
        """Report one unit of the stage's work as done."""
        self._observer.advance()

    async def _ask(
        self, kind: type[R], messages: Messages, stage: str, sample: tuple[int, ...], check: Callable[[R], None] | None
    ) -> R | None:
        reply, first = "", None
        try:
            reply = await self._complete(messages, stage, (*sample, 0))
            first = read_reply(kind, reply)
            if check is not None:
                check(first)
            return first
        except MalformedReply as problem:
            again = reask_messages(messages, reply, str(problem))
        except CallFailed as problem:
            self._leave_out(stage, problem)
            return None
        try:
            return read_reply(kind, await self._complete(again, stage, (*sample, 1)))
        except (MalformedReply, CallFailed) as problem:
            if first is None:
                self._leave_out(stage, problem)
            return first

    async def _complete(self, messages: Messages, stage: str, sample: tuple[int, ...]) -> str:
        """Return the text of one reply.

        Raises:
            CallFailed: no reply came.
        """
        sent = tuple(Message(role=m["role"], content=m["content"]) for m in messages)
        call = Call(role="optimizer", stage=stage, messages=sent, sample=sample)

        async def work() -> tuple[Value, bool]:
            try:
                return {"text": (await self._client.complete(call)).text}, True
            except CallFailed as problem:
                return {"failed": problem.kind, "detail": problem.detail}, False

        prompt = hashlib.sha256(repr(sent).encode(errors="surrogatepass")).hexdigest()
        value: Any = await self._record.step().once(["reply", stage, list(sample), prompt], work)
        if "failed" in value:
            raise CallFailed(value["failed"], value["detail"])
        return str(value["text"])

    def _leave_out(self, stage: str, problem: Exception) -> None:
        self.failed += isinstance(problem, CallFailed)
        self._observer.note(f"{stage}: skipped one reply of the optimizer: {problem}")
