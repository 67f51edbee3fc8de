"""Recorded sessions as conversations: messages, tool calls and results as chat templates read them."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from skillc.dataclass import dataclass
from skillc.export.turns import Messages, assistant, call_message
from skillc.json_values import JsonObject
from skillc.sessions.examples import objects
from skillc.sessions.session import Session
from skillc.tokens import count_tokens
from skillc.trajectories.trajectory import Message, Observation, ToolCall

_TYPES: Mapping[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}


@dataclass(frozen=True, slots=True)
class Conversation:
    """The messages of a session.

    Attributes:
        messages: from the request to the last message of the agent; messages of one role in a row are one.
        objected: positions of the agent's messages after which the user objected.
        tools: names of the tools that were called.
    """

    messages: Messages
    objected: frozenset[int] = frozenset()
    tools: frozenset[str] = frozenset()

    @property
    def prompt(self) -> Messages:
        """The messages before the agent's first one."""
        return self.messages[: self.first]

    @property
    def first(self) -> int:
        """The position of the agent's first message."""
        return next(i for i, each in enumerate(self.messages) if each["role"] == "assistant")

    def accepted(self, most: int | None = None) -> Conversation | None:
        """Return the whole turns before the first one that the user objected to; None if there is none.

        A turn is all that the agent did until the user's next message.

        Args:
            most: the most tokens of the text; later turns are left out.
        """
        ends = [i for i, each in enumerate(self.messages) if self._ends_turn(i, each)]
        found = None
        for end in ends:
            if any(at <= end for at in self.objected):
                break
            if most is not None and _tokens(self.messages[: end + 1]) > most:
                break
            found = end
        return None if found is None else Conversation(self.messages[: found + 1], tools=self.tools)

    def _ends_turn(self, at: int, message: Mapping[str, Any]) -> bool:
        later = self.messages[at + 1 :]
        return message["role"] == "assistant" and (not later or later[0]["role"] == "user")


def conversation_of(session: Session, *, system: bool = False) -> Conversation | None:
    """Return the conversation of a session; None if a call has no result, a result no call, or there is no answer.

    Results belong to calls in their order. Changed files are no messages: a call has changed them.

    Args:
        session: as the store returns it.
        system: whether to keep its system instructions.
    """
    messages: Messages = [{"role": "system", "content": session.system}] if system and session.system.strip() else []
    objected, tools = set[int](), set[str]()
    waiting = deque[dict[str, Any]]()
    number = 0
    for event in session.events:
        step = event.step
        if isinstance(step, Message):
            if not step.text.strip():
                continue
            if waiting:
                return None
            if step.role == "user" and not event.automatic and objects(step.text):
                objected.update(_last_answer(messages))
            _say(messages, step.role, step.text)
        elif isinstance(step, ToolCall):
            if not messages or messages[-1]["role"] != "assistant":
                messages.append(assistant(""))
            call = call_message(number, step.name or step.tool, step.arguments)
            number += 1
            messages[-1].setdefault("tool_calls", []).append(call)
            tools.add(call["function"]["name"])
            waiting.append(call)
        elif isinstance(step, Observation):
            if not waiting:
                return None
            call = waiting.popleft()
            messages.append(
                {"role": "tool", "tool_call_id": call["id"], "name": call["function"]["name"], "content": step.text}
            )
    while messages and messages[-1]["role"] != "assistant":
        messages.pop()
    roles = [each["role"] for each in messages]
    if waiting or "assistant" not in roles or "user" not in roles[: roles.index("assistant")]:
        return None
    return Conversation(messages, frozenset(objected), frozenset(tools))


def _say(messages: Messages, role: str, text: str) -> None:
    """Add a message; one more of the same role is joined, since templates want roles in turn."""
    if messages and messages[-1]["role"] == role and "tool_calls" not in messages[-1]:
        messages[-1]["content"] += f"\n\n{text}"
    else:
        messages.append({"role": role, "content": text})


def _last_answer(messages: Messages) -> list[int]:
    """Return the position of the agent's last message, if there is one."""
    return [i for i, each in enumerate(messages) if each["role"] == "assistant"][-1:]


def _tokens(messages: Messages) -> int:
    return sum(count_tokens(each["content"]) + count_tokens(str(each.get("tool_calls", ""))) for each in messages)


def split_turns(messages: Messages, first: int = 0) -> Iterable[tuple[Messages, dict[str, Any]]]:
    """Yield each message of the agent with all that is before it, from the position `first` on."""
    for i, each in enumerate(messages):
        if i >= first and each["role"] == "assistant":
            yield messages[:i], each


# ---- schemas of tools ------------------------------------------------------------------------------


def inferred_schemas(conversations: Iterable[Conversation]) -> tuple[JsonObject, ...]:
    """Return a JSON schema for each tool that was called, by name.

    Sessions do not record the schemas that the agent had. Types are those of the arguments; one is required if all
    calls have it.
    """
    types: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    required: dict[str, set[str]] = {}
    for each in conversations:
        for message in each.messages:
            for call in message.get("tool_calls", ()):
                name, arguments = call["function"]["name"], call["function"]["arguments"]
                required[name] = required.get(name, set(arguments)) & set(arguments)
                for argument, value in arguments.items():
                    types[name][argument].add(_TYPES[type(value)])
    return tuple(_schema(name, types[name], required[name]) for name in sorted(required))


def _schema(name: str, arguments: Mapping[str, set[str]], required: set[str]) -> JsonObject:
    properties: dict[str, Any] = {argument: {"type": _type(sorted(kinds))} for argument, kinds in arguments.items()}
    parameters: dict[str, Any] = {"type": "object", "properties": properties, "required": sorted(required)}
    return {"type": "function", "function": {"name": name, "description": "", "parameters": parameters}}


def _type(kinds: Sequence[str]) -> Any:
    return kinds[0] if len(kinds) == 1 else list(kinds)
