"""What metrics need besides rollouts: judges, each with its rubric and the models that it asks, and right answers."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Literal, cast

from skillc.dataclass import dataclass
from skillc.gates.functions import EXAMPLE_FUNCTIONS
from skillc.gates.terms import CallTerm, FieldTerm, MetricTerm, TextConstant, WordTerm, calls, walk
from skillc.language.checked import Entity, Word, amount_of, items_of, word_of
from skillc.language.judges import RubricProblem, judge_calls, judge_roles, read_rubric
from skillc.plan.schema import CriterionPlan, MetricPlan, Plan, RubricPlan

Reference = Literal["gold", "initial"]


@dataclass(frozen=True, slots=True)
class JudgePlan:
    """One call of `judge` in the metrics of a plan.

    Attributes:
        term: the call, by which metrics find its result.
        output: the output that is judged.
        rubric: its criteria.
        roles: the model, or those of the panel.
        against: what the output is compared with, in both orders; None for a rubric of levels.
    """

    term: CallTerm
    output: str
    rubric: RubricPlan
    roles: tuple[str, ...]
    against: Reference | None = None

    @property
    def calls(self) -> int:
        """Calls of models for one rollout, if each reply can be read."""
        return len(self.roles) * (2 if self.against is not None else 1)

    @property
    def sees_gold(self) -> bool:
        """Whether a model reads the right answer."""
        return "gold" in self.rubric.sees or self.against == "gold"


def judges_of(plan: Plan, metric: MetricPlan | None = None) -> tuple[JudgePlan, ...]:
    """Return the judges of a plan, or those that a metric reads, directly or through other metrics, each once."""
    metrics = plan.metrics if metric is None else _read_by(plan, metric)
    return tuple(judge_of(plan, each) for each in judge_calls(each.term for each in metrics))


def _read_by(plan: Plan, metric: MetricPlan) -> list[MetricPlan]:
    """Return a metric and those that it is computed from."""
    below = [part.name for part in walk(metric.term) if isinstance(part, MetricTerm)]
    return [metric, *(each for name in below for each in _read_by(plan, plan.metric(name)))]


def judge_of(plan: Plan, term: CallTerm) -> JudgePlan:
    """Return what a call of `judge` asks, and whom."""
    against = term.option("against")
    output = term.arguments[0] if term.arguments else None
    return JudgePlan(
        term=term,
        output=output.name if isinstance(output, FieldTerm) else plan.task.outputs[0].name,
        rubric=_rubric(plan, term),
        roles=judge_roles(term),
        against=cast(Reference, against.word) if isinstance(against, WordTerm) else None,
    )


def reads_judge(plan: Plan, metric: MetricPlan) -> bool:
    """Whether the value of a metric depends on a judge, directly or through other metrics."""
    return bool(judge_calls(each.term for each in _read_by(plan, metric)))


def _rubric(plan: Plan, term: CallTerm) -> RubricPlan:
    written = term.arguments[1] if len(term.arguments) > 1 else None
    if isinstance(written, WordTerm):
        return plan.rubrics[written.word]
    return RubricPlan(criteria=(_criterion("", written.value if isinstance(written, TextConstant) else ""),))


def rubric_of_entity(rubric: Entity) -> RubricPlan:
    """Return the plan of a checked rubric."""
    each = word_of(rubric.settings, "each")
    return RubricPlan.model_validate(
        {
            "each": each,
            "criteria": ()
            if each is not None
            else tuple(
                _criterion(part.name or "", part.text, amount_of(part.settings, "weight") or Fraction(1))
                for part in rubric.children_of("criterion")
            )
            or (_criterion("", rubric.text),),
            "sees": tuple(sorted({item.text for item in items_of(rubric.settings, "sees") if isinstance(item, Word)})),
        }
    )


def _criterion(name: str, text: str, weight: Fraction = Fraction(1)) -> CriterionPlan:
    """Return a criterion; a text that is no rubric, which the checker reports, is its own question."""
    found = read_rubric(text)
    if isinstance(found, RubricProblem):
        return CriterionPlan(name=name, question=text, weight=weight)
    return CriterionPlan(name=name, question=found.question, levels=found.levels, weight=weight)


# ---- right answers ----------------------------------------------------------------------------------


def compared_outputs(plan: Plan) -> Mapping[str, str]:
    """Return the outputs that a metric compares with right answers, each with the first such metric.

    The data needs right answers for these only. A judge, a metric that reads the output alone, calls of tools, a reward
    and a function of the user measure a rollout without.
    """
    found: dict[str, str] = {}
    for metric in plan.metrics:
        for call in calls(metric.term):
            for output in _compared(plan, call):
                found.setdefault(output, metric.name)
    return found


def _compared(plan: Plan, call: CallTerm) -> list[str]:
    """Return the outputs that a call compares with right answers, itself or by a judge that reads them."""
    if call.function == "judge":
        judge = judge_of(plan, call)
        return [judge.output] if judge.sees_gold else []
    known = EXAMPLE_FUNCTIONS.get(call.function)
    if known is None or not known.compares:
        return []
    return [argument.name for argument in call.arguments if isinstance(argument, FieldTerm)]


def may_compare(metric: MetricPlan) -> bool:
    """Whether code compares an output with right answers in a metric itself, or a function of the user may."""
    called = {call.function for call in calls(metric.term)}
    return any(name == "python" or (name in EXAMPLE_FUNCTIONS and EXAMPLE_FUNCTIONS[name].compares) for name in called)


def calls_python(plan: Plan) -> bool:
    """Whether a metric calls a function of the user, which is given the right answers that an example has."""
    return any(call.function == "python" for metric in plan.metrics for call in calls(metric.term))
