"""`numeric`: answers compared as numbers."""

from __future__ import annotations

import re
from fractions import Fraction

from pydantic import JsonValue

from skillc.errors import SkillcError
from skillc.metrics.registry import Measure, Subject, expected, primitive, shown

# Commas only where they part thousands (or lakhs): `1,5` is no number rather than 15.
_NUMBER = re.compile(
    r"(?P<sign>[+-]?)\s*[$€£]?\s*"
    r"(?P<digits>(?:\d{1,3}(?:,\d{2,3})*,\d{3}|\d+)(?:\.\d*)?|\.\d+)(?P<power>[eE][+-]?\d{1,3})?"
    r"\s*[%$€£]?",
    re.ASCII,
)
_LONGEST = 400


def read_number(value: JsonValue) -> Fraction | None:
    """The number in an answer, None where it is none.

    Commas between thousands, one currency sign (`$`, `€`, `£`) and a trailing `%` are allowed and do not count:
    `$1,200` is 1200, and `5%` is 5.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    text = str(value) if isinstance(value, int | float) else value.strip().replace("\N{MINUS SIGN}", "-")
    found = _NUMBER.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        return None
    return Fraction(f"{found['sign']}{found['digits'].replace(',', '')}{found['power'] or ''}")


@primitive("numeric")
def numeric(subject: Subject) -> Measure:
    """1 where the answer is a right number within `within`, or within the share `tolerance` of it, else 0."""
    golds = [gold for gold in map(read_number, subject.golds) if gold is not None]
    if not golds:
        raise SkillcError(f"the right answer for `{subject.name}`, {shown(subject.gold)}, is no number")
    answer = read_number(subject.value)
    if answer is None:
        return Measure(0, f"{shown(subject.value)} is no number")
    share, within = (_exact(subject.options.get(name)) for name in ("tolerance", "within"))
    right = any(abs(answer - gold) <= max(within, share * abs(gold)) for gold in golds)
    return Measure(int(right), "right" if right else expected(subject))


def _exact(option: object) -> Fraction:
    return option if isinstance(option, Fraction) else Fraction(0)
