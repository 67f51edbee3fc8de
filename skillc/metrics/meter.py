"""Measure one rollout: every metric of the plan as a cell, and the feedback for the optimizer."""

from __future__ import annotations

import copy
import json
import math
import operator as operators
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import JsonValue

from skillc import user_code
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.gates.noisy import rates_of
from skillc.gates.terms import (
    CallTerm,
    Constant,
    FieldTerm,
    ListTerm,
    MetricTerm,
    Operation,
    Term,
    TextConstant,
    WordTerm,
    fold,
    walk,
)
from skillc.json_values import JsonObject
from skillc.metrics.behaviour import TRAJECTORY, WITHOUT_ANSWER, measure_trajectory
from skillc.metrics.judging.combine import feedback_lines
from skillc.metrics.judging.judges import Verdicts
from skillc.metrics.judging.prompt import prompt_digest
from skillc.metrics.judging.verdict import JudgeFailed
from skillc.metrics.primitives import COUNTS, PRIMITIVES, SEARCHES, Measurement, Subject, phrases_of, same, text_of
from skillc.outcomes import MICRO, Cell, Example, Scored, Unmeasured, UnmeasuredKind
from skillc.plan.judges import judges_of
from skillc.plan.schema import MetricPlan, Plan, artifact_name
from skillc.text import listed
from skillc.trajectories.signals import opened_skills
from skillc.trajectories.trajectory import Trajectory

OPENED = "opened"
"""The function of what the target opened, which reads the trajectory and no answer."""
JUDGE = "judge"
_NOBODY = JudgeFailed("", "nobody was asked for a verdict")
_LONGEST = 80
_OPERATIONS: Mapping[str, Callable[[Fraction, Fraction], Fraction | bool]] = {
    "+": operators.add,
    "-": operators.sub,
    "*": operators.mul,
    "/": operators.truediv,
    "<": operators.lt,
    "<=": operators.le,
    ">": operators.gt,
    ">=": operators.ge,
    "==": operators.eq,
    "!=": operators.ne,
}


class MetricError(SkillcError):
    """A metric raised an exception, returned no number or left its range. The run stops."""


class MetricFailed(SkillcError):  # noqa: N818
    """A metric of the user raised an exception or returned no number."""


class _Unjudged(Exception):  # noqa: N818 -- never leaves this module
    """A metric reads a judge that failed."""


@dataclass(frozen=True, slots=True)
class RolloutScores:
    """What was measured on one rollout.

    Attributes:
        cells: by metric.
        feedback: of the primitives and the judges, one line each.
        failure: why a judge gave no verdict; empty if all did.
    """

    cells: Mapping[str, Cell]
    feedback: str
    failure: str = ""


NO_VERDICTS: Verdicts = MappingProxyType({})


def unmeasured(plan: Plan, kind: UnmeasuredKind) -> dict[str, Cell]:
    """Return the cells of a rollout that failed."""
    return {metric.name: Unmeasured(kind) for metric in plan.metrics}


class Meter:
    """Measures rollouts of a plan.

    Args:
        plan: whose metrics are measured.
        root: the program's folder, where the user's metrics are searched first.
        places: file and line of each example by its id, for messages.

    Raises:
        SkillcError: a user's metric cannot be imported.
    """

    def __init__(self, plan: Plan, root: Path, places: Mapping[str, tuple[str, int]] | None = None) -> None:
        self._plan = plan
        self.root = root
        self._places = places or {}
        self._functions = {name: user_code.load_function(name, root, "metric") for name in python_names(plan)}
        self._read_by_goal = _read_by(plan, plan.goal)
        self._without_answer = _without_answer(plan)

    def measure(self, example: Example, trajectory: Trajectory, verdicts: Verdicts = NO_VERDICTS) -> RolloutScores:
        """Score each metric. A rollout without an answer gets the worst value of each, and its problem as feedback.

        `verdicts` are those of the judges. A metric that reads a judge without one is unmeasured, the others are not.

        Raises:
            MetricError: a metric failed on this example.
        """
        if trajectory.answer is None:
            worst: dict[str, Cell] = {m.name: Scored(_micro(_worst(m))) for m in self._plan.metrics}
            kept = self._evaluate(self._without_answer, example, trajectory)
            problem = trajectory.problem or "the answer could not be read"
            return RolloutScores({**worst, **kept.cells}, "\n".join(filter(None, (problem, kept.feedback))))
        return self._evaluate(self._plan.metrics, example, trajectory, verdicts)

    @property
    def reads_trajectory(self) -> bool:
        """Whether the goal depends on more than the answer of a rollout, as on its steps or on a judge."""
        terms = (part for metric in self._read_by_goal for part in walk(metric.term))
        return any(isinstance(part, CallTerm) and part.function in (*TRAJECTORY, OPENED, JUDGE) for part in terms)

    def holds(self, condition: Term, example: Example) -> bool:
        """Return whether a condition on the data holds for an example, whatever a rollout does.

        Raises:
            MetricError: it cannot be decided on this example.
        """
        try:
            return condition_holds(self._plan, condition, example)
        except SkillcError as problem:
            raise MetricError(f"a condition on {self.describe(example)}: {problem.message}") from problem

    def goal(self, example: Example, prediction: JsonObject) -> Cell:
        """Return the goal's score, evaluating only the metrics that the goal reads.

        Raises:
            MetricError: a metric failed on this example.
        """
        return self._evaluate(self._read_by_goal, example, Trajectory(answer=prediction)).cells[self._plan.goal.name]

    def _evaluate(
        self,
        metrics: Sequence[MetricPlan],
        example: Example,
        trajectory: Trajectory,
        verdicts: Verdicts = NO_VERDICTS,
    ) -> RolloutScores:
        rollout = _Evaluation(self._plan, self._functions, example, trajectory, self.root, verdicts)
        cells: dict[str, Cell] = {}
        failures: list[str] = []
        for metric in metrics:
            try:
                cells[metric.name] = Scored(_micro(rollout.score(metric)))
            except _Unjudged as failed:
                cells[metric.name] = Unmeasured("judge")
                failures.append(str(failed))
            except SkillcError as problem:
                raise self._failed(metric, example, trajectory.answer or {}, problem) from problem
        feedback = "\n".join(dict.fromkeys(line for line in rollout.feedback if line))
        return RolloutScores(cells, feedback, "; ".join(dict.fromkeys(failures)))

    def describe(self, example: Example) -> str:
        """Name an example in a message by its id and its place in the data."""
        file, line = self._places.get(example.id, ("", 0))
        return f"example `{example.id}`" + (f" (`{file}` line {line})" if file else "")

    def input_lines(self, example: Example) -> str:
        """Return the inputs of an example, one shortened line each."""
        return _lines({**example.inputs, **example.fields})

    def _failed(
        self, metric: MetricPlan, example: Example, prediction: JsonObject, problem: SkillcError
    ) -> MetricError:
        """Return the error of a metric on an example, with the values that it read."""
        terms = list(walk(metric.term))
        names = {term.name for term in terms if isinstance(term, FieldTerm)}
        reads_all = any(isinstance(term, CallTerm) and term.function == "python" for term in terms)

        def read(values: JsonObject) -> dict[str, JsonValue]:
            return {name: value for name, value in values.items() if reads_all or name in names}

        values = {
            **read({**example.inputs, **example.fields}),
            **{f"gold.{name}": value for name, value in read(example.gold).items()},
            **{f"answer.{name}": value for name, value in read(prediction).items()},
        }
        where = f"the metric `{metric.name}` on {self.describe(example)}"
        return MetricError(f"{where}: {problem.message}{_lines(values)}", hint=problem.hint)


def condition_holds(plan: Plan, condition: Term, example: Example) -> bool:
    """Return whether a condition on the data holds for an example.

    Raises:
        SkillcError: it cannot be decided on this example.
    """
    rollout = _Evaluation(plan, {}, example, Trajectory(answer={}), Path())
    for metric in _read_by_term(plan, condition):
        rollout.score(metric)
    return rollout.holds(condition)


_Value = Fraction | JsonValue
"""A number, or the text, field or list that is an argument of a function."""


def _lines(values: JsonObject) -> str:
    """Return values by name as JSON, one shortened line each."""
    texts = {name: json.dumps(value, ensure_ascii=False) for name, value in values.items()}
    return "".join(
        f"\n  {name} = {text if len(text) <= _LONGEST else text[:_LONGEST] + '…'}" for name, text in texts.items()
    )


class _Evaluation:
    """The evaluation of one rollout. Each primitive runs once, even if several metrics use it."""

    def __init__(
        self,
        plan: Plan,
        functions: Mapping[str, Callable[..., Any]],
        example: Example,
        trajectory: Trajectory,
        root: Path,
        verdicts: Verdicts = NO_VERDICTS,
    ) -> None:
        self._plan = plan
        self._verdicts = verdicts
        self._unjudged: dict[str, str] = {}
        self._scoring = ""
        self._root = root
        self._functions = functions
        self._example = example
        self._trajectory = trajectory
        self._prediction = trajectory.answer or {}
        self._outputs = {field.name: field for field in plan.task.outputs}
        self._scores: dict[str, Fraction] = {}
        self._primitives: dict[CallTerm, Fraction] = {}
        self._counts: dict[CallTerm, Fraction] = {}
        self.feedback: list[str] = []

    def score(self, metric: MetricPlan) -> Fraction:
        self._scoring = metric.name
        try:
            score = _within(_exact(fold(metric.term, self._evaluate)), metric.low, metric.high)
        except _Unjudged as failed:
            self._unjudged[metric.name] = str(failed)
            raise
        except SkillcError:
            raise
        except Exception as problem:
            raise SkillcError(f"{type(problem).__name__}: {problem}") from problem
        self._scores[metric.name] = score
        return score

    def holds(self, condition: Term) -> bool:
        return bool(fold(condition, self._evaluate))

    def _evaluate(self, term: Term, inner: list[_Value]) -> _Value:
        """Evaluate a part of a metric from the values of its parts."""
        match term:
            case Constant(value) | TextConstant(value):
                return value
            case MetricTerm(name):
                if name in self._unjudged:
                    raise _Unjudged(self._unjudged[name])
                return self._scores[name]
            case FieldTerm(name):
                values = self._prediction if name in self._outputs else {**self._example.fields, **self._example.inputs}
                return values.get(name)
            case ListTerm():
                return [_plain(value) for value in inner]
            case CallTerm():
                return self._call(term, inner)
            case Operation():
                return _operation(term, inner)
        return None

    def _call(self, term: CallTerm, inner: list[_Value]) -> Fraction:
        if term.function in ("min", "max", "clamp"):
            numbers = [_exact(value) for value in inner]
            if term.function == "clamp":
                return max(numbers[1], min(numbers[0], numbers[2]))
            return min(numbers) if term.function == "min" else max(numbers)
        if (rates := rates_of(term)) is not None:
            return rates.corrected(_exact(inner[0]))
        if term.function in COUNTS:
            count = self._counts.get(term)
            if count is None:
                count = self._counts[term] = Fraction(COUNTS[term.function](text_of(_plain(inner[0]))))
            return count
        score = self._primitives.get(term)
        if score is None and term.function == JUDGE:
            judged = self._verdicts.get(term, _NOBODY)
            if isinstance(judged, JudgeFailed):
                raise _Unjudged(judged.detail)
            score = self._primitives[term] = judged.score
            self.feedback += feedback_lines(self._scoring, judged)
        if score is None:
            measure, low, high = self._measure(term, inner)
            score = self._primitives[term] = _within(_exact(measure.score), low, high)
            self.feedback.append(measure.feedback)
        return score

    def _measure(self, term: CallTerm, inner: list[_Value]) -> tuple[Measurement, Fraction, Fraction]:
        """Return the result of a primitive and its declared range."""
        if term.function in TRAJECTORY:
            measured, most = measure_trajectory(term.function, self._trajectory, [_plain(value) for value in inner])
            return measured, Fraction(0), _exact(most)
        if term.function == OPENED:
            return self._opened(term), Fraction(0), Fraction(1)
        options = dict(zip((name for name, _ in term.options), inner[len(term.arguments) :], strict=True))
        argument, *others = term.arguments
        if term.function in SEARCHES:
            search, reveal = SEARCHES[term.function], self._may_reveal(others[0])
            return search(_plain(inner[0]), phrases_of(_plain(inner[1])), reveal), Fraction(0), Fraction(1)
        if term.function == "python":
            assert isinstance(argument, TextConstant)
            given = [_python_argument(other) for other in others]
            measure = _call_user(self._functions[argument.value], self._example, self._prediction, given, self._root)
            low, high = options.get("low"), options.get("high")
            return measure, Fraction(0) if low is None else _exact(low), Fraction(1) if high is None else _exact(high)
        assert isinstance(argument, FieldTerm)
        subject = Subject(
            name=argument.name,
            type=self._outputs[argument.name].type,
            value=self._prediction.get(argument.name),
            gold=self._example.gold.get(argument.name),
            options=options,
            reveal="gold" in self._plan.optimize.sees,
        )
        return PRIMITIVES[term.function](subject), Fraction(0), Fraction(1)

    def _opened(self, term: CallTerm) -> Measurement:
        (skill,) = term.arguments
        assert isinstance(skill, WordTerm)
        found = opened_skills(self._trajectory)
        return Measurement(
            artifact_name(skill.word) in found, f"it opened {listed(found, 'and')}" if found else "it opened no skill"
        )

    def _may_reveal(self, phrases: Term) -> bool:
        """Whether feedback may quote phrases: a column of the data may contain what the right answer is made of."""
        if not isinstance(phrases, FieldTerm) or "gold" in self._plan.optimize.sees:
            return True
        return phrases.name not in {each.name for each in self._plan.data.fields}


def _operation(term: Operation, inner: list[_Value]) -> Fraction:
    operator = term.operator
    if operator in ("==", "!=") and any(isinstance(operand, FieldTerm | TextConstant) for operand in term.operands):
        equal = same(*map(_plain, inner))
        return Fraction(equal if operator == "==" else not equal)
    numbers = [_exact(value) for value in inner]
    match operator:
        case "and":
            return Fraction(all(numbers))
        case "or":
            return Fraction(any(numbers))
        case "not":
            return Fraction(not numbers[0])
        case "negate":
            return -numbers[0]
    return Fraction(_OPERATIONS[operator](*numbers))


def _worst(metric: MetricPlan) -> Fraction:
    """Return the value of a rollout without an answer: it is wrong for certain, whatever a noisy signal would say."""
    return metric.low if metric.rates is None else Fraction(0)


def _plain(value: _Value) -> JsonValue:
    """Return a value as JSON, an exact number as a float."""
    return float(value) if isinstance(value, Fraction) else value


def _python_argument(term: Term) -> JsonValue:
    """Return an argument for a function of the user: the name of a field, a text or a number."""
    if isinstance(term, FieldTerm):
        return term.name
    if isinstance(term, TextConstant):
        return term.value
    assert isinstance(term, Constant)
    return int(term.value) if term.value.denominator == 1 else float(term.value)


def _without_answer(plan: Plan) -> tuple[MetricPlan, ...]:
    """Return the metrics of what the target opened or called, which a rollout without a readable answer has too."""
    reads: dict[str, bool] = {}
    for metric in plan.metrics:
        parts = list(walk(metric.term))
        functions = {part.function for part in parts if isinstance(part, CallTerm)}
        named = [part.name for part in parts if isinstance(part, MetricTerm)]
        outputs = {field.name for field in plan.task.outputs}
        answers = any(isinstance(part, FieldTerm) and part.name in outputs for part in parts) or "python" in functions
        reads[metric.name] = (bool(functions & {OPENED, *WITHOUT_ANSWER}) or any(map(reads.get, named))) and not (
            answers or any(not reads.get(name) for name in named)
        )
    return tuple(metric for metric in plan.metrics if reads[metric.name])


def _read_by_term(plan: Plan, term: Term) -> tuple[MetricPlan, ...]:
    """Return the metrics that a term reads, directly or through others, in the plan's order."""
    wanted = {part.name for part in walk(term) if isinstance(part, MetricTerm)}
    for each in reversed(plan.metrics):
        if each.name in wanted:
            wanted |= {part.name for part in walk(each.term) if isinstance(part, MetricTerm)}
    return tuple(each for each in plan.metrics if each.name in wanted)


def _read_by(plan: Plan, metric: MetricPlan) -> tuple[MetricPlan, ...]:
    """Return a metric and those that it reads, in the plan's order."""
    return _read_by_term(plan, MetricTerm(metric.name))


def python_names(plan: Plan) -> list[str]:
    """Return the distinct `module:function` names that the plan's metrics call, in order."""
    terms = (part for metric in plan.metrics for part in walk(metric.term))
    calls = (part for part in terms if isinstance(part, CallTerm) and part.function == "python")
    names = (call.arguments[0] for call in calls)
    return list(dict.fromkeys(name.value for name in names if isinstance(name, TextConstant)))


def _exact(value: object) -> Fraction:
    """Return an exact number; a float is rounded to millionths."""
    if isinstance(value, bool | int | Fraction):
        return Fraction(value)
    if isinstance(value, float) and math.isfinite(value):
        return Fraction(round(value * MICRO), MICRO)
    raise SkillcError(f"`{value}` is not a finite number")


def _within(score: Fraction, low: Fraction, high: Fraction) -> Fraction:
    if not low <= score <= high:
        raise SkillcError(
            f"{float(score):g} is outside the range {float(low):g} to {float(high):g}",
            hint="declare the range with `low = ...` and `high = ...`, or use `clamp`",
        )
    return score


def _micro(value: Fraction) -> int:
    """Round to millionths, halves to even."""
    return round(value * MICRO)


def _call_user(
    function: Callable[..., Any],
    example: Example,
    prediction: JsonObject,
    arguments: Sequence[JsonValue],
    root: Path,
) -> Measurement:
    """Call a user's function, which returns a number, a bool, (score, feedback) or an object with both.

    The function is called as `function(example, prediction)` with copies; the example has the inputs and the data
    fields by name, the right answers under `gold`, and `id`. Further arguments of the program follow:
    `python("module:function", reply, 3)` passes the name `"reply"` and 3.

    Raises:
        MetricFailed: it raised an exception, or returned no number.
    """
    data = {**example.inputs, **example.fields, "gold": dict(example.gold), "id": example.id}
    given = copy.deepcopy(data), copy.deepcopy(dict(prediction))
    try:
        return _measurement(function(*given, *arguments))
    except MetricFailed as problem:
        place = user_code.defined_at(function, root)
        raise MetricFailed(f"{problem.message}, from the function at `{place}`" if place else problem.message) from None
    except BaseException as problem:
        if not user_code.raised_by_user_code(problem):
            raise
        raise MetricFailed(user_code.describe_exception(problem, root, function)) from problem


def _measurement(result: Any) -> Measurement:
    feedback: object = ""
    if isinstance(result, tuple) and len(result) == 2:
        result, feedback = result
    elif isinstance(result, Mapping) and "score" in result:
        result, feedback = result["score"], result.get("feedback")
    elif hasattr(result, "score"):
        result, feedback = result.score, getattr(result, "feedback", "")
    return Measurement(_plain_number(result), str(feedback or ""))


def _plain_number(value: object) -> Fraction | int | float:
    if hasattr(value, "item") and callable(value.item):
        value = value.item()  # a scalar of numpy or of torch
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        raise MetricFailed(f"`{value}` is not a finite number")
    if isinstance(value, Decimal):
        return Fraction(value)
    if isinstance(value, bool | int | float | Fraction):
        return value
    raise MetricFailed(f"a score must be a number, not {type(value).__name__}")


def metric_sources(plan: Plan, root: Path) -> dict[str, str]:
    """Return the source digest of each user's metric, by `module:function`, and that of the prompt of judges, if any.

    Raises:
        SkillcError: a module or a function does not exist.
    """
    found = {
        name: user_code.source_digest(name, user_code.load_function(name, root, "metric"), root)
        for name in python_names(plan)
    }
    return {**found, JUDGE: prompt_digest()} if judges_of(plan) else found
