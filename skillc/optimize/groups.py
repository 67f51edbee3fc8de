"""Examples in groups, and exact sums over each group."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

# Exact integers: 64 bits where all sums fit, else Python's own.
Ints = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """A partition of some of the examples.

    Attributes:
        order: indices of the examples, group after group.
        starts: where in `order` each group begins.
        sizes: examples of each group.
    """

    order: Ints
    starts: Ints
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, members: Iterable[list[int]]) -> Groups:
        """From the indices of each group's examples; no group is empty."""
        groups = list(members)
        sizes = tuple(len(group) for group in groups)
        order = np.array([i for group in groups for i in group], dtype=np.intp)
        starts = np.cumsum([0, *sizes[:-1]]).astype(np.intp)
        return cls(order, starts, sizes)

    def sums(self, values: Ints) -> Ints:
        """The sum over each group of a value per example; in integers, so the order does not matter."""
        if not self.sizes:
            return values[:0]
        if len(self.sizes) == len(values):
            return values[self.order]
        return np.asarray(np.add.reduceat(values[self.order], self.starts))
