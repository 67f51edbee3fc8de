"""The DSPy module of a task: its signature and its target."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Literal, Optional

import dspy
from dspy.signatures.signature import make_signature

from skillc.language.loop import BudgetPlan
from skillc.models.client import Client
from skillc.models.dspy_lm import make_lm
from skillc.models.scope import current_scope
from skillc.plan.schema import Plan, TaskPlan, TypePlan
from skillc.program.inputs import target_inputs
from skillc.program.names import PREDICTORS, as_read, class_name, field_names, kind_of

_PLAIN: dict[str, Any] = {
    "text": str,
    "bool": bool,
    "number": float,
    "integer": int,
    "json": dict[str, Any],
    "file": str,
    "image": dspy.Image,
}


def signature_of(task: TaskPlan, name: str, instructions: str) -> type[dspy.Signature]:
    """Return the signature of a task; its name is made from that of the skill.

    The `about` of inputs and outputs is in the instructions, so the fields have no descriptions.
    """
    names = field_names(task)
    fields: dict[str, tuple[Any, Any]] = {
        **{names[field.name]: (annotation(field.type), dspy.InputField()) for field in task.inputs},
        **{names[field.name]: (annotation(field.type), dspy.OutputField()) for field in task.outputs},
    }
    signature: type[dspy.Signature] = make_signature(fields, instructions, signature_name=class_name(name))
    return signature


def annotation(type_: TypePlan) -> Any:
    """Return the Python type of a declared type."""
    if type_.kind == "labels":
        plain: Any = Literal[tuple(type_.labels)]
    elif type_.kind == "list":
        plain = list[annotation(type_.item)] if type_.item is not None else list[str]  # type: ignore[misc]
    else:
        plain = _PLAIN[type_.kind]
    return Optional[plain] if type_.optional else plain  # noqa: UP045  # `X | None` needs X to be a class


class FallbackTarget:
    """The plan's target for a loaded program that has no LM configured.

    The budget is for compiles and does not apply. The client is made at the first call; `root` is the program's folder.
    """

    def __init__(self, plan: Plan, root: Path | None = None) -> None:
        self._plan = plan
        self._root = root
        self._lock = threading.Lock()
        self._settings: dict[str, Any] | None = None

    def settings(self, own_lm: Any) -> dict[str, Any]:
        """Return overrides for `dspy.context`; none if the predictor or DSPy has an LM.

        Raises:
            SkillcError: the target's key or address is missing.
        """
        if own_lm is not None or dspy.settings.lm is not None:
            return {}
        with self._lock:
            if self._settings is None:
                client = Client(self._plan.model_copy(update={"budget": BudgetPlan()}), root=self._root)
                adapter = dspy.settings.adapter or dspy.ChatAdapter(use_json_adapter_fallback=False)
                self._settings = {"lm": make_lm(client, "target"), "adapter": adapter}
            return self._settings

    def __deepcopy__(self, memo: dict[int, Any]) -> FallbackTarget:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {"_plan": self._plan, "_root": self._root}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["_plan"], state["_root"])  # type: ignore[misc]


class SkillModule(dspy.Module):  # type: ignore[misc]  # dspy has no types
    """A compiled skill as a DSPy module; its one predictor is the attribute `answer`.

    The model receives `instructions`, from `names.instructions`; `fallback` answers if DSPy has no LM configured. Paths
    in inputs are relative to `root`, by default the current folder. With `by_reference`, which only LMs of a client
    support, prompts have short data URIs until they are sent. `predictor` makes the predictor of a signature; by
    default it is that of the task's kind of rollout.

    Raises:
        SkillcError: this version does not compile the task's kind of rollout.
    """

    def __init__(
        self,
        task: TaskPlan,
        name: str,
        instructions: str,
        fallback: FallbackTarget | None = None,
        *,
        root: Path | None = None,
        by_reference: bool = False,
        predictor: Callable[[type[dspy.Signature]], Any] | None = None,
    ) -> None:
        super().__init__()
        self._fallback = fallback
        self._names = field_names(task)
        self._task, self._root, self._by_reference = task, root, by_reference
        self._renamed = {new: old for old, new in self._names.items() if new != old}
        make = predictor or getattr(dspy, PREDICTORS[kind_of(task)])
        self.answer = make(signature_of(as_read(task), name, instructions))

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Answer one example."""
        with self._context():
            return self.outputs_of(self.answer(**self.inputs_of(inputs)))

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """Answer one example asynchronously."""
        with self._context():
            return self.outputs_of(await self.answer.acall(**self.inputs_of(inputs)))

    def _context(self) -> AbstractContextManager[Any]:
        settings = self._fallback.settings(self.predictors()[0].lm) if self._fallback is not None else {}
        return dspy.context(**settings) if settings else nullcontext()

    def inputs_of(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return inputs by the names of the signature, as the model reads them."""
        images = current_scope().images if self._by_reference else None
        read = target_inputs(self._task, inputs, self._root or Path(), images)
        return {self._names.get(name, name): value for name, value in read.items()}

    def outputs_of(self, prediction: dspy.Prediction) -> dspy.Prediction:
        """Return a prediction by the names of the task."""
        if not self._renamed:
            return prediction
        return dspy.Prediction(**{self._renamed.get(name, name): value for name, value in prediction.items()})
