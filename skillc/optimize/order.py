"""In which order validation examples are sent: where an answer is likely to be decided first."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from skillc.data.example import Example


def validation_order(
    examples: Sequence[Example], score: Callable[[Example], int | None], *, seed: int
) -> list[Example]:
    """The incumbent's failures first, then by its score upwards; equals by sha256(seed, example).

    A candidate that cures none of the failures can no longer be better, whatever it does on the rest. What the
    incumbent was not measured on goes last: it settles nothing.
    """

    def key(example: Example) -> tuple[bool, int, bytes]:
        known = score(example)
        return known is None, known or 0, hashlib.sha256(f"{seed}\0{example.id}".encode()).digest()

    return sorted(examples, key=key)
