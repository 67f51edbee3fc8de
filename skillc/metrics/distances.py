"""`relative_error` and `ordinal_error`: how far an answer lies from the right one, from 0 to 1."""

from __future__ import annotations

from fractions import Fraction

from skillc.errors import SkillcError
from skillc.metrics.equality import same
from skillc.metrics.numbers import read_number
from skillc.metrics.registry import Measure, Subject, expected, primitive, shown, text_of

_WORST = Fraction(1)


@primitive("relative_error")
def relative_error(subject: Subject) -> Measure:
    """The distance of the answer from the nearest right number, as a share of that number or of `scale`, at most 1.

    An answer that is no number is 1 off, and so is any other answer where the right one is 0 and no `scale` is given.
    """
    golds = [gold for gold in map(read_number, subject.golds) if gold is not None]
    if not golds:
        raise SkillcError(f"the right answer for `{subject.name}`, {shown(subject.gold)}, is no number")
    answer = read_number(subject.value)
    if answer is None:
        return Measure(_WORST, f"{shown(subject.value)} is no number")
    error = min(_share(abs(answer - gold), _positive(subject.options.get("scale")) or abs(gold)) for gold in golds)
    return Measure(error, "right" if error == 0 else expected(subject))


@primitive("ordinal_error")
def ordinal_error(subject: Subject) -> Measure:
    """How many labels lie between the answer and the nearest right one, as a share of all or of `most`, at most 1.

    An answer that is none of the labels is 1 off.
    """
    places = {label: index for index, label in enumerate(subject.type.labels)}
    golds = [place for gold in subject.golds if (place := _place(places, text_of(gold))) is not None]
    if not golds:
        raise SkillcError(f"the right answer for `{subject.name}`, {shown(subject.gold)}, is none of its labels")
    answer = _place(places, text_of(subject.value))
    if answer is None:
        return Measure(_WORST, f"{shown(subject.value)} is none of the labels")
    most = _positive(subject.options.get("most")) or Fraction(len(places) - 1)
    error = min(_share(Fraction(abs(answer - gold)), most) for gold in golds)
    return Measure(error, "right" if error == 0 else expected(subject))


def _share(distance: Fraction, of: Fraction) -> Fraction:
    if distance == 0:
        return Fraction(0)
    return min(distance / of, _WORST) if of else _WORST


def _place(places: dict[str, int], text: str) -> int | None:
    return next((index for label, index in places.items() if same(text, label)), None)


def _positive(option: object) -> Fraction | None:
    return option if isinstance(option, Fraction) and option > 0 else None
