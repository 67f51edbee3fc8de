"""The judges of a plan: each distinct call of `judge` in its metrics, with its rubric and the models that it asks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, cast

from skillc.gates.functions import judge_roles
from skillc.gates.terms import CallTerm, FieldTerm, MetricTerm, TextConstant, WordTerm, calls, walk
from skillc.language.checked import Entity, Word, amount_of, items_of
from skillc.language.rubrics import RubricProblem, read_rubric
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


def judges_of(plan: Plan, metrics: Iterable[MetricPlan] | None = None) -> tuple[JudgePlan, ...]:
    """Return the judges of a plan, or of some of its metrics, each once."""
    terms = [metric.term for metric in (plan.metrics if metrics is None else metrics)]
    found = dict.fromkeys(each for term in terms for each in calls(term) if each.function == "judge")
    return tuple(judge_of(plan, each) for each in found)


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


def judge_calls(plan: Plan, metric: MetricPlan) -> frozenset[CallTerm]:
    """Return the calls of `judge` that a metric depends on, directly or through other metrics."""
    parts = list(walk(metric.term))
    own = frozenset(part for part in parts if isinstance(part, CallTerm) and part.function == "judge")
    return own.union(*(judge_calls(plan, plan.metric(part.name)) for part in parts if isinstance(part, MetricTerm)))


def reads_judge(plan: Plan, metric: MetricPlan) -> bool:
    """Whether the value of a metric depends on a judge, directly or through other metrics."""
    return bool(judge_calls(plan, metric))


def _rubric(plan: Plan, term: CallTerm) -> RubricPlan:
    written = term.arguments[1] if len(term.arguments) > 1 else None
    if isinstance(written, WordTerm):
        return plan.rubrics[written.word]
    return RubricPlan(criteria=(_criterion("", written.value if isinstance(written, TextConstant) else ""),))


def rubric_of_entity(rubric: Entity) -> RubricPlan:
    """Return the plan of a checked rubric."""
    return RubricPlan.model_validate(
        {
            "criteria": tuple(
                _criterion(each.name or "", each.text, amount_of(each.settings, "weight") or Fraction(1))
                for each in rubric.children_of("criterion")
            )
            or (_criterion("", rubric.text),),
            "sees": tuple(sorted({each.text for each in items_of(rubric.settings, "sees") if isinstance(each, Word)})),
        }
    )


def _criterion(name: str, text: str, weight: Fraction = Fraction(1)) -> CriterionPlan:
    """Return a criterion; a text that is no rubric, which the checker reports, is its own question."""
    found = read_rubric(text)
    if isinstance(found, RubricProblem):
        return CriterionPlan(name=name, question=text, weight=weight)
    return CriterionPlan(name=name, question=found.question, levels=found.levels, weight=weight)
