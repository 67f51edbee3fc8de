"""All that the examples of a program give reason to say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from skillc.budget.spend import Sizes
from skillc.data.dataset import Dataset
from skillc.diagnostics.diagnostic import Severity
from skillc.lint.columns import empty_columns, labels
from skillc.lint.places import source_of
from skillc.lint.quotes import quotes
from skillc.lint.twins import twins
from skillc.lint.weights import weights
from skillc.plan.advice import Advice
from skillc.plan.schema import Plan


def lint(plan: Plan, dataset: Dataset, sizes: Sizes, compiled: Mapping[str, str]) -> Iterator[Advice]:
    """Findings about examples, in linear time.

    Args:
        plan: of the program.
        dataset: its examples.
        sizes: of them.
        compiled: texts of a skill that was compiled before, by what messages call them; none where there is none.
    """
    for warning in dataset.warnings:
        yield Advice("SK439", Severity.NOTE, warning, source_of(plan))
    yield from twins(plan, dataset)
    yield from labels(plan, dataset)
    yield from empty_columns(plan, dataset)
    yield from quotes(plan, dataset, compiled)
    yield from weights(plan, dataset, sizes)
