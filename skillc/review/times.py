"""Wall time by stage."""

from __future__ import annotations

from collections.abc import Iterator

from skillc.review.run_view import RunView
from skillc.review.words import duration

# Seconds of a stage that is worth a row.
_SHORTEST = 0.05


def wall_times(view: RunView) -> Iterator[tuple[str, str, str]]:
    """Yield the wall time of each stage and its share, the longest first; nothing if it was not recorded."""
    seconds = view.seconds or {}
    whole = sum(seconds.values())
    for stage, amount in sorted(seconds.items(), key=lambda each: -each[1]):
        if amount >= _SHORTEST:
            yield stage, duration(amount), f"{amount / whole * 100:.0f} %"
    if whole:
        yield "all", duration(whole), ""
