"""The module that DSPy's optimizers are given: one predictor for each open section, rollouts by the compiled module.

A predictor here only carries a section's text, where these optimizers look for it, and is never called itself. So
frozen text is out of their reach, a section keeps its name, and every rollout is measured as the loop measures it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dspy

from skillc.data.examples import Example
from skillc.document.skill import Document
from skillc.optimize.methods.bridge import Bridge
from skillc.optimize.methods.texts import texts_of
from skillc.optimize.rollouts import Outcome
from skillc.optimize.sight import shown_answer, shown_feedback, shown_gold, shown_inputs, trimmed
from skillc.plan.schema import Plan
from skillc.program.module import signature_of
from skillc.program.names import field_names

_EXAMPLE = "skillc_example"


class Item(dspy.Example):  # type: ignore[misc]  # dspy has no types
    """An example for DSPy; what a module is called with says which one it is, and its text does not."""

    def inputs(self) -> dspy.Example:
        """The inputs, and the example's id beside them."""
        plain = {name: value for name, value in self._store.items() if name in (self._input_keys or ())}
        return dspy.Example(**plain, **{_EXAMPLE: self._example_id})


class Student(dspy.Module):  # type: ignore[misc]
    """Answers by the loop's rollouts under the texts that its predictors carry."""

    def __init__(self, bridge: Bridge) -> None:
        super().__init__()
        self.bridge = bridge
        plan = bridge.engine.plan
        self.sections = {
            name: dspy.Predict(signature_of(plan.task, f"{plan.skill.name} {name}", text))
            for name, text in texts_of(bridge.initial).items()
        }

    @property
    def texts(self) -> dict[str, str]:
        """The text of each section."""
        return {name: predictor.signature.instructions for name, predictor in self.sections.items()}

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Answers one example; the prediction knows its score and its feedback."""
        example = self.bridge.example(inputs[_EXAMPLE])
        plan, written = self.bridge.engine.plan, self.bridge.written(self.texts)
        if written.problem is not None:
            self.bridge.check()
            values, score, feedback = _unread(plan, "(not run)"), 0.0, f"The skill was refused: {written.problem}."
        else:
            outcome = self.bridge.outcomes(written.document, example)[0]
            score = self.bridge.score(written.document, example)
            values, feedback = _values(plan, outcome), feedback_of(plan, example, outcome, score)
        prediction = dspy.Prediction(**values)
        prediction._score, prediction._feedback = score, feedback
        self._note(shown(plan, example), prediction)
        return prediction

    def _note(self, inputs: Mapping[str, str], prediction: dspy.Prediction) -> None:
        """Writes into DSPy's trace that each section had its part in the answer."""
        trace = dspy.settings.trace
        if trace is not None:
            trace.extend((predictor, dict(inputs), prediction) for predictor in self.sections.values())


def items(plan: Plan, examples: Sequence[Example]) -> list[Item]:
    """Examples for DSPy, with the right answers only where the program lets the optimizer see them."""
    names = field_names(plan.task)
    found = []
    for example in examples:
        gold = example.gold if "gold" in plan.optimize.sees else {}
        answers = {names[name]: value for name, value in gold.items()}
        item = Item(**shown(plan, example), **answers).with_inputs(*(names[field.name] for field in plan.task.inputs))
        item._example_id = example.id
        found.append(item)
    return found


def shown(plan: Plan, example: Example) -> dict[str, str]:
    """The inputs under the names that the signature has for them, as texts, each trimmed."""
    names = field_names(plan.task)
    return {names[name]: text for name, text in shown_inputs(example, plan.optimize.trajectory_limit).items()}


def score_of(gold: Any, prediction: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None) -> float:
    """The metric for optimizers that want a number."""
    score: float = prediction._score
    return score


def scored(gold: Any, prediction: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None) -> Any:
    """The metric for `dspy.GEPA`: the score with the feedback that the program lets it see."""
    return dspy.Prediction(score=prediction._score, feedback=prediction._feedback)


def feedback_of(plan: Plan, example: Example, outcome: Outcome, score: float) -> str:
    """What a method may read about one rollout, as far as `sees` allows."""
    lines = [f"The score is {score:g}, where 0 is the worst and 1 the best."]
    said, gold = shown_feedback(plan, outcome), shown_gold(plan, example)
    if said:
        lines.append(said)
    if gold is not None:
        lines.append(f"The right answer is `{gold}`.")
    if "trajectory" in plan.optimize.sees and plan.task.rollout.kind != "predict" and outcome.reply:
        lines.append(f"The whole reply was:\n{trimmed(outcome.reply, plan.optimize.trajectory_limit)}")
    return "\n".join(lines)


def _values(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    names = field_names(plan.task)
    if outcome.answer is None:
        return _unread(plan, shown_answer(plan, outcome, plan.optimize.trajectory_limit))
    return {names[name]: value for name, value in outcome.answer.items()}


def _unread(plan: Plan, text: str) -> dict[str, Any]:
    names = field_names(plan.task)
    return {names[field.name]: text for field in plan.task.outputs}


def document_of(bridge: Bridge, program: Any) -> tuple[Document, str | None]:
    """The skill in a module that an optimizer gave back, and what is wrong with its texts."""
    written = bridge.written(Student.texts.fget(program))  # type: ignore[attr-defined]
    return written.document, written.problem
