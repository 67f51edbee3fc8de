"""The statements that stand for the metrics of a program in `evals.json`, and what a rollout says of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pydantic import JsonValue

from skillc.dataclass import dataclass
from skillc.gates.functions import EXAMPLE_FUNCTIONS
from skillc.gates.terms import CallTerm, FieldTerm, show_term
from skillc.items.record import Measure, measures_of
from skillc.json_values import as_text
from skillc.metrics.judging.statements import statements_of
from skillc.optimize.rollouts import Outcome
from skillc.outcomes import MICRO, Example, Scored
from skillc.plan.judges import JudgePlan, judge_of, judges_of
from skillc.plan.schema import MetricPlan, Plan
from skillc.text import cut

_LONGEST = 400
# Of another function, such as an error or a number of calls, the highest value may be the worst.
_HIGHER_IS_BETTER = frozenset(
    {
        *("exact_match", "contains", "one_of", "numeric", "json_fields", "valid_json", "f1", "precision_of"),
        *("recall_of", "mentions", "covers", "judge"),
    }
)


@dataclass(frozen=True, slots=True)
class Assertion:
    """A statement about the output of one example.

    Attributes:
        metric: the metric that it stands for.
        statement: the number of the judge of statements and that of the statement; None if it is the whole metric.
    """

    text: str
    metric: str
    statement: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Grade:
    """Whether a rollout passes an assertion, and the evidence."""

    text: str
    passed: bool
    evidence: str


class Assertions:
    """The assertions of a program: one for each metric that its goal reads, and for each statement of a judge."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._measures: Mapping[str, Measure] = {each.name: each for each in measures_of(plan)}
        self._metrics = [
            metric
            for metric in plan.metrics
            if metric.name in self._measures
            and self._measures[metric.name].in_goal
            and (call := _calls(metric)) is not None
            and call.function in _HIGHER_IS_BETTER
        ]
        if not self._metrics:
            self._metrics = [plan.goal] if plan.goal.name in self._measures else []
        self._judges = [judge for judge in judges_of(plan) if judge.rubric.each is not None]

    def of(self, example: Example) -> tuple[Assertion, ...]:
        """Return the assertions about an example, in the order of the metrics."""
        return tuple(each for metric in self._metrics for each in self._of_metric(metric, example))

    def grades(self, example: Example, outcome: Outcome) -> tuple[Grade, ...] | None:
        """Return what a rollout says of each assertion; None if it was not measured, which is no failure."""
        found = []
        for each in self.of(example):
            cell = outcome.cells.get(each.metric)
            if not isinstance(cell, Scored):
                return None
            if each.statement is not None and outcome.statements:
                judge, number = each.statement
                score, why = outcome.statements[judge][number]
                found.append(Grade(each.text, score == MICRO, why))
                continue
            passed = each.statement is None and self._measures[each.metric].is_right(cell.value)
            score_text = f"{each.metric} = {cell.value / MICRO:g}"
            detail = outcome.trajectory.problem or outcome.feedback
            found.append(Grade(each.text, passed, cut(f"{score_text}: {detail}" if detail else score_text, _LONGEST)))
        return tuple(found)

    def _of_metric(self, metric: MetricPlan, example: Example) -> Iterator[Assertion]:
        call = _calls(metric)
        if call is not None and call.function == "judge":
            judge = judge_of(self._plan, call)
            if judge.rubric.each is not None:
                place = next(i for i, each in enumerate(self._judges) if each.term == judge.term)
                for number, text in enumerate(statements_of(judge.rubric, example)):
                    yield Assertion(text, metric.name, (place, number))
                return
            yield Assertion(_of_judge(judge), metric.name)
            return
        write = _WRITTEN.get(call.function) if call is not None else None
        written = write(self._plan, call, example) if write is not None and call is not None else None
        agrees = _agrees(self._plan, call, example) if call is not None else None
        yield Assertion(written or agrees or _of_any(metric), metric.name)


def expected_output(plan: Plan, example: Example) -> str:
    """Return the right answer of an example as text, with the name of each output if there are several."""
    golds = {field.name: _golds(plan, field.name, example) for field in plan.task.outputs}
    texts = {name: " or ".join(map(as_text, found)) for name, found in golds.items() if found}
    return next(iter(texts.values()), "") if len(golds) == 1 else "\n".join(f"{n}: {text}" for n, text in texts.items())


def _calls(metric: MetricPlan) -> CallTerm | None:
    """Return the call that a metric consists of; None for any other expression."""
    return metric.term if isinstance(metric.term, CallTerm) else None


def _golds(plan: Plan, output: str, example: Example) -> list[JsonValue]:
    value = example.gold.get(output)
    field = next(each for each in plan.task.outputs if each.name == output)
    several = isinstance(value, list) and field.type.kind != "list"
    found = value if isinstance(value, list) and several else [value]
    return [each for each in found if each is not None]


def _subject(plan: Plan, output: str) -> str:
    return "The output" if len(plan.task.outputs) == 1 else f"The field `{output}` of the output"


def _compared(verb: str) -> Callable[[Plan, CallTerm, Example], str | None]:
    def write(plan: Plan, call: CallTerm, example: Example) -> str | None:
        output = call.arguments[0]
        golds = _golds(plan, output.name, example) if isinstance(output, FieldTerm) else []
        if not golds or not isinstance(output, FieldTerm):
            return None
        subject, texts = _subject(plan, output.name), [" ".join(as_text(gold).split()) for gold in golds]
        if len(texts) > 1:
            return f"{subject} {verb} one of these: {'; '.join(texts)}"
        return f'{subject} {verb} "{texts[0]}"'

    return write


def _agrees(plan: Plan, call: CallTerm, example: Example) -> str | None:
    """Return the statement of another function that compares an output with right answers; None without any."""
    output = call.arguments[0] if call.arguments else None
    known = EXAMPLE_FUNCTIONS.get(call.function)
    if known is None or not known.compares or not isinstance(output, FieldTerm):
        return None
    golds = _golds(plan, output.name, example)
    if not golds:
        return None
    texts = " or ".join(" ".join(as_text(gold).split()) for gold in golds)
    return cut(f"{_subject(plan, output.name)} agrees with the right answer, by {call.function}: {texts}", _LONGEST)


def _is_json(plan: Plan, call: CallTerm, example: Example) -> str | None:
    output = call.arguments[0]
    return f"{_subject(plan, output.name)} is valid JSON" if isinstance(output, FieldTerm) else None


_WRITTEN: Mapping[str, Callable[[Plan, CallTerm, Example], str | None]] = {
    "exact_match": _compared("is exactly"),
    "contains": _compared("contains"),
    "valid_json": _is_json,
}


def _of_judge(judge: JudgePlan) -> str:
    texts = []
    for each in judge.rubric.criteria:
        meant = each.question if not each.levels else f"{each.question} {each.levels[0][1]}".strip()
        texts.append(f"{each.name}: {meant}" if each.name else meant)
    against = {"gold": "Better than the right answer: ", "initial": "Better than without the changes: "}
    return cut(against.get(judge.against or "", "") + "; ".join(texts), _LONGEST)


def _of_any(metric: MetricPlan) -> str:
    return cut(f"`{metric.name}` has its best value, {metric.high}: {show_term(metric.term)}", _LONGEST)
