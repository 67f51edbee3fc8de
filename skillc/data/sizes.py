"""A data set in numbers, for the bounds of a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from pydantic import JsonValue

from skillc.budget.spend import Extent, Sizes
from skillc.data.dataset import Dataset
from skillc.json_values import as_text
from skillc.plan.schema import Plan
from skillc.tokens import count_tokens


def sizes_of(plan: Plan, dataset: Dataset) -> Sizes:
    """How many examples there are, how long they are, and how they fall into groups on validation."""
    examples = (*dataset.train, *dataset.validation, *dataset.test)
    names = [field.name for field in plan.data.fields]
    return Sizes(
        train=len(dataset.train),
        validation=len(dataset.validation),
        test=len(dataset.test),
        groups=len({example.group for example in dataset.test}),
        values={name: dict(Counter(str(e.fields.get(name)) for e in dataset.validation)) for name in names},
        inputs=Extent.of(_tokens(example.inputs) for example in examples),
        outputs=Extent.of(_tokens(example.gold) for example in examples),
    )


def _tokens(values: Mapping[str, JsonValue]) -> int:
    texts = map(as_text, values.values())
    return sum(_few(text) if len(text) <= _SHORT else count_tokens(text) for text in texts)


# Labels and other short answers are the same over and over.
_SHORT = 40
_few = lru_cache(maxsize=4096)(count_tokens)
