"""What bounds need to know of the data: how many examples, how long, and how they fall into groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

POOLED_BELOW = 20
OTHER = "other"


@dataclass(frozen=True, slots=True)
class Extent:
    """Tokens of one kind of text over the examples, by the counter of the language: rounded-up mean, and the most."""

    mean: int = 0
    most: int = 0

    @classmethod
    def of(cls, counts: Iterable[int]) -> Extent:
        """The extent of some counts; 0 where there are none."""
        known = list(counts)
        return cls(-(-sum(known) // len(known)), max(known)) if known else cls()


@dataclass(frozen=True, slots=True)
class Sizes:
    """The data in numbers.

    Attributes:
        train: examples to learn from.
        validation: examples that gates are decided on.
        test: examples of the final test; 0 where there is none.
        groups: split groups on test.
        values: for each field that a gate names, how many validation examples have each value.
        inputs: tokens of an example's inputs.
        outputs: tokens of an example's right answer.
    """

    train: int
    validation: int
    test: int
    groups: int = 0
    values: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    inputs: Extent = Extent()
    outputs: Extent = Extent()

    def smallest_group(self, field: str) -> tuple[str, int] | None:
        """Name and size of the smallest group that `by = field` makes on validation; None where nothing is known.

        Values with fewer than 20 examples are one group, `other` (ENGINE section 3).
        """
        counts = self.values.get(field)
        if not counts:
            return None
        groups = [(size, name) for name, size in counts.items() if size >= POOLED_BELOW]
        pooled = sum(size for size in counts.values() if size < POOLED_BELOW)
        if pooled:
            groups.append((pooled, OTHER))
        size, name = min(groups)
        return name, size
