"""How messages name an example, and where in the program they point."""

from __future__ import annotations

from skillc.data.dataset import Dataset
from skillc.data.examples import Example
from skillc.data.problems import located
from skillc.plan.advice import Place
from skillc.plan.schema import Plan


def place_of(dataset: Dataset, example: Example) -> str:
    """Where an example stands: `` `tickets.jsonl` line 3 ``."""
    known = dataset.places.get(example.id)
    return located(*known) if known is not None else f"`{example.id}`"


def source_of(plan: Plan) -> Place:
    """The setting that names the data."""
    return ("data", None, "source" if plan.data.source is not None else "train")
