"""Random subsets of groups, the only source of chance in `confidence()` and in the verdict.

The test is the random-subset method of Hartigan, "Using subsample values as typical values", JASA 64 (1969). If no more
non-empty subsets exist than requested, all are used, and the test is exact.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from skillc.dataclass import dataclass
from skillc.errors import SkillcError

# numpy is imported by the first statistic, which comes long after the first call of a run.
if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Bytes: TypeAlias = npt.NDArray[np.uint8]
    # Exact integers: 64 bits if all sums fit, else Python's.
    Ints: TypeAlias = npt.NDArray[Any]

_MOST_EXACT = 2**62
_MOST_KEPT = 2**23


@lru_cache(maxsize=1)
def _bits() -> npt.NDArray[np.int64]:
    """Eight groups a byte; the sums of a subset are looked up byte by byte, in integers."""
    import numpy as np

    return np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(np.int64)


def subset_sums(columns: Sequence[Sequence[int]], count: int, seed: bytes) -> npt.NDArray[np.int64]:
    """The sum of each column over each subset, exact. Shape (columns, subsets).

    Args:
        columns: one or more lists of an integer per group.
        count: the number of subsets to draw, or all if fewer exist.
        seed: determines the subsets.

    Raises:
        SkillcError: the sums pass 2**62, where they would no longer be exact.
    """
    return RunningSums(len(columns), len(columns[0]), count, seed).at(columns)


class RunningSums:
    """Sums over the subsets that are updated incrementally: only changed groups are added again.

    Args:
        columns: the number of columns.
        groups: integers of each.
        count: the number of subsets to draw, or all if fewer exist.
        seed: determines the subsets.
    """

    def __init__(self, columns: int, groups: int, count: int, seed: bytes) -> None:
        import numpy as np

        self._drawing = (groups, count, seed)
        self._values = np.zeros((columns, -(-groups // 8) * 8), dtype=np.int64)
        self._sums = np.zeros((columns, _size(groups, count)), dtype=np.int64)

    def at(self, columns: Sequence[Sequence[int] | npt.NDArray[Any]]) -> npt.NDArray[np.int64]:
        """The exact sum of each column over each subset. Shape (columns, non-empty subsets).

        Raises:
            SkillcError: the sums pass 2**62, where they would no longer be exact.
        """
        import numpy as np

        groups = self._drawing[0]
        _check_exact(columns)
        moved = np.zeros_like(self._values)
        moved[:, :groups] = columns
        moved -= self._values
        changed = np.flatnonzero(np.any(moved.reshape(len(moved), -1, 8), axis=(0, 2))).tolist()
        for i, eight in zip(changed, _some_eights(*self._drawing, changed), strict=True):
            self._sums += (moved[:, 8 * i : 8 * i + 8] @ _bits().T)[:, eight]
        self._values += moved
        return self._sums[:, _not_empty(*self._drawing)]


def _check_exact(columns: Sequence[Sequence[int] | npt.NDArray[Any]]) -> None:
    """Compare in Python's integers if 64 bits might not suffice."""
    import numpy as np

    for values in columns:
        if isinstance(values, np.ndarray) and values.dtype == np.int64:
            most = max(int(values.max(initial=0)), -int(values.min(initial=0)))
            if most * len(values) < _MOST_EXACT:
                continue
        if sum(abs(int(value)) for value in values) >= _MOST_EXACT:
            raise SkillcError(
                "the differences are too large to be summed exactly",
                hint="give the metric a smaller range with `clamp`",
            )


@lru_cache(maxsize=4)
def _not_empty(groups: int, count: int, seed: bytes) -> npt.NDArray[np.bool_]:
    """Which subsets contain a group."""
    import numpy as np

    seen = np.zeros(_size(groups, count), dtype=np.uint8)
    for eight in _some_eights(groups, count, seed, range(-(-groups // 8))):
        seen |= eight
    return np.not_equal(seen, 0)


def _size(groups: int, count: int) -> int:
    """The number of subsets, empty ones included."""
    return 2**groups if _all_of_them(groups, count) else count


def _all_of_them(groups: int, count: int) -> bool:
    return bool(2**groups - 1 <= count)


def _some_eights(groups: int, count: int, seed: bytes, which: Sequence[int]) -> Iterator[Bytes]:
    """For some eights of the groups, one byte per subset with the groups that it contains."""
    if _all_of_them(groups, count):
        import numpy as np

        every = np.arange(2**groups)
        yield from ((every >> 8 * i & 255).astype(np.uint8) for i in which)
    elif groups * count <= 8 * _MOST_KEPT:
        kept = _kept(groups, count, seed)
        yield from (kept[i] for i in which)
    else:
        yield from (_drawn(i, groups, count, seed) for i in which)


@lru_cache(maxsize=2)
def _kept(groups: int, count: int, seed: bytes) -> tuple[Bytes, ...]:
    return tuple(_drawn(i, groups, count, seed) for i in range(-(-groups // 8)))


def _drawn(eight: int, groups: int, count: int, seed: bytes) -> Bytes:
    """Bits of SHAKE-256, the same on every machine and with every version of numpy."""
    import numpy as np

    first = 8 * eight
    stream = hashlib.shake_256(seed + first.to_bytes(4, "big")).digest(count)
    mask = (1 << min(8, groups - first)) - 1
    return np.frombuffer(stream, dtype=np.uint8) & np.uint8(mask)


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """A partition of some of the examples.

    Attributes:
        order: indices of the examples by group.
        starts: the start of each group in `order`.
        sizes: examples of each group.
    """

    order: Ints
    starts: Ints
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, members: Iterable[list[int]]) -> Groups:
        """Build the partition from the indices of each group; no group is empty."""
        import numpy as np

        groups = list(members)
        sizes = tuple(len(group) for group in groups)
        order = np.array([i for group in groups for i in group], dtype=np.intp)
        starts = np.cumsum([0, *sizes[:-1]]).astype(np.intp)
        return cls(order, starts, sizes)

    def sums(self, values: Ints) -> Ints:
        """The sum of a value per example over each group, in exact integers."""
        if not self.sizes:
            return values[:0]
        if len(self.sizes) == len(values):
            return values[self.order]
        import numpy as np

        return np.asarray(np.add.reduceat(values[self.order], self.starts))


SUBSETS = 9_999


def _p_values(sums: Ints) -> list[Fraction]:
    return [Fraction(1 + int((row <= 0).sum()), len(row) + 1) for row in sums]


class Confidence:
    """Bounds of 1 - p over every completion of the missing measurements.

    Args:
        groups: the number of split groups.
        seed: determines the subsets.
    """

    def __init__(self, groups: int, seed: int) -> None:
        drawn = hashlib.sha256(f"confidence {seed}".encode()).digest()
        self._sums = RunningSums(2, groups, SUBSETS, drawn) if groups else None

    def bounds(self, low: Ints, high: Ints, *, multiplicity: int = 1) -> tuple[Fraction, Fraction]:
        """The least and the greatest confidence.

        Args:
            low: the least possible difference of each split group, in millionths.
            high: the greatest.
            multiplicity: the number of decisions that share the error; p is multiplied by it (Bonferroni).
        """
        least, most = _p_values(self._sums.at((low, high))) if self._sums else (Fraction(1), Fraction(1))
        return 1 - min(Fraction(1), least * multiplicity), 1 - min(Fraction(1), most * multiplicity)
