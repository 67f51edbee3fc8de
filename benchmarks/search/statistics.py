"""Means over seeds, with intervals by percentile bootstrap of the seeds (fixed seed)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 10_000
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def mean(values: Sequence[float]) -> Estimate:
    """The mean over seeds."""
    array = np.array(values)
    return _estimate(float(array.mean()), _drawn(len(array), array).mean(axis=1))


def ratio(over: Sequence[float], under: Sequence[float]) -> Estimate:
    """The ratio of two means over the same seeds, which are drawn in pairs."""
    top, bottom = np.array(over), np.array(under)
    pairs = _drawn(len(top), np.stack([top, bottom], axis=1)).mean(axis=1)
    with np.errstate(divide="ignore"):
        drawn = pairs[:, 0] / pairs[:, 1]
    return _estimate(float(top.mean() / bottom.mean()), drawn)


def _drawn(count: int, values: np.ndarray) -> np.ndarray:
    """Resamples of the seeds, along the second axis."""
    return values[np.random.default_rng(0).integers(0, count, (RESAMPLES, count))]


def _estimate(value: float, drawn: np.ndarray) -> Estimate:
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(value, float(low), float(high))
