"""Seeded noise: a model that is sometimes wrong, in the same places every time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

_SCALE = 1 << 64


def draw(seed: int, messages: Sequence[Mapping[str, object]], sample: object, purpose: str) -> float:
    """A number in [0, 1), decided by sha256 of the seed, the messages, the sample and what it is for."""
    text = json.dumps(
        [seed, sample, purpose, [dict(m) for m in messages]], sort_keys=True, ensure_ascii=True, default=str
    )
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) / _SCALE


def wrong_label(
    label: str, labels: Sequence[str], share: float, seed: int, messages: Sequence[Mapping[str, object]], sample: object
) -> str:
    """The label, or with probability `share` one of the others."""
    others = [other for other in labels if other != label]
    if share <= 0 or not others or draw(seed, messages, sample, "whether") >= share:
        return label
    return others[int(draw(seed, messages, sample, "which") * len(others))]
