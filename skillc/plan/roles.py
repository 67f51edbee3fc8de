"""Which of a program's models a run asks; the others are there for `eval --model`."""

from __future__ import annotations

from collections.abc import Iterator

from skillc.gates.stages import calls
from skillc.gates.terms import WordTerm
from skillc.plan.schema import Plan

TARGET, OPTIMIZER = "target", "optimizer"


def asked(plan: Plan) -> Plan:
    """The plan with the models that a compile asks: nobody else has to be there, or changes the name of a run."""
    roles = {TARGET, OPTIMIZER, *judges(plan)}
    return plan.model_copy(update={"models": {name: model for name, model in plan.models.items() if name in roles}})


def judges(plan: Plan) -> Iterator[str]:
    """The role of each judge that a rollout is shown to."""
    for metric in plan.metrics:
        for each in calls(metric.term):
            if each.function == "judge":
                model = each.option("model")
                yield model.word if isinstance(model, WordTerm) else getattr(model, "name", "judge")
