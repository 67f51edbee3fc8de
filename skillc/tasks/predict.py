"""Rollouts of one turn: `predict` and `chain_of_thought`, through the compiled DSPy module."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError
from pydantic import JsonValue, TypeAdapter

from skillc.models.dspy_lm import current_scope, make_lm
from skillc.models.failures import find_failure
from skillc.outcomes import Example
from skillc.plan.schema import Plan
from skillc.program.module import SkillModule
from skillc.program.names import as_read, instructions
from skillc.tasks.kind import RolloutKind, Site, Skill, last_reply, rollout_kind, skill_text
from skillc.text import listed
from skillc.trajectories.trajectory import Trajectory, one_turn

_MODULES_KEPT = 64
_JSON: TypeAdapter[Any] = TypeAdapter(Any)


@rollout_kind("predict", "chain_of_thought")
class OneTurn(RolloutKind):
    """One call for each rollout. Concurrent rollouts of one skill text share a module."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._context = {
            "lm": make_lm(site.client, site.role),
            "adapter": dspy.ChatAdapter(use_json_adapter_fallback=False),
            "disable_history": True,
            "warn_on_type_mismatch": False,
            "track_usage": False,
        }
        self._modules: OrderedDict[str | None, SkillModule] = OrderedDict()

    async def run(self, skill: Skill | None, example: Example, *, sample: int) -> Trajectory:
        """As `RolloutKind.run`; an unreadable reply is the problem of the trajectory."""
        module = self._module(skill_text(skill))
        try:
            with dspy.context(**self._context):
                prediction = await module.acall(**example.inputs)
        except AdapterParseError as raised:
            if find_failure(raised) is not None:
                raise
            return one_turn(last_reply(current_scope().completions), problem=_unreadable(raised))
        values, problem = values_of(prediction, self.site.plan)
        return one_turn(last_reply(current_scope().completions), values, problem=problem)

    def _module(self, text: str | None) -> SkillModule:
        module = self._modules.get(text)
        if module is None:
            task = self.site.plan.task
            name = self.site.plan.skill.name
            module = SkillModule(as_read(task), name, instructions(task, text), root=self.site.root, by_reference=True)
            self._modules[text] = module
            if len(self._modules) > _MODULES_KEPT:
                self._modules.popitem(last=False)
        self._modules.move_to_end(text)
        return module


def values_of(prediction: dspy.Prediction, plan: Plan) -> tuple[dict[str, JsonValue] | None, str | None]:
    """Return the outputs as JSON values, or the problem with one of them."""
    values: dict[str, JsonValue] = {}
    for field in plan.task.outputs:
        value = prediction[field.name]
        if not _finite(value):
            return None, f"`{field.name}` holds a number that is not finite"
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


def _unreadable(raised: AdapterParseError) -> str:
    """Describe on one line the missing or wrong output."""
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
