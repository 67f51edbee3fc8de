"""The scores of OfficeQA: the official one (Databricks, `reward.py` of 2026), and SkillOpt's.

The official score is 1 or 0. An answer has to be direct, in one line: as many numbers as the right one, or the same
text. Then each number has to be within a relative tolerance, 0 by default, with the right words around it. Units do not
multiply: `543 million` equals `543`, not `543000000`, and not `543 thousand`.
"""

from __future__ import annotations

import operator
import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from skillc.metrics.primitives import f1_score

_SIGNS = "$£€¥₹¢₩₽"
_AMOUNT = r"\d{1,3}(?:,\d{3})*(?:\.\d+)?|\d+(?:\.\d+)?"
_ACCOUNTING = re.compile(rf"\(\s*([{_SIGNS}])?\s*({_AMOUNT})\s*\)")
_THOUSANDS = re.compile(r"(?<![\d.])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)")
_NUMBER = re.compile(r"-?\d+\.?\d*%?")
_ITEM = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?%?")
_UNITS = {
    "trillion": re.compile(r"\btrillions?\b"),
    "billion": re.compile(r"\b(?:billions?|b)\b"),
    "million": re.compile(r"\b(?:millions?|m)\b"),
    "thousand": re.compile(r"\b(?:thousands?|k)\b"),
}
_UNIT_WORDS = re.compile(r"\b(?:(?:trillion|billion|million|thousand|hundred)s?|percent|percentage)\b")
_TAGGED = re.compile(r"<FINAL_ANSWER>\s*(.*?)\s*</FINAL_ANSWER>", re.DOTALL | re.IGNORECASE)
_MARKUP = re.compile(r"<[^>]*>")
_NEAR = 20
_LONGEST = 250


@dataclass(frozen=True, slots=True)
class Amount:
    """A number in a text, and the unit word near it; empty without one."""

    value: float
    unit: str = ""

    @property
    def is_year(self) -> bool:
        """Whether it is likely a year."""
        return 1900 <= self.value <= 2100 and self.value == int(self.value)

    def equals(self, other: Amount, tolerance: float) -> bool:
        """Compare with the right amount `other`: different units differ, and one without a unit fits any."""
        if self.unit and other.unit and self.unit != other.unit:
            return False
        if other.value == 0:
            return self.value == 0
        return abs(other.value - self.value) / abs(other.value) <= tolerance


def official(example: dict[str, Any], prediction: dict[str, Any]) -> bool:
    """Return whether an answer is right by the official score."""
    return is_right(str(prediction["answer"] or ""), str(example["gold"]["answer"]))


def exact(example: dict[str, Any], prediction: dict[str, Any]) -> bool:
    """SkillOpt's hard score: equality after its normalisation."""
    return normalised(str(prediction["answer"] or "")) == normalised(str(example["gold"]["answer"]))


def overlap(example: dict[str, Any], prediction: dict[str, Any]) -> float:
    """SkillOpt's soft score: F1 of the words after its normalisation; 1 where both have none."""
    ours = normalised(str(prediction["answer"] or "")).split()
    theirs = normalised(str(example["gold"]["answer"])).split()
    if not ours or not theirs:
        return float(ours == theirs)
    return float(f1_score(ours, theirs))


def normalised(text: str) -> str:
    """Return a text as SkillOpt compares it: no commas, no punctuation but `.`, `-` and `%`, no words of units."""
    text = text.lower().strip().replace(",", "")
    text = "".join(each for each in text if each not in string.punctuation or each in ".-%")
    text = re.sub(r"\b(?:million|millions|billion|billions|dollars|dollar|nominal)\b", " ", text)
    return " ".join(text.split())


# ---- the official score ---------------------------------------------------------------------------


def is_right(given: str, gold: str, tolerance: float = 0.0) -> bool:
    """Compare an answer, or what it has in its last `<FINAL_ANSWER>`, with the right one.

    Raises:
        ValueError: the right answer is empty.
    """
    if not gold.strip():
        raise ValueError("the right answer is empty")
    tagged = _TAGGED.findall(given)
    answer = (tagged[-1] if tagged else given).strip()
    return bool(answer) and _is_direct(answer, gold) and _matches(answer, gold, tolerance)


def _is_direct(answer: str, gold: str) -> bool:
    """Return whether an answer is one line of the same form as the right one."""
    if len([line for line in answer.splitlines() if line.strip()]) > 1 or len(answer) > _LONGEST:
        return False
    wanted, found = amounts(gold), amounts(answer)
    if not wanted:
        return not found and _plain(answer) == _plain(gold)
    if len(_without_years(found, wanted, gold)) != len(wanted):
        listed = _listed(gold, wanted)
        if not listed or not _reads_as(answer, [lambda value: True] * len(wanted)):
            return False
    return not _MARKUP.search(answer)


def _matches(answer: str, gold: str, tolerance: float) -> bool:
    wanted, found = amounts(gold), amounts(answer)
    if "unable to determine" in answer.lower():
        return False
    if not wanted or not found:
        return _plain(gold) in _plain(answer)
    if _listed(gold, wanted):
        found = _without_years(found, wanted, gold)
        in_order = len(found) == len(wanted) and all(map(partial(Amount.equals, tolerance=tolerance), found, wanted))
        tests = [lambda value, other=other: Amount(value).equals(other, tolerance) for other in wanted]
        return in_order or _reads_as(answer, tests)
    if len(wanted) > 1:
        years = any(each.is_year for each in wanted)
        found = [each for each in found if years or not each.is_year]
    else:
        found = _without_years(found, wanted, gold)
    # The words are the same for each number, so they are compared once.
    return all(any(each.equals(other, tolerance) for each in found) for other in wanted) and _same_words(answer, gold)


def amounts(text: str) -> list[Amount]:
    """Return the numbers of a text: commas between thousands and signs of currency are ignored, `(5)` is -5."""
    text = _spaced(text)
    text = _THOUSANDS.sub(lambda found: found[0].replace(",", ""), _without_signs(text))
    return [
        Amount(float(found[0].rstrip("%")), _unit(text[max(0, found.start() - _NEAR) : found.end() + _NEAR].lower()))
        for found in _NUMBER.finditer(text)
    ]


def _unit(context: str) -> str:
    return next((name for name, pattern in _UNITS.items() if pattern.search(context)), "")


def _without_signs(text: str) -> str:
    """Write amounts in brackets with a minus, unless they are likely years, and remove signs of currency."""

    def negative(found: re.Match[str]) -> str:
        if found[1] is None and Amount(float(found[2].replace(",", ""))).is_year:
            return found[0]
        return f"-{found[2]}"

    return re.sub(rf"[{_SIGNS}]", "", _ACCOUNTING.sub(negative, text))


def _spaced(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace("\N{MINUS SIGN}", "-")).strip()


def _without_years(found: Sequence[Amount], wanted: Sequence[Amount], gold: str) -> list[Amount]:
    """Leave out numbers that are likely years, unless the right answer has one, or one number among words."""
    keep = any(each.is_year for each in wanted) or (len(wanted) == 1 and len(_words(gold)) > 1)
    return [each for each in found if keep or not each.is_year]


def _words(text: str) -> str:
    """Return what is left of a text without numbers, words of units and punctuation."""
    text = re.sub(r"-?\d+\.?\d*%?", "", _spaced(text).lower()).replace(",", "")
    return " ".join(re.sub(r"[^\w\s]", " ", _UNIT_WORDS.sub("", text)).split())


def _same_words(answer: str, gold: str) -> bool:
    ours, theirs = _words(answer), _words(gold)
    if len(theirs) < 2:
        return True
    return len(ours) >= 2 and (theirs in ours or ours in theirs)


def _plain(text: str) -> str:
    """Return a text in lower case, without outer quotes and without what is in brackets."""
    text = text.strip().lower().strip('"').strip("'")
    return " ".join(re.sub(r"\([^)]*\)", "", text).split())


# ---- lists in brackets ----------------------------------------------------------------------------


def _listed(gold: str, wanted: Sequence[Amount]) -> bool:
    """Return whether the right answer is a list of numbers in brackets, whose order counts."""
    body = _bracketed(gold)
    values = [each.value for each in wanted]
    return body is not None and _reads_as(body, [partial(operator.eq, each) for each in values])


def _bracketed(text: str) -> str | None:
    """Return what is in the only brackets of a text, if no number is outside of them."""
    text = _spaced(text)
    found = re.findall(r"\[([^\[\]]+)\]", text)
    outside = re.sub(r"\[[^\[\]]+\]", "", text)
    return found[0] if len(found) == 1 and not re.search(r"\d", outside) else None


def _reads_as(text: str, tests: Sequence[Callable[[float], bool]]) -> bool:
    """Return whether a text can be read as a list of numbers that pass these tests, one for each.

    `8,152,260` can be 8 and 152,260, or 8,152 and 260.
    """
    if len(tests) < 2:
        return False
    parts = (_bracketed(text) or _spaced(text)).split(",")
    # Where the first so many numbers can end. A list of all readings would grow without bound.
    ends = {0}
    for test in tests:
        after = set()
        for start in ends:
            for end in range(start + 1, len(parts) + 1):
                value = _item(",".join(parts[start:end]))
                if value is not None and test(value):
                    after.add(end)
        ends = after
    return len(parts) in ends


def _item(text: str) -> float | None:
    text = text.strip()
    if re.search(r"\s,|,\s", text):
        return None
    text = _without_signs(_spaced(text))
    return float(text.rstrip("%").replace(",", "")) if _ITEM.fullmatch(text) else None
