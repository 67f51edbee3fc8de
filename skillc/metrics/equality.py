"""`exact_match`, `contains` and `one_of`: answers compared as values."""

from __future__ import annotations

import unicodedata

from pydantic import JsonValue

from skillc.metrics.registry import Measure, Subject, expected, primitive, shown, text_of


def same(value: JsonValue, gold: JsonValue) -> bool:
    """Whether two values are equal: texts in Unicode's composed form without outer white space, numbers by value."""
    if isinstance(value, str) and isinstance(gold, str):
        return tidy(value) == tidy(gold)
    if isinstance(value, bool) or isinstance(gold, bool):
        return value is gold
    if isinstance(value, list) and isinstance(gold, list):
        return len(value) == len(gold) and all(same(a, b) for a, b in zip(value, gold, strict=True))
    if isinstance(value, dict) and isinstance(gold, dict):
        return value.keys() == gold.keys() and all(same(value[name], gold[name]) for name in value)
    return value == gold


def tidy(text: str) -> str:
    """The text as it is compared."""
    return unicodedata.normalize("NFC", text).strip()


@primitive("exact_match")
def exact_match(subject: Subject) -> Measure:
    """1 where the answer equals a right one, else 0."""
    right = any(same(subject.value, gold) for gold in subject.golds)
    return Measure(int(right), "right" if right else expected(subject))


@primitive("contains")
def contains(subject: Subject) -> Measure:
    """1 where a right answer stands within the answer, ignoring case, else 0."""
    text = _folded(subject.value)
    golds = [_folded(gold) for gold in subject.golds]
    right = any(gold and gold in text for gold in golds)
    return Measure(int(right), "right" if right else expected(subject))


@primitive("one_of")
def one_of(subject: Subject) -> Measure:
    """1 where the answer is one of the options, by default the declared labels, else 0."""
    given = subject.options.get("options")
    options = [str(option) for option in given] if isinstance(given, list | tuple) else list(subject.type.labels)
    right = any(same(text_of(subject.value), option) for option in options)
    said = f"{shown(subject.value)} is none of {', '.join(shown(option) for option in options)}"
    return Measure(int(right), "one of the options" if right else said)


def _folded(value: JsonValue) -> str:
    # Folding case can take a text out of the composed form, and composing can change what folds.
    return unicodedata.normalize("NFC", tidy(text_of(value)).casefold())
