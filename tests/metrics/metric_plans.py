"""Plans with metrics and examples to measure, built by hand."""

from fractions import Fraction

from skillc.gates.terms import CallTerm, Constant, FieldTerm, TextConstant
from skillc.language.loop import BudgetPlan, OptimizePlan
from skillc.outcomes import Example
from skillc.plan.schema import DataPlan, FieldPlan, MetricPlan, Plan, SectionPlan, SkillPlan, TaskPlan, TypePlan

TEXT = TypePlan(kind="text")
LABELS = TypePlan(kind="labels", labels=("billing", "shipping"))


def field(name, type_=TEXT):
    return FieldPlan(name=name, type=type_, column=name)


def metric(name, term, *, low=0, high=1, goal=False):
    return MetricPlan(name=name, term=term, low=Fraction(low), high=Fraction(high), goal=goal)


def plan(*metrics, output=LABELS, sees=("gold", "feedback", "trajectory")):
    """A ticket router; the last metric is the goal."""
    last = metrics[-1].model_copy(update={"goal": True})
    return Plan(
        task=TaskPlan(inputs=(field("ticket"),), outputs=(field("team", output),)),
        skill=SkillPlan(name="s", artifact="s", about="a", sections=(SectionPlan(name="r", mode="trainable"),)),
        models={},
        data=DataPlan(source="d.jsonl", fields=(field("weight", TypePlan(kind="number")),)),
        metrics=(*metrics[:-1], last),
        optimize=OptimizePlan(sees=sees),
        budget=BudgetPlan(),
        gates=(),
    )


def example(gold="billing", ticket="a ticket", **fields):
    return Example("t001", {"ticket": ticket}, {"team": gold}, fields, "g")


def on_team(function, **options):
    return CallTerm(function, (FieldTerm("team"),), tuple(options.items()))


def python(name, **ends):
    return CallTerm("python", (TextConstant(name),), tuple((k, Constant(Fraction(v))) for k, v in ends.items()))
