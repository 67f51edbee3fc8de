"""GAIA's quasi exact match, after the official scorer of the benchmark (Mialon et al., arXiv 2311.12983).

A right answer that is a number is compared as a number; one with commas or semicolons element by element, in order;
any other as a text without white space, punctuation and case.
"""

from __future__ import annotations

import math
import re
import string
from typing import Any

_IGNORED_IN_NUMBERS = str.maketrans("", "", "$%,")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def quasi_exact_match(example: dict[str, Any], prediction: dict[str, Any]) -> bool:
    """Return whether the answer is right. There is no feedback, so that the optimizer learns nothing of it."""
    given = prediction["answer"]
    return is_right("None" if given is None else str(given), str(example["gold"]["answer"]))


def is_right(given: str, gold: str) -> bool:
    """Compare an answer with the right one."""
    if _number(gold) is not None:
        return _same_number(given, gold)
    if "," in gold or ";" in gold:
        ours, theirs = re.split("[,;]", given), re.split("[,;]", gold)
        return len(ours) == len(theirs) and all(map(_same_element, ours, theirs))
    return _text(given).translate(_PUNCTUATION) == _text(gold).translate(_PUNCTUATION)


def _same_element(given: str, gold: str) -> bool:
    """Compare an element of a list, in which punctuation counts."""
    return _same_number(given, gold) if _number(gold) is not None else _text(given) == _text(gold)


def _same_number(given: str, gold: str) -> bool:
    found = _number(given.translate(_IGNORED_IN_NUMBERS))
    return found is not None and found == _number(gold)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _text(text: str) -> str:
    return re.sub(r"\s", "", text).lower()
