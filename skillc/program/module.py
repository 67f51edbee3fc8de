"""The DSPy module of a task: its signature, and the target of the user."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Literal, Optional

import dspy
from dspy.signatures.signature import make_signature
from pydantic import JsonValue

from skillc.language.loop import BudgetPlan
from skillc.models.client import Client
from skillc.models.dspy_lm import make_lm
from skillc.plan.schema import Plan, TaskPlan, TypePlan
from skillc.program.names import class_name, field_names, kind_of

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
    """Return the signature of a task.

    Args:
        task: its inputs and outputs. Their `about` is part of the instructions and is not repeated as a description.
        name: the skill's name, from which the signature's unique name is made.
        instructions: what the model receives; see `present.instructions`.
    """
    names = field_names(task)
    fields: dict[str, tuple[Any, Any]] = {}
    for plan in task.inputs:
        fields[names[plan.name]] = (annotation(plan.type), dspy.InputField())
    for plan in task.outputs:
        fields[names[plan.name]] = (annotation(plan.type), dspy.OutputField())
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
    """Gives the settings under which a loaded program answers: DSPy's own where an LM is configured, else the plan's.

    The budget is for compiling and does not bind here. The client is made at the first call; `root` is the program's
    folder.
    """

    def __init__(self, plan: Plan, root: Path | None = None) -> None:
        self._plan = plan
        self._root = root
        self._lock = threading.Lock()
        self._settings: dict[str, Any] | None = None

    def settings(self, own_lm: Any) -> dict[str, Any]:
        """Overrides for `dspy.context`; none where the predictor or DSPy has an LM.

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


_REMOTE = ("http://", "https://", "gs://", "data:")
_PREDICTORS = {"predict": dspy.Predict, "chain_of_thought": dspy.ChainOfThought}


class SkillModule(dspy.Module):  # type: ignore[misc]  # dspy has no types
    """A compiled skill as a DSPy module; its one predictor is the attribute `answer`."""

    def __init__(self, task: TaskPlan, name: str, instructions: str, fallback: FallbackTarget | None = None) -> None:
        super().__init__()
        self._fallback = fallback
        self._names = field_names(task)
        self._images = frozenset(field.name for field in task.inputs if field.type.kind == "image")
        self._renamed = {new: old for old, new in self._names.items() if new != old}
        self.answer = _PREDICTORS[kind_of(task)](signature_of(task, name, instructions))

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Answer one example."""
        with self._context():
            return self._outputs(self.answer(**self._inputs(inputs)))

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """Answer one example, awaited."""
        with self._context():
            return self._outputs(await self.answer.acall(**self._inputs(inputs)))

    def _context(self) -> AbstractContextManager[Any]:
        settings = self._fallback.settings(self.predictors()[0].lm) if self._fallback is not None else {}
        return dspy.context(**settings) if settings else nullcontext()

    def _inputs(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {self._names.get(name, name): self._input(name, value) for name, value in inputs.items()}

    def _input(self, name: str, value: JsonValue) -> Any:
        return _image(value) if name in self._images and isinstance(value, str) else value

    def _outputs(self, prediction: dspy.Prediction) -> dspy.Prediction:
        if not self._renamed:
            return prediction
        return dspy.Prediction(**{self._renamed.get(name, name): value for name, value in prediction.items()})


def build_module(
    task: TaskPlan, name: str, instructions: str, *, fallback: FallbackTarget | None = None
) -> SkillModule:
    """Return the module of a task; `names.instructions` makes the instructions from a skill's text.

    Args:
        task: inputs, outputs, and how a rollout runs.
        name: the skill's name.
        instructions: what the model is told.
        fallback: answers where DSPy has no LM configured.

    Raises:
        SkillcError: the task's rollout is of a kind that this version does not compile.
    """
    return SkillModule(task, name, instructions, fallback)


def _image(place: str) -> dspy.Image:
    """Return an address or a data URI as it is, and the image at a path, which `dspy.Image` never reads by itself."""
    return dspy.Image(place) if place.startswith(_REMOTE) else dspy.Image.from_path(place)
