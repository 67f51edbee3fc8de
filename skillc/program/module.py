"""The compiled module: one predictor under a stable name, sync and async, safe to be called concurrently."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import dspy
from pydantic import JsonValue

from skillc.plan.schema import TaskPlan
from skillc.program.names import field_names
from skillc.program.own import OwnTarget
from skillc.program.present import kind_of
from skillc.program.signature import signature_of

_REMOTE = ("http://", "https://", "gs://", "data:")
_PREDICTORS = {"predict": dspy.Predict, "chain_of_thought": dspy.ChainOfThought}


class Program(dspy.Module):  # type: ignore[misc]  # dspy has no types
    """A compiled skill as a DSPy module; its one predictor is the attribute `answer`."""

    def __init__(self, task: TaskPlan, name: str, instructions: str, own: OwnTarget | None = None) -> None:
        super().__init__()
        self._own = own
        self._names = field_names(task)
        self._images = frozenset(field.name for field in task.inputs if field.type.kind == "image")
        self._renamed = {new: old for old, new in self._names.items() if new != old}
        self.answer = _PREDICTORS[kind_of(task)](signature_of(task, name, instructions))

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Answers one example."""
        with self._context():
            return self._outputs(self.answer(**self._inputs(inputs)))

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """The same, awaited."""
        with self._context():
            return self._outputs(await self.answer.acall(**self._inputs(inputs)))

    def _context(self) -> AbstractContextManager[Any]:
        settings = self._own.settings(self.predictors()[0].lm) if self._own is not None else {}
        return dspy.context(**settings) if settings else nullcontext()

    def _inputs(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {self._names.get(name, name): self._input(name, value) for name, value in inputs.items()}

    def _input(self, name: str, value: JsonValue) -> Any:
        return _image(value) if name in self._images and isinstance(value, str) else value

    def _outputs(self, prediction: dspy.Prediction) -> dspy.Prediction:
        if not self._renamed:
            return prediction
        return dspy.Prediction(**{self._renamed.get(name, name): value for name, value in prediction.items()})


def build_module(task: TaskPlan, name: str, instructions: str, *, own: OwnTarget | None = None) -> Program:
    """The module of a task; `present.instructions` makes the instructions from a skill's text.

    Args:
        task: inputs, outputs, and how a rollout runs.
        name: the skill's name.
        instructions: what the model is told.
        own: answers where DSPy has no LM configured.

    Raises:
        SkillcError: the task's rollout is of a kind that this version does not compile.
    """
    return Program(task, name, instructions, own)


def _image(place: str) -> dspy.Image:
    """An address or a data URI as it is; a path is read, which `dspy.Image` never does by itself."""
    return dspy.Image(place) if place.startswith(_REMOTE) else dspy.Image.from_path(place)
