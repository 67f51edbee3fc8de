"""In which order validation examples are sent: where an answer is likely to be decided first."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from skillc.data.examples import Example


def _never(example: Example) -> int:
    return 0


def validation_order(
    examples: Sequence[Example],
    score: Callable[[Example], int | None],
    *,
    seed: int,
    flips: Callable[[Example], int] = _never,
) -> list[Example]:
    """The incumbent's failures first, then by its score upwards; equals by flips, then by sha256(seed, example).

    A candidate that cures none of the failures can no longer be better, whatever it does on the rest. What the
    incumbent was not measured on goes last: it settles nothing.

    Args:
        examples: of the validation split.
        score: the incumbent's, in millionths; None where it was not measured.
        seed: the plan's.
        flips: how many skills so far scored otherwise than the incumbent; the next one is likelier to as well.
    """

    def key(example: Example) -> tuple[bool, int, int, bytes]:
        known = score(example)
        digest = hashlib.sha256(f"{seed}\0{example.id}".encode()).digest()
        return known is None, known or 0, -flips(example), digest

    return sorted(examples, key=key)
