"""Labels that no example has, or only one side, and columns that are mostly empty."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

from pydantic import JsonValue

from skillc.data.dataset import Dataset
from skillc.data.examples import SIDES, Example
from skillc.data.problems import named
from skillc.diagnostics.diagnostic import Severity
from skillc.plan.advice import Advice
from skillc.plan.figures import share
from skillc.plan.schema import FieldPlan, Plan
from skillc.text import counted, joined

_MOST_ROWS = Fraction(1, 2)


def labels(plan: Plan, dataset: Dataset) -> Iterator[Advice]:
    """Declared labels of outputs, by where they are the right answer."""
    for output in plan.task.outputs:
        if output.type.kind != "labels":
            continue
        seen = {side: _counts(getattr(dataset, side), output) for side in SIDES}
        every = sum(seen.values(), Counter[str]())
        at = ("output", output.name, None)
        never = [label for label in output.type.labels if not every[label]]
        if never:
            message = f"no example has the label {named(never)}"
            yield Advice("SK434", Severity.NOTE, message, at, "bring examples of it, or remove it")
        unlearnt = [label for label in output.type.labels if every[label] and not seen["train"][label]]
        if unlearnt:
            where = joined([side for side in SIDES if any(seen[side][label] for label in unlearnt)])
            message = f"the label {named(unlearnt)} stands on {where} and not on train, so nothing can be learnt of it"
            yield Advice("SK435", Severity.WARNING, message, at, "bring more of it, or choose another `seed`")
        untried = [label for label in output.type.labels if seen["train"][label] and not (every - seen["train"])[label]]
        if untried:
            message = f"the label {named(untried)} stands on train alone, so nothing tells whether it was learnt"
            yield Advice("SK435", Severity.NOTE, message, at, "bring more of it, or choose another `seed`")


def _counts(examples: tuple[Example, ...], output: FieldPlan) -> Counter[str]:
    found: Counter[str] = Counter()
    for example in examples:
        gold = example.gold.get(output.name)
        found.update(each for each in (gold if isinstance(gold, list) else [gold]) if isinstance(each, str))
    return found


def empty_columns(plan: Plan, dataset: Dataset) -> Iterator[Advice]:
    """Inputs and fields that most rows say nothing for."""
    examples = (*dataset.train, *dataset.validation, *dataset.test)
    for kind, fields in (("input", plan.task.inputs), ("field", plan.data.fields)):
        for field in fields:
            empty = sum(_empty((e.inputs if kind == "input" else e.fields).get(field.name)) for e in examples)
            if empty > _MOST_ROWS * len(examples):
                message = (
                    f"`{field.name}` is empty in {share(empty / len(examples))} of {counted(len(examples), 'row')}"
                )
                hint = f"look at the column `{field.column}` of the data"
                yield Advice("SK436", Severity.NOTE, message, (kind, field.name, None), hint)


def _empty(value: JsonValue) -> bool:
    return value is None or value == [] or value == {} or (isinstance(value, str) and not value.strip())
