"""Official scores of question answering, as primitives: SQuAD's exact match, and ANLS of document questions.

`squad_match` is the exact match of SQuAD v1.1 (Rajpurkar et al., EMNLP 2016), with the words that `f1` compares. `anls`
is the average normalised Levenshtein similarity of one answer (Biten et al., "Scene Text Visual Question Answering",
ICCV 2019), as DocVQA uses it.
"""

from __future__ import annotations

from fractions import Fraction

from skillc.metrics.primitives import Measurement, Subject, expected, normalise, primitive, text_of

_FARTHEST = Fraction(1, 2)
"""The distance, as a share of the longer text, from which an answer is wrong."""


@primitive
def squad_match(subject: Subject) -> Measurement:
    """1 if the answer has the words of a right one, in their order, after SQuAD's normalisation, else 0."""
    answer = normalise(text_of(subject.value))
    right = any(answer == normalise(text_of(gold)) for gold in subject.golds)
    return Measurement(int(right), "right" if right else expected(subject))


@primitive
def anls(subject: Subject) -> Measurement:
    """1 less the edit distance to the nearest right answer as a share of the longer text; 0 from one half on.

    Case and white space make no difference. Two empty texts are equal.
    """
    answer = folded(text_of(subject.value))
    best = max(similarity(answer, folded(text_of(gold))) for gold in subject.golds)
    return Measurement(best, "right" if best == 1 else expected(subject))


def folded(text: str) -> str:
    """Return a text in lower case with single spaces."""
    return " ".join(text.lower().split())


def similarity(ours: str, theirs: str) -> Fraction:
    """Return the similarity of two texts; 0 if at least half of the longer one differs."""
    longest = max(len(ours), len(theirs))
    if ours == theirs:
        return Fraction(1)
    # The distance is at least the difference of the lengths, so a long answer costs nothing.
    if abs(len(ours) - len(theirs)) >= longest * _FARTHEST:
        return Fraction(0)
    share = Fraction(edit_distance(ours, theirs), longest)
    return 1 - share if share < _FARTHEST else Fraction(0)


def edit_distance(ours: str, theirs: str) -> int:
    """Return how many characters have to be inserted, deleted or replaced."""
    row = list(range(len(theirs) + 1))
    for i, mine in enumerate(ours, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(theirs, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (mine != other))
    return row[-1]
