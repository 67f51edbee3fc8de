"""Run an example through the compiled module."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError
from pydantic import JsonValue, TypeAdapter

from skillc.json_values import JsonObject
from skillc.models.calls import Completion
from skillc.models.client import Client
from skillc.models.dspy_lm import RoleLM, make_lm, scope
from skillc.models.failures import CallFailed, find_failure
from skillc.outcomes import Example, UnmeasuredKind
from skillc.plan.schema import Plan
from skillc.program.module import SkillModule
from skillc.program.names import instructions
from skillc.text import listed

UNMEASURED_BY: dict[str, UnmeasuredKind] = {
    "transient": "transport",
    "malformed": "transport",
    "empty": "empty",
    "cut": "cut",
}
_MODULES_KEPT = 64
_JSON: TypeAdapter[Any] = TypeAdapter(Any)


@dataclass(frozen=True, slots=True)
class Rollout:
    """The result of one rollout: a prediction, an unreadable reply, or a failed call.

    Attributes:
        prediction: value by output; None without a readable reply.
        reply: the text of the last reply.
        failure: why the rollout is unmeasured, else None.
        detail: the provider's status and message of a failure.
        problem: why a complete reply could not be read; it gets the worst score.
        tokens: of all calls.
        cost: nano-dollars at list price; None if a price is unknown.
    """

    prediction: JsonObject | None
    reply: str
    failure: UnmeasuredKind | None = None
    problem: str | None = None
    tokens: int = 0
    cost: int | None = 0
    detail: str = ""


class RolloutRunner:
    """Runs rollouts of a plan's task. Concurrent rollouts of one skill text share a module."""

    def __init__(self, plan: Plan, client: Client, *, role: str = "target") -> None:
        self._plan = plan
        self._client = client
        self._lm: RoleLM = make_lm(client, role)
        self._adapter = dspy.ChatAdapter(use_json_adapter_fallback=False)
        self._modules: OrderedDict[str | None, SkillModule] = OrderedDict()

    async def __call__(self, text: str | None, example: Example, sample: int, stage: str) -> Rollout:
        """Run an example with a skill's text, None for no skill.

        Raises:
            PermanentFailure, BudgetReached: from the models.
        """
        with self._client.ticket():
            return await rollout(
                self._module(text), self._lm, self._adapter, self._plan, example, sample=sample, stage=stage
            )

    def _module(self, text: str | None) -> SkillModule:
        module = self._modules.get(text)
        if module is None:
            task = self._plan.task
            module = SkillModule(task, self._plan.skill.name, instructions(task, text))
            self._modules[text] = module
            if len(self._modules) > _MODULES_KEPT:
                self._modules.popitem(last=False)
        self._modules.move_to_end(text)
        return module


async def rollout(
    module: dspy.Module, lm: RoleLM, adapter: dspy.Adapter, plan: Plan, example: Example, *, sample: int, stage: str
) -> Rollout:
    """Run one example through a module.

    Raises:
        PermanentFailure, BudgetReached: from the models.
    """
    with scope(stage, sample) as inside:
        try:
            with dspy.context(
                lm=lm, adapter=adapter, disable_history=True, warn_on_type_mismatch=False, track_usage=False
            ):
                prediction = await module.acall(**example.inputs)
        except Exception as raised:
            return _failed(raised, inside.completions)
    values, problem = _values(prediction, plan)
    return rollout_of(inside.completions, prediction=values, problem=problem)


def _failed(raised: Exception, completions: list[Completion]) -> Rollout:
    failure = find_failure(raised)
    if isinstance(failure, CallFailed):
        return rollout_of(completions, failure=UNMEASURED_BY[failure.kind], detail=failure.detail)
    if failure is not None:
        raise failure from None
    if isinstance(raised, AdapterParseError):
        return rollout_of(completions, problem=_unreadable(raised))
    raise raised


def rollout_of(
    completions: Sequence[Completion],
    *,
    reply: str | None = None,
    prediction: JsonObject | None = None,
    failure: UnmeasuredKind | None = None,
    problem: str | None = None,
    detail: str = "",
) -> Rollout:
    """Return a rollout with the tokens and cost of its calls; its reply is by default the last call's."""
    if reply is None:
        reply = completions[-1].text if completions else ""
    costs = [completion.cost for completion in completions]
    known = [cost for cost in costs if cost is not None]
    return Rollout(
        prediction=prediction,
        reply=reply,
        failure=failure,
        problem=problem,
        tokens=sum(completion.usage.total for completion in completions),
        cost=sum(known) if len(known) == len(costs) else None,
        detail=detail,
    )


def _values(prediction: dspy.Prediction, plan: Plan) -> tuple[dict[str, JsonValue] | None, str | None]:
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
