"""All randomness of the loop: sha256 of (plan seed, epoch, step, purpose), never a clock and never arrival order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Protocol, TypeVar


class _Named(Protocol):
    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=_Named)


def seed_for(plan_seed: int, purpose: str, *, epoch: int = 0, step: int = 0) -> bytes:
    """32 bytes for one purpose at one place of the run."""
    return hashlib.sha256(json.dumps([plan_seed, epoch, step, purpose]).encode()).digest()


def shuffled(examples: Iterable[T], seed: bytes) -> list[T]:
    """The examples in the order of sha256(seed, id): a new example never changes the order of the others."""
    return sorted(examples, key=lambda example: hashlib.sha256(seed + example.id.encode()).digest())


def batches(examples: Sequence[T], size: int, *, plan_seed: int, epoch: int) -> list[tuple[T, ...]]:
    """One epoch: every training example once, in as few batches of at most `size` as hold them, all about as large."""
    order = shuffled(examples, seed_for(plan_seed, "batches", epoch=epoch))
    count = -(-len(order) // size)
    ends = [len(order) * i // count for i in range(count + 1)] if count else []
    return [tuple(order[start:end]) for start, end in pairwise(ends)]
