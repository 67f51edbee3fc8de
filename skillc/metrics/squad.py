"""`f1`, `precision_of`, `recall_of`: overlap of words as the SQuAD benchmark measures it.

Source: the official evaluation script of SQuAD v1.1 (Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine
Comprehension of Text", EMNLP 2016): lower case, punctuation out, the words a, an, the out, white space collapsed; F1 of
the multisets of words; the best over all right answers.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction

from pydantic import JsonValue

from skillc.metrics.registry import Measure, Subject, expected, primitive, text_of

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(text: str) -> str:
    """The text as SQuAD compares it."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def f1_score(ours: Sequence[str], theirs: Sequence[str]) -> Fraction:
    """F1 of two multisets; 0 where they share nothing, as in the official script, also where both are empty."""
    shared = sum((Counter(ours) & Counter(theirs)).values())
    return Fraction(2 * shared, len(ours) + len(theirs)) if shared else Fraction(0)


@primitive("f1")
def f1(subject: Subject) -> Measure:
    """The best F1 over the right answers: of the words of a text, or of the items of a list, each normalised.

    Two empty lists agree in full; SQuAD has no lists.
    """
    if subject.type.kind == "list":
        ours, *golds = (_items(value) for value in (subject.value, *subject.golds))
        best = max(f1_score(ours, gold) if ours or gold else Fraction(1) for gold in golds)
    else:
        ours = normalise(text_of(subject.value)).split()
        best = max(f1_score(ours, normalise(text_of(gold)).split()) for gold in subject.golds)
    return Measure(best, "right" if best == 1 else expected(subject))


@primitive("precision_of")
def precision_of(subject: Subject) -> Measure:
    """The share of the answer's words or items that a right answer has; 1 where both are empty, 0 where one is."""
    return _of_bags(subject, lambda shared, ours, theirs: Fraction(shared, ours))


@primitive("recall_of")
def recall_of(subject: Subject) -> Measure:
    """The share of a right answer's words or items that the answer has; 1 where both are empty, 0 where one is."""
    return _of_bags(subject, lambda shared, ours, theirs: Fraction(shared, theirs))


def _of_bags(subject: Subject, share: Callable[[int, int, int], Fraction]) -> Measure:
    ours, *golds = (_bag(subject, value) for value in (subject.value, *subject.golds))
    best = Fraction(0)
    for gold in golds:
        shared = sum((Counter(ours) & Counter(gold)).values())
        empty = Fraction(not ours and not gold)
        best = max(best, share(shared, len(ours), len(gold)) if ours and gold else empty)
    return Measure(best, "right" if best == 1 else expected(subject))


def _bag(subject: Subject, value: JsonValue) -> list[str]:
    return _items(value) if subject.type.kind == "list" else normalise(text_of(value)).split()


def _items(value: JsonValue) -> list[str]:
    items = value if isinstance(value, list) else [] if value is None else [value]
    return [normalise(text_of(item)) for item in items]
