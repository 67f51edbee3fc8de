"""Amounts as a terminal shows them."""

from __future__ import annotations

from fractions import Fraction
from math import ceil


def tokens(value: int) -> str:
    """`950`, `12.3k`, `1.2M`: three figures at most."""
    for size, letter in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if value >= size:
            scaled = value / size
            return f"{scaled:.1f}{letter}" if scaled < 99.95 else f"{round(scaled):,}{letter}"
    return str(value)


def dollars(value: Fraction | None) -> str:
    """`$3.20`, `$0.0042`, `$0`; `?` where a price is not known."""
    if value is None:
        return "?"
    if value == 0:
        return "$0"
    if value >= Fraction(1, 10):
        return f"${float(value):,.2f}"
    return f"${float(value):.2g}" if value >= Fraction(1, 10_000) else "<$0.0001"


def percent(value: float) -> str:
    """`46 %`."""
    return f"{value * 100:.0f} %"


def rounded_up(value: int) -> int:
    """The number with two figures, never less than it is."""
    scale: int = 10 ** max(0, len(str(value)) - 2)
    return -(-value // scale) * scale


def cents_up(value: Fraction) -> str:
    """Dollars in whole cents, never less than they are: `0.43`."""
    cents = max(1, ceil(value * 100))
    return f"{cents // 100}.{cents % 100:02}" if cents % 100 else str(cents // 100)
