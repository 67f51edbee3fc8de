"""GAIA's quasi exact match, measured and shown to neither judge nor evolver."""

from __future__ import annotations

from typing import Any

from skillc.metrics.quasi_match import is_quasi_match


def quasi_exact_match(example: dict[str, Any], prediction: dict[str, Any]) -> bool:
    """Return whether the answer is right. There is no feedback, so that the optimizer learns nothing of it."""
    given = prediction["answer"]
    return is_quasi_match("None" if given is None else str(given), str(example["gold"]["answer"]))
