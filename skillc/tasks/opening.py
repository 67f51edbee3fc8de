"""Skills that a target opens by itself: those of a rollout, and the conversation of a one-turn rollout.

The conversation has the form of DSPy's chat adapter. The first request has the list of skills and no body. A reply that
names a skill in the output `open_skill` gets its text in the next message, and the last reply has the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dspy

from skillc.document.offer import OPEN, most_opened, offer_text, opened_text, shown_descriptions
from skillc.document.skill import Document, for_target
from skillc.json_values import JsonObject
from skillc.models.client import Client
from skillc.models.dspy_lm import ask
from skillc.text import listed
from skillc.tools.tool import Tool, ToolFailed
from skillc.trajectories.trajectory import Message, Observation, Step, ToolCall, Trajectory

_QUOTES = " \t\r\n\"'`*[]."


class Openings:
    """The skills that one rollout may open, and its steps so far."""

    def __init__(self, offered: Sequence[Document]) -> None:
        self._offered = {document.name: document for document in offered}
        self._open: dict[str, str] = {}
        self.steps: list[Step] = []

    @property
    def closed(self) -> tuple[Document, ...]:
        """The skills that are not open."""
        return tuple(each for name, each in self._offered.items() if name not in self._open)

    @property
    def opened(self) -> tuple[str, ...]:
        """The texts of the open skills, as the target reads them, in the order of their opening."""
        return tuple(self._open.values())

    def open(self, name: str) -> Observation:
        """Open a skill: record the call and return its text, or the error that the target reads."""
        wanted = name.strip(_QUOTES)
        seen = self._answer(wanted)
        self.steps += [ToolCall(OPEN, {"name": wanted}), seen]
        return seen

    def _answer(self, name: str) -> Observation:
        document = self._offered.get(name)
        if document is None:
            known = listed(self._offered, "and") if self._offered else "none"
            return Observation(f"there is no skill `{name}`; there is {known}", failed=True)
        if name in self._open:
            return Observation(f"`{name}` is open already; its text is above", failed=True)
        self._open[name] = opened_text(name, for_target(document))
        return Observation(self._open[name])


def opening_tool(offered: Sequence[Document]) -> Tool:
    """Return the tool that opens the skills of one rollout; its description is the list that the agent reads."""
    openings = Openings(offered)

    async def call(arguments: JsonObject, seconds: float) -> str:
        seen = openings.open(str(arguments["name"]))
        if seen.failed:
            raise ToolFailed(seen.text)
        return seen.text

    lines = [f"- {name}: {about}" for name, about in shown_descriptions(offered)]
    about = "\n".join(["Open a skill where its description fits, and read its text. There are these skills:", *lines])
    return Tool(OPEN, about, {"name": {"type": "string", "description": "the name of a skill"}}, ("name",), call)


class Conversation:
    """The signature of a task with the output `open_skill`, and the messages of its rollouts."""

    def __init__(self, signature: type[dspy.Signature], offered: Sequence[Document], *, reasons: bool) -> None:
        self._adapter = dspy.ChatAdapter(use_json_adapter_fallback=False)
        self._offered = tuple(offered)
        self._field = OPEN
        while self._field in signature.fields:
            self._field += "_"
        described = dspy.OutputField(desc="the name of a skill to open, or empty")
        text = f"{signature.instructions}\n\n{offer_text(self._offered, field=self._field)}"
        self._signature = signature.prepend(self._field, described, type_=str).with_instructions(text)
        if reasons:
            self._signature = self._signature.prepend(
                "reasoning", dspy.OutputField(desc="step by step, before the answer"), type_=str
            )

    def fields(self, reply: str) -> dict[str, Any]:
        """Return the outputs in a reply.

        Raises:
            AdapterParseError: it lacks one.
        """
        found: dict[str, Any] = self._adapter.parse(self._signature, reply)
        return found

    async def run(self, client: Client, role: str, inputs: Mapping[str, Any]) -> Trajectory:
        """Ask, and answer each request for a skill, until the target answers or the limit is reached.

        The answer is not yet read from the last reply.
        """
        openings = Openings(self._offered)
        messages = self._adapter.format(self._signature, [], dict(inputs))
        most, calls = most_opened(len(self._offered)), 0
        while True:
            text = await ask(client, role, messages)
            calls += 1
            name = self._asked(text)
            openings.steps.append(Message(text))
            if not name or calls > most:
                return Trajectory(tuple(openings.steps), outcome="turns" if name else "finished", turns=calls)
            seen = openings.open(name)
            messages = [*messages, {"role": "assistant", "content": text}, self._answered(seen)]

    def _asked(self, reply: str) -> str:
        """Return the skill that a reply opens, empty for none; a reply that opens one needs no other field."""
        lines = reply.splitlines()
        marker = f"[[ ## {self._field} ## ]]"
        at = next((i for i, line in enumerate(lines) if line.strip().startswith(marker)), None)
        if at is None:
            return ""
        for line in (lines[at].strip().removeprefix(marker), *lines[at + 1 :]):
            if line.strip().startswith("[[ ##"):
                return ""
            if line.strip():
                name = line.strip(_QUOTES)
                return "" if name.lower() in ("", "none", "empty", "null") else name
        return ""

    def _answered(self, seen: Observation) -> dict[str, str]:
        form = self._adapter.user_message_output_requirements(self._signature)
        return {"role": "user", "content": f"{seen.text}\n\n{form}"}
