"""Units: how a program writes quantities, and how they are shown (`66.95 %`, `1.3 points`, `2,013 tokens`, `$0.012`).

Quantities are kept in base units; a plain number and a share have the empty unit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil
from types import MappingProxyType

NUMBER = ""
TOKENS = "tokens"
SECONDS = "s"
DOLLARS = "$"

_COUNTED = ("tokens", "bytes", "examples", "steps", "epochs", "turns", "rounds")
_SCALED: dict[str, tuple[str, Fraction]] = {
    "%": (NUMBER, Fraction(1, 100)),
    "s": (SECONDS, Fraction(1)),
    "ms": (SECONDS, Fraction(1, 1000)),
    "min": (SECONDS, Fraction(60)),
    "h": (SECONDS, Fraction(3600)),
    "KB": ("bytes", Fraction(10**3)),
    "MB": ("bytes", Fraction(10**6)),
    "GB": ("bytes", Fraction(10**9)),
}

UNITS: Mapping[str, tuple[str, Fraction]] = MappingProxyType(
    _SCALED | {unit: (unit, Fraction(1)) for unit in _COUNTED} | {unit[:-1]: (unit, Fraction(1)) for unit in _COUNTED}
)
"""Units that may follow a number, each with its base unit and the factor to it."""

SYNONYMS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("sec", "secs", "second", "seconds"), "s")
    | dict.fromkeys(("m", "mins", "minute", "minutes"), "min")
    | dict.fromkeys(("hr", "hrs", "hour", "hours"), "h")
    | dict.fromkeys(("msec", "millisecond", "milliseconds"), "ms")
    | dict.fromkeys(("percent", "pct", "pp", "points"), "%")
    | dict.fromkeys(("usd", "USD", "dollar", "dollars"), "$")
    | {"kb": "KB", "mb": "MB", "gb": "GB", "kB": "KB", "tok": "tokens", "toks": "tokens", "b": "bytes"}
    | {"K": "k", "m": "M"}
)
"""Other spellings of units, each with the spelling of the language."""


def describe_unit(unit: str | None) -> str:
    """Describe a unit in a message: `tokens`, or `a plain number`."""
    if unit is None:
        return "any unit"
    return f"`{unit}`" if unit else "a plain number"


def format_quantity(value: Fraction, unit: str) -> str:
    """Write a quantity as a program would: `800 tokens`, `$3`, `0.05`."""
    if unit == DOLLARS:
        return f"${decimal(value)}" if value >= 0 else f"-${decimal(-value)}"
    return f"{decimal(value)} {unit}" if unit else decimal(value)


def format_duration(seconds: Fraction) -> str:
    """Format seconds in the largest unit that leaves a whole number: `90 min`."""
    for unit in ("h", "min"):
        size = UNITS[unit][1]
        if seconds and seconds % size == 0:
            return format_quantity(seconds / size, unit)
    return format_quantity(seconds, SECONDS)


def decimal(value: Fraction) -> str:
    """The shortest exact decimal; a number without a finite one stays a fraction, `1 / 3`."""
    if value.denominator == 1:
        return str(value.numerator)
    twos, fives, rest = 0, 0, value.denominator
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    if rest != 1:
        return f"{value.numerator} / {value.denominator}"
    places = max(twos, fives)
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"


# ---- display ----------------------------------------------------------------------------------------

SHARE, POINTS = "%", "points"
"""Units in which a value is shown a hundredfold."""
_PLACES = {SHARE: 2, POINTS: 2, TOKENS: 0, DOLLARS: 6, SECONDS: 3}
_MOST_PLACES = 30


def unit_of_metric(unit: str, low: Fraction | int, high: Fraction | int) -> str:
    """The unit that a metric's mean is shown in: per cent for a plain number between 0 and 1, else its own unit."""
    return SHARE if not unit and low >= 0 and high <= 1 else unit


def places_for(values: Sequence[Fraction], unit: str) -> int:
    """Return the fewest decimal places that keep different values distinct, at least the unit's default."""
    places, distinct = _PLACES.get(unit, 4), len(set(values))
    scaled = [value * _scale(unit) for value in values]
    while places < _MOST_PLACES and len({round(value * 10**places) for value in scaled}) < distinct:
        places += 1
    return places


def format_amount(value: Fraction, unit: str, places: int) -> str:
    """Format a value in its unit with at most `places` decimals: `66.95 %`, `2,013 tokens`."""
    ticks = round(value * _scale(unit) * 10**places)
    whole, rest = divmod(abs(ticks), 10**places)
    digits = f"{whole:,}" + (f".{rest:0{places}d}".rstrip("0").rstrip(".") if places else "")
    sign = "-" if ticks < 0 else ""
    if unit == DOLLARS:
        return f"{sign}${digits}"
    return f"{sign}{digits} {unit}" if unit else sign + digits


def _scale(unit: str) -> int:
    return 100 if unit in (SHARE, POINTS) else 1


def tokens(value: int) -> str:
    """`950`, `12.3k`, `1.2M`: three figures at most."""
    for size, letter in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if value >= size:
            scaled = value / size
            return f"{scaled:.1f}{letter}" if scaled < 99.95 else f"{round(scaled):,}{letter}"
    return str(value)


def dollars(value: Fraction | None) -> str:
    """Format dollars: `$3.20`, `$0.0042`, `$0`; `?` if a price is unknown."""
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
    """Round a number up to two significant figures."""
    scale: int = 10 ** max(0, len(str(value)) - 2)
    return -(-value // scale) * scale


def cents_up(value: Fraction) -> str:
    """Round dollars up to whole cents: `0.43`."""
    cents = max(1, ceil(value * 100))
    return f"{cents // 100}.{cents % 100:02}" if cents % 100 else str(cents // 100)
