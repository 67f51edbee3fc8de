"""Rollouts of one turn through the compiled DSPy module. `one_turn.py` has their kind, which is known without DSPy."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import dspy
from dspy.utils.exceptions import AdapterParseError
from pydantic import JsonValue, TypeAdapter

from skillc.document.skill import Document
from skillc.models.dspy_lm import make_lm
from skillc.models.failures import find_failure
from skillc.models.scope import current_scope
from skillc.outcomes import Example
from skillc.plan.schema import Plan
from skillc.program.inputs import target_inputs
from skillc.program.module import SkillModule, signature_of
from skillc.program.names import as_read, field_names, instructions
from skillc.tasks.kind import Recent, Site, Skill, last_reply
from skillc.tasks.opening import Conversation
from skillc.text import counted, listed
from skillc.trajectories.trajectory import Trajectory, one_turn

_JSON: TypeAdapter[Any] = TypeAdapter(Any)


class Turns:
    """Rollouts of one turn at a site. Concurrent rollouts of one skill text share a module."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._context = dspy_settings(site)
        self._modules: Recent[str | None, SkillModule] = Recent()
        self._conversations: Recent[tuple[str, str | None], Conversation] = Recent()
        self._names = field_names(site.plan.task)

    async def run(self, skill: Skill | None, example: Example, *, sample: int) -> Trajectory:
        """As `RolloutKind.run`; an unreadable reply is the problem of the trajectory."""
        offered = self.site.offered(skill)
        if offered:
            return await self._opening(skill, offered, example)
        module = self._module(self.site.read_at_once(skill))
        try:
            with dspy.context(**self._context):
                prediction = await module.acall(**example.inputs)
        except AdapterParseError as raised:
            if find_failure(raised) is not None:
                raise
            return one_turn(last_reply(current_scope().completions), problem=unreadable(raised))
        values, problem = values_of(prediction, self.site.plan)
        return one_turn(last_reply(current_scope().completions), values, problem=problem)

    async def _opening(self, skill: Skill | None, offered: tuple[Document, ...], example: Example) -> Trajectory:
        """Run one example whose target opens skills by itself."""
        plan, task = self.site.plan, as_read(self.site.plan.task)
        conversation = self._conversation(skill, offered)
        read = target_inputs(task, example.inputs, self.site.root, current_scope().images)
        given = {self._names[name]: value for name, value in read.items()}
        talk = await conversation.run(self.site.client, self.site.role, given)
        try:
            fields = conversation.fields(talk.reply)
        except AdapterParseError as raised:
            limit = f"it opened skills to its limit, {counted(talk.turns - 1, 'time')}"
            return replace(talk, problem=limit if talk.outcome == "turns" else unreadable(raised))
        prediction = dspy.Prediction(**{name: fields[given] for name, given in self._names.items() if given in fields})
        values, problem = values_of(prediction, plan)
        return replace(talk, answer=values, problem=problem, outcome=talk.outcome if values is None else "finished")

    def _conversation(self, skill: Skill | None, offered: tuple[Document, ...]) -> Conversation:
        key = (skill.document.about, skill.text) if skill is not None else ("", None)
        text, task = self.site.read_at_once(skill), as_read(self.site.plan.task)

        def make() -> Conversation:
            signature = signature_of(task, self.site.plan.skill.name, instructions(task, text))
            return Conversation(signature, offered, reasons=task.rollout.kind == "chain_of_thought")

        return self._conversations.of(key, make)

    def _module(self, text: str | None) -> SkillModule:
        task, name = self.site.plan.task, self.site.plan.skill.name
        return self._modules.of(
            text,
            lambda: SkillModule(as_read(task), name, instructions(task, text), root=self.site.root, by_reference=True),
        )


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


def values_of(prediction: dspy.Prediction, plan: Plan) -> tuple[dict[str, JsonValue] | None, str | None]:
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
        return "the reply has not the declared form"
    rest = text[start + len("Failed to parse field ") :]
    name, _, rest = rest.partition(" with value ")
    value = rest.partition(" from the LM response.")[0]
    return f"the reply's `{name}` is no declared value: {value[:200]}"
