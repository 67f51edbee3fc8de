"""Random subsets of groups: the one source of chance in `confidence()` and in the verdict.

The test is the random-subset method of Hartigan, "Using subsample values as typical values", JASA 64 (1969). Where
there are no more non-empty subsets than were asked for, all of them are taken, and the test is exact.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from skillc.errors import SkillcError

# Eight groups a byte; the sums of a subset are looked up byte by byte, in integers.
_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(np.int64)
_MOST_EXACT = 2**62
_MOST_KEPT = 2**23

Bytes = npt.NDArray[np.uint8]


def subset_sums(columns: Sequence[Sequence[int]], count: int, seed: bytes) -> npt.NDArray[np.int64]:
    """The sum of each column over each subset, exact. Shape (columns, subsets).

    Args:
        columns: one or more lists of an integer per group.
        count: how many subsets to draw; fewer are used where fewer are possible.
        seed: which ones.

    Raises:
        SkillcError: the sums pass 2**62, where they would no longer be exact.
    """
    if any(sum(abs(value) for value in values) >= _MOST_EXACT for values in columns):
        raise SkillcError(
            "the differences are too large to be summed exactly", hint="give the metric a smaller range with `clamp`"
        )
    groups = len(columns[0])
    table = np.zeros((len(columns), -(-groups // 8) * 8), dtype=np.int64)
    table[:, :groups] = columns
    sums: npt.NDArray[np.int64] | None = None
    seen: Bytes | None = None
    for i, eight in enumerate(_eights(groups, count, seed)):
        looked_up = (table[:, 8 * i : 8 * i + 8] @ _BITS.T)[:, eight]
        sums = looked_up if sums is None else sums + looked_up
        seen = eight if seen is None else seen | eight
    assert sums is not None
    assert seen is not None
    return sums[:, seen != 0]


def _eights(groups: int, count: int, seed: bytes) -> Iterator[Bytes]:
    """For each eight groups in turn, a byte per subset that says which of them it holds. Empty subsets may occur."""
    if 2**groups - 1 <= count:
        every = np.arange(2**groups)
        yield from ((every >> shift & 255).astype(np.uint8) for shift in range(0, groups, 8))
    elif groups * count <= 8 * _MOST_KEPT:
        yield from _kept(groups, count, seed)
    else:
        yield from _drawn(groups, count, seed)


@lru_cache(maxsize=2)
def _kept(groups: int, count: int, seed: bytes) -> tuple[Bytes, ...]:
    return tuple(_drawn(groups, count, seed))


def _drawn(groups: int, count: int, seed: bytes) -> Iterator[Bytes]:
    """The bits are those of SHAKE-256, so they are the same on every machine and with every version of numpy."""
    for first in range(0, groups, 8):
        stream = hashlib.shake_256(seed + first.to_bytes(4, "big")).digest(count)
        mask = (1 << min(8, groups - first)) - 1
        yield np.frombuffer(stream, dtype=np.uint8) & np.uint8(mask)
