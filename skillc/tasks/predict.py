"""Rollouts of one turn through the compiled DSPy module. `one_turn.py` has their kind, which is known without DSPy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import dspy
from dspy.utils.exceptions import AdapterParseError
from pydantic import JsonValue, TypeAdapter

from skillc.document.skill import Document
from skillc.models.calls import Message
from skillc.models.dspy_lm import make_lm, send, sent_messages
from skillc.models.scope import current_scope
from skillc.outcomes import Example
from skillc.plan.schema import Plan
from skillc.program.inputs import target_inputs
from skillc.program.module import SkillModule, signature_of
from skillc.program.names import as_read, field_names, instructions
from skillc.tasks.kind import Recent, Site, Skill
from skillc.tasks.opening import Conversation
from skillc.text import counted, listed
from skillc.trajectories.trajectory import Trajectory, one_turn

_JSON: TypeAdapter[Any] = TypeAdapter(Any)
_FORMLESS = "the reply has not the declared form"


class _Prompt(NamedTuple):
    """What all requests with one text of the skill have in common."""

    signature: type[dspy.Signature]
    system: Message


class _Formatted(Recent[str, tuple[Example, tuple[Message, ...]]]):
    """The messages of examples, by their ids."""

    _MOST = 1024


class Turns:
    """Rollouts of one turn at a site.

    Messages and fields are those of the compiled module: its signature, by DSPy's adapter. What DSPy does between the
    two for each call (settings, callbacks, a thread, conversions of messages) would take three tenths of the processor
    time of a compile. `tests/tasks/test_one_turn.py` compares messages, answers and problems with the module's.
    """

    def __init__(self, site: Site) -> None:
        self.site = site
        self._task = as_read(site.plan.task)
        self._names = field_names(site.plan.task)
        self._adapter = dspy.ChatAdapter(use_json_adapter_fallback=False)
        self._skills: Recent[str | None, _Prompt] = Recent()
        self._examples = _Formatted()
        self._conversations: Recent[tuple[str, str | None], Conversation] = Recent()

    async def run(self, skill: Skill | None, example: Example, *, sample: int) -> Trajectory:
        """As `RolloutKind.run`; an unreadable reply is the problem of the trajectory."""
        offered = self.site.offered(skill)
        if offered:
            return await self._opening(skill, offered, example)
        prompt = self._prompt(self.site.read_at_once(skill))
        reply = await send(self.site.client, self.site.role, (prompt.system, *self._request(prompt, example)))
        if not reply:
            return one_turn(reply, problem=_FORMLESS)
        try:
            fields = self._adapter.parse(prompt.signature, reply)
        except AdapterParseError as raised:
            return one_turn(reply, problem=unreadable(raised))
        values, problem = values_of(self._by_name(fields), self.site.plan)
        return one_turn(reply, values, problem=problem)

    def _prompt(self, text: str | None) -> _Prompt:
        def make() -> _Prompt:
            told = instructions(self.site.plan.task, text)
            module = SkillModule(self._task, self.site.plan.skill.name, told)
            signature = module.predictors()[0].signature
            return _Prompt(signature, sent_messages(self._adapter.format(signature, [], {}))[0])

        return self._skills.of(text, make)

    def _request(self, prompt: _Prompt, example: Example) -> tuple[Message, ...]:
        """Return the messages after the system message; they are the same for every text of the skill."""
        known = self._examples.get(example.id)
        if known is not None and known[0] is example:
            return known[1]
        messages = sent_messages(self._adapter.format(prompt.signature, [], self._inputs(example)))[1:]
        # Images would take too much memory.
        if not current_scope().images:
            self._examples.add(example.id, (example, messages))
        return messages

    def _inputs(self, example: Example) -> dict[str, Any]:
        """Return the inputs by the names of the signature, as the model reads them."""
        read = target_inputs(self._task, example.inputs, self.site.root, current_scope().images)
        return {self._names.get(name, name): value for name, value in read.items()}

    def _by_name(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return outputs by the names of the task."""
        return {name: fields[own] for name, own in self._names.items() if own in fields}

    async def _opening(self, skill: Skill | None, offered: tuple[Document, ...], example: Example) -> Trajectory:
        """Run one example whose target opens skills by itself."""
        conversation = self._conversation(skill, offered)
        talk = await conversation.run(self.site.client, self.site.role, self._inputs(example))
        try:
            fields = conversation.fields(talk.reply)
        except AdapterParseError as raised:
            limit = f"it opened skills to its limit, {counted(talk.turns - 1, 'time')}"
            return replace(talk, problem=limit if talk.outcome == "turns" else unreadable(raised))
        values, problem = values_of(self._by_name(fields), self.site.plan)
        return replace(talk, answer=values, problem=problem, outcome=talk.outcome if values is None else "finished")

    def _conversation(self, skill: Skill | None, offered: tuple[Document, ...]) -> Conversation:
        key = (skill.document.about, skill.text) if skill is not None else ("", None)
        text, task = self.site.read_at_once(skill), self._task

        def make() -> Conversation:
            signature = signature_of(task, self.site.plan.skill.name, instructions(task, text))
            return Conversation(signature, offered, reasons=task.rollout.kind == "chain_of_thought")

        return self._conversations.of(key, make)


class _OnceForASignature(dspy.ChatAdapter):  # type: ignore[misc]  # dspy has no types
    """DSPy's adapter; the system message, which costs it a sixth of a call, is made once for a signature."""

    def __init__(self) -> None:
        super().__init__(use_json_adapter_fallback=False)
        self._messages = WeakKeyDictionary[type[dspy.Signature], tuple[str, str]]()

    def format_system_message(self, signature: type[dspy.Signature]) -> str:
        """As DSPy's."""
        known = self._messages.get(signature)
        if known is None or known[0] != signature.instructions:
            known = signature.instructions, super().format_system_message(signature)
            self._messages[signature] = known
        return known[1]


def dspy_settings(site: Site, adapter: dspy.ChatAdapter | None = None, *, calls_tools: bool = False) -> dict[str, Any]:
    """Return the settings of `dspy.context` in which modules call the model of a site."""
    return {
        "lm": make_lm(site.client, site.role, calls_tools=calls_tools),
        "adapter": adapter or _OnceForASignature(),
        "disable_history": True,
        "warn_on_type_mismatch": False,
        "track_usage": False,
    }


def values_of(prediction: Mapping[str, Any], plan: Plan) -> tuple[dict[str, JsonValue] | None, str | None]:
    """Return the outputs as JSON values, or the problem with one of them."""
    values: dict[str, JsonValue] = {}
    for field in plan.task.outputs:
        value = prediction[field.name]
        if not _finite(value):
            return None, f"`{field.name}` contains a number that is not finite"
        if not isinstance(value, str):
            value = _JSON.dump_python(value, mode="json", fallback=str)
        values[field.name] = value
    return values, None


def _finite(value: Any) -> bool:
    """Return whether all numbers in a value are finite."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(_finite(item) for item in value.values())
    return not isinstance(value, list | tuple) or all(_finite(item) for item in value)


def unreadable(raised: AdapterParseError) -> str:
    """Describe on one line the missing or wrong field of a reply."""
    outputs = list(raised.signature.output_fields)
    parsed = raised.parsed_result
    if isinstance(parsed, dict):
        missing = listed(name for name in outputs if name not in parsed)
        return f"the reply lacks {missing}"
    text = " ".join(str(raised).split())
    start = text.find("Failed to parse field ")
    if start < 0:
        return _FORMLESS
    rest = text[start + len("Failed to parse field ") :]
    name, _, rest = rest.partition(" with value ")
    value = rest.partition(" from the LM response.")[0]
    return f"the reply's `{name}` is no declared value: {value[:200]}"
