"""Numbers and texts as a terminal shows them."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from skillc.diagnostics.render import printable


def count(value: int) -> str:
    """`1,234`."""
    return f"{value:,}"


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


def share(value: float) -> str:
    """`46 %`."""
    return f"{value * 100:.0f} %"


def seconds(value: Fraction) -> str:
    """`90 min`, `8 h`, `45 s`: the largest unit that leaves a whole number."""
    for size, unit in ((3600, "h"), (60, "min")):
        if value % size == 0 and (unit != "h" or value >= 2 * size):
            return f"{value // size} {unit}"
    return f"{float(value):g} s"


def rounded_up(value: int) -> int:
    """The number with two figures, never less than it is."""
    scale: int = 10 ** max(0, len(str(value)) - 2)
    return -(-value // scale) * scale


def cents_up(value: Fraction) -> str:
    """Dollars in whole cents, never less than they are: `0.43`."""
    cents = max(1, ceil(value * 100))
    return f"{cents // 100}.{cents % 100:02}" if cents % 100 else str(cents // 100)


def one_line(text: str) -> str:
    """Return a text from a model or a file as one line that cannot move the cursor."""
    return printable(" ".join(text.split()))
