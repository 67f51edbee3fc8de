"""Plans, checked programs and sizes to test with, built by hand."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from skillc.budget.spend import Extent, Sizes
from skillc.gates.terms import CallTerm, Constant, FieldTerm, MeanTerm, MetricTerm, Operation, StateTerm, Term
from skillc.json_values import fields_of
from skillc.language.checked import (
    Amount,
    Checked,
    CheckedGate,
    CheckedMetric,
    Entity,
    FieldType,
    Setting,
    Value,
    Word,
)
from skillc.language.loop import SchedulePlan
from skillc.plan.resolve import resolve
from skillc.plan.schema import Plan, PricePlan
from skillc.syntax.nodes import Program
from skillc.syntax.source import Source, Span

SOURCE = Source("tickets.skill", "language 1\n# a program\n")
SPAN = Span(0, 8)

CORRECT = CallTerm("exact_match", (FieldTerm("team"),))
BETTER = Operation(">", (MeanTerm("candidate", "correct"), MeanTerm("incumbent", "correct")))
SAFE = Operation(
    "<=",
    (CallTerm("regressed", (MetricTerm("correct"),), (("by", FieldTerm("product")),)), Constant(Fraction(1, 10))),
)
COMPACT = Operation("<=", (CallTerm("tokens", (StateTerm("candidate"),)), Constant(Fraction(2000), "tokens")))


def setting(value: Value, **block: Setting) -> Setting:
    return Setting(value, SOURCE, SPAN, block)


def settings(**values: Value | Setting) -> dict[str, Setting]:
    return {name: value if isinstance(value, Setting) else setting(value) for name, value in values.items()}


def number(value: float | str, unit: str = "") -> Amount:
    return Amount(Fraction(value), unit)


def entity(kind: str, name: str | None = None, **options: Any) -> Entity:
    return Entity(kind, name, SOURCE, SPAN, **options)


def metric(name: str, term: Term, *, goal: bool = False, **options: Any) -> CheckedMetric:
    given = {"unit": "", "low": Fraction(0), "high": Fraction(1), "declared": True, **options}
    return CheckedMetric(name, term, goal=goal, source=SOURCE, span=SPAN, **given)


def gate(name: str, term: Term, *, text: str = "", kind: Any = "gate", for_: Any = None) -> CheckedGate:
    return CheckedGate(name, term, kind, for_, text, SOURCE, SPAN)


def parts() -> dict[str, Entity]:
    """The entities of a whole program, by kind, models by role."""
    return {
        "task": entity(
            "task",
            children=(
                entity("input", "ticket", type=FieldType("text"), settings=settings(about="as written")),
                entity("output", "team", type=FieldType("labels", ("billing", "shipping"))),
            ),
        ),
        "skill": entity(
            "skill",
            "route_tickets",
            settings=settings(about="Route a ticket.\n  Use it for each."),
            children=(
                entity("section", "role", words=("frozen",), value="You route tickets."),
                entity("section", "rules", words=("trainable",), settings=settings(limit=number(800, "tokens"))),
                entity("section", "guidance", words=("slow",), settings=settings(limit=number(300, "tokens"))),
            ),
        ),
        "target": entity("model", "target", value="openai/small", settings=settings(temperature=number(0))),
        "optimizer": entity("model", "optimizer", value="openai/large"),
        "data": entity(
            "data",
            settings=settings(source="tickets.jsonl", group=Word("customer"), seed=number(7)),
            children=(
                entity("field", "product", type=FieldType("text")),
                entity("field", "customer", type=FieldType("text")),
            ),
        ),
        "budget": entity("budget", settings=settings(epochs=number(4, "epochs"), cost=number(3, "$"))),
    }


def checked(entities: dict[str, Entity] | None = None, **options: Any) -> Checked:
    given = {
        "metrics": (metric("correct", CORRECT, goal=True),),
        "gates": (gate("better", BETTER, text="candidate.correct > incumbent.correct"), gate("compact", COMPACT)),
        "diagnostics": (),
        **options,
    }
    return Checked(Program(SPAN, SOURCE, (), ()), 1, tuple((entities or parts()).values()), **given)


def plan(**changes: Any) -> Plan:
    """The plan of the program, with blocks changed: `plan(budget={"calls": 10})`.

    All its steps are edits, at most 4 each, and successes are reflected on: this reaches every stage but drafts and
    rewrites.
    """
    found = resolve(checked()).plan
    assert found is not None
    own = {"drafts": 0, "update": "edits", "edits": SchedulePlan(start=4, end=2), "successes": True}
    found = found.model_copy(update={"optimize": replace(found.optimize, **own)})
    for block, fields in changes.items():
        old = getattr(found, block)
        new = (
            type(old)(**{**fields_of(old), **fields})
            if isinstance(fields, dict) and not isinstance(old, dict)
            else fields
        )
        found = found.model_copy(update={block: new})
    return found


SIZES = Sizes(
    train=160,
    validation=80,
    test=160,
    groups=120,
    values={"product": {"app": 50, "shop": 24, "api": 6}},
    inputs=Extent(60, 200),
    outputs=Extent(2, 4),
)
PRICES = {
    "target": PricePlan(input=Fraction(1, 4), output=Fraction(2)),
    "optimizer": PricePlan(input=Fraction(5), output=Fraction(30)),
}
