"""GAIA's quasi exact match: `quasi_exact_match(answer)`.

It follows the official scorer of the benchmark (Mialon et al., "GAIA: a benchmark for General AI Assistants", arXiv
2311.12983): a right answer that is a number is compared as a number, one with commas or semicolons element by element,
in order, and any other as a text without white space, punctuation and case.
"""

from __future__ import annotations

import math
import re
import string

from pydantic import JsonValue

from skillc.metrics.primitives import Measurement, Subject, expected, primitive, text_of

_IGNORED_IN_NUMBERS = str.maketrans("", "", "$%,")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_SEPARATORS = re.compile("[,;]")


@primitive
def quasi_exact_match(subject: Subject) -> Measurement:
    """1 if the answer is a right one as GAIA compares them, else 0."""
    given = _as_answer(subject.value)
    right = any(is_quasi_match(given, _as_answer(gold)) for gold in subject.golds)
    return Measurement(int(right), "right" if right else expected(subject))


def is_quasi_match(given: str, gold: str) -> bool:
    """Return whether an answer equals the right one.

    The official scorer reads every answer that is no number as infinity, so that `unknown` equals a right answer
    `Infinity`. Here only finite numbers are numbers.
    """
    if _number(gold) is not None:
        return _same_number(given, gold)
    if _SEPARATORS.search(gold):
        ours, theirs = _SEPARATORS.split(given), _SEPARATORS.split(gold)
        return len(ours) == len(theirs) and all(map(_same_element, ours, theirs))
    return _folded(given).translate(_PUNCTUATION) == _folded(gold).translate(_PUNCTUATION)


def _same_element(given: str, gold: str) -> bool:
    """Compare an element of a list, in which punctuation counts."""
    return _same_number(given, gold) if _number(gold) is not None else _folded(given) == _folded(gold)


def _same_number(given: str, gold: str) -> bool:
    """Compare numbers as floats; units other than `$` and `%` make an answer no number."""
    found = _number(given.translate(_IGNORED_IN_NUMBERS))
    return found is not None and found == _number(gold)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _folded(text: str) -> str:
    return re.sub(r"\s", "", text).lower()


def _as_answer(value: JsonValue) -> str:
    """Return an answer as the official scorer gets it: a list with commas, a missing one as the word `None`."""
    if value is None:
        return "None"
    return ",".join(map(text_of, value)) if isinstance(value, list) else text_of(value)
