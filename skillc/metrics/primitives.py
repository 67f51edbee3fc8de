"""The functions that a metric may call, by their names in programs.

To add one, write its function here, decorated with `@primitive`, and its entry in `skillc/gates/functions.py`, which
declares its parameters. A primitive compares an output with its right answers; `SEARCHES` and `COUNTS` read a text
alone.

`f1`, `precision_of` and `recall_of` measure the overlap of words as SQuAD does (official evaluation script of SQuAD
v1.1, Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine Comprehension of Text", EMNLP 2016): lower case, without
punctuation and articles, white space collapsed; F1 of the multisets of words; the best over all right answers.
"""

from __future__ import annotations

import json
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from pydantic import JsonValue

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.json_values import as_text
from skillc.plan.schema import TypePlan
from skillc.tokens import count_tokens


@dataclass(frozen=True, slots=True)
class Measurement:
    """A score in the primitive's unit, and feedback for the optimizer."""

    score: Fraction | int | float
    feedback: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """The input of a primitive: one output of one rollout.

    Attributes:
        name: the output's.
        type: its declared type.
        value: the model's answer.
        gold: the right answer, or a list of them.
        options: the named arguments in the program; numbers are Fractions.
        reveal: whether feedback may contain the right answer.
    """

    name: str
    type: TypePlan
    value: JsonValue
    gold: JsonValue
    options: Mapping[str, object]
    reveal: bool = True

    @property
    def golds(self) -> list[JsonValue]:
        """All right answers: a list means several, unless the output is a list.

        Raises:
            SkillcError: the example has no right answer.
        """
        several = isinstance(self.gold, list) and self.type.kind != "list"
        golds = self.gold if isinstance(self.gold, list) and several else [self.gold]
        if not golds or (self.gold is None and not self.type.optional):
            raise SkillcError(f"no right answer for `{self.name}`")
        return golds


Primitive = Callable[[Subject], Measurement]

PRIMITIVES: dict[str, Primitive] = {}


def primitive(function: Primitive) -> Primitive:
    """Register a function as the primitive of its name, with scores from 0 to 1."""
    PRIMITIVES[function.__name__] = function
    return function


def text_of(value: JsonValue) -> str:
    """Return a value as a text to compare or count, empty for None."""
    if value is None:
        return ""
    if isinstance(value, list):
        return "\n".join(text_of(item) for item in value)
    return as_text(value)


def shown(value: JsonValue) -> str:
    """Quote a value for feedback."""
    if value is None:
        return "nothing"
    return f"`{value}`" if isinstance(value, str) else f"`{json.dumps(value, ensure_ascii=False)}`"


def expected(subject: Subject) -> str:
    """Describe the given answer and, if it may be revealed, the right one."""
    if not subject.reveal:
        return f"{shown(subject.value)} is wrong"
    return f"expected {' or '.join(shown(gold) for gold in subject.golds)}, got {shown(subject.value)}"


def same(value: JsonValue, gold: JsonValue) -> bool:
    """Compare two values: texts in NFC and stripped, numbers by value."""
    if isinstance(value, str) and isinstance(gold, str):
        return canonical_text(value) == canonical_text(gold)
    if isinstance(value, bool) or isinstance(gold, bool):
        return value is gold
    if isinstance(value, list) and isinstance(gold, list):
        return len(value) == len(gold) and all(same(a, b) for a, b in zip(value, gold, strict=True))
    if isinstance(value, dict) and isinstance(gold, dict):
        return value.keys() == gold.keys() and all(same(value[name], gold[name]) for name in value)
    return value == gold


def canonical_text(text: str) -> str:
    """Return a text in NFC without outer white space."""
    return unicodedata.normalize("NFC", text).strip()


@primitive
def exact_match(subject: Subject) -> Measurement:
    """1 if the answer equals a right one, else 0."""
    right = any(same(subject.value, gold) for gold in subject.golds)
    return Measurement(int(right), "right" if right else expected(subject))


@primitive
def contains(subject: Subject) -> Measurement:
    """1 if the answer contains a right one, ignoring case, else 0."""
    text = _folded_value(subject.value)
    golds = [_folded_value(gold) for gold in subject.golds]
    right = any(gold and gold in text for gold in golds)
    return Measurement(int(right), "right" if right else expected(subject))


@primitive
def one_of(subject: Subject) -> Measurement:
    """1 if the answer is one of the options, by default the declared labels, else 0."""
    given = subject.options.get("options")
    options = [str(option) for option in given] if isinstance(given, list | tuple) else list(subject.type.labels)
    right = any(same(text_of(subject.value), option) for option in options)
    said = f"{shown(subject.value)} is none of {', '.join(shown(option) for option in options)}"
    return Measurement(int(right), "one of the options" if right else said)


def _folded_value(value: JsonValue) -> str:
    # Case folding can decompose a text, and composing can change its case folding.
    return unicodedata.normalize("NFC", canonical_text(text_of(value)).casefold())


# Commas only between thousands (or lakhs): `1,5` is not read as 15.
_NUMBER = re.compile(
    r"(?P<sign>[+-]?)\s*[$€£]?\s*"
    r"(?P<digits>(?:\d{1,3}(?:,\d{2,3})*,\d{3}|\d+)(?:\.\d*)?|\.\d+)(?P<power>[eE][+-]?\d{1,3})?"
    r"\s*[%$€£]?",
    re.ASCII,
)
_LONGEST = 400


def read_number(value: JsonValue) -> Fraction | None:
    """Return an answer as a number, None if it is not one.

    Commas between thousands, one currency sign (`$`, `€`, `£`) and a trailing `%` are ignored: `$1,200` is 1200, and
    `5%` is 5.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    text = str(value) if isinstance(value, int | float) else value.strip().replace("\N{MINUS SIGN}", "-")
    found = _NUMBER.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        return None
    return Fraction(f"{found['sign']}{found['digits'].replace(',', '')}{found['power'] or ''}")


def _gold_numbers(subject: Subject) -> list[Fraction]:
    golds = [gold for gold in map(read_number, subject.golds) if gold is not None]
    if not golds:
        raise SkillcError(f"the right answer for `{subject.name}`, {shown(subject.gold)}, is not a number")
    return golds


@primitive
def numeric(subject: Subject) -> Measurement:
    """1 if the answer differs from a right number by at most `within` or its share `tolerance`, else 0."""
    golds, answer = _gold_numbers(subject), read_number(subject.value)
    if answer is None:
        return Measurement(0, f"{shown(subject.value)} is no number")
    share, within = (_option(subject.options.get(name)) for name in ("tolerance", "within"))
    right = any(abs(answer - gold) <= max(within, share * abs(gold)) for gold in golds)
    return Measurement(int(right), "right" if right else expected(subject))


def _option(option: object) -> Fraction:
    return option if isinstance(option, Fraction) else Fraction(0)


_WORST = Fraction(1)


@primitive
def relative_error(subject: Subject) -> Measurement:
    """The distance of the answer from the nearest right number, as a share of that number or of `scale`, at most 1.

    The error is 1 for an answer that is not a number, and for any wrong answer if the right one is 0 without a `scale`.
    """
    golds, answer = _gold_numbers(subject), read_number(subject.value)
    if answer is None:
        return Measurement(_WORST, f"{shown(subject.value)} is no number")
    error = min(_share(abs(answer - gold), _positive(subject.options.get("scale")) or abs(gold)) for gold in golds)
    return Measurement(error, "right" if error == 0 else expected(subject))


@primitive
def ordinal_error(subject: Subject) -> Measurement:
    """The distance in labels of the answer from the nearest right one, as a share of all or of `most`, at most 1.

    The error is 1 for an answer that is not a label.
    """
    places = {label: index for index, label in enumerate(subject.type.labels)}
    golds = [place for gold in subject.golds if (place := _place(places, text_of(gold))) is not None]
    if not golds:
        raise SkillcError(f"the right answer for `{subject.name}`, {shown(subject.gold)}, is not one of its labels")
    answer = _place(places, text_of(subject.value))
    if answer is None:
        return Measurement(_WORST, f"{shown(subject.value)} is none of the labels")
    most = _positive(subject.options.get("most")) or Fraction(len(places) - 1)
    error = min(_share(Fraction(abs(answer - gold)), most) for gold in golds)
    return Measurement(error, "right" if error == 0 else expected(subject))


def _share(distance: Fraction, of: Fraction) -> Fraction:
    if distance == 0:
        return Fraction(0)
    return min(distance / of, _WORST) if of else _WORST


def _place(places: dict[str, int], text: str) -> int | None:
    return next((index for label, index in places.items() if same(text, label)), None)


def _positive(option: object) -> Fraction | None:
    return option if isinstance(option, Fraction) and option > 0 else None


@primitive
def json_fields(subject: Subject) -> Measurement:
    """The share of the right object's fields, or of the named ones, that the answer has with the same value.

    The best over all right answers. A field that neither object has is right.
    """
    golds = [gold for gold in map(read_object, subject.golds) if gold is not None]
    if not golds:
        raise SkillcError(f"the right answer for `{subject.name}` is not a JSON object")
    answer = read_object(subject.value)
    if answer is None:
        return Measurement(0, f"{shown(subject.value)} is no JSON object")
    return max((_against(answer, gold, subject) for gold in golds), key=lambda measure: measure.score)


@primitive
def valid_json(subject: Subject) -> Measurement:
    """1 if the answer is a JSON object or list and nothing else, else 0."""
    value = subject.value
    if isinstance(value, str):
        try:
            value = read_json(value)
        except ValueError as problem:
            return Measurement(0, f"this is no JSON: {str(problem)[:100]}")
    right = isinstance(value, dict | list)
    return Measurement(int(right), "right" if right else f"{shown(subject.value)} is no JSON object or list")


def read_json(text: str) -> JsonValue:
    """Parse a JSON text.

    Raises:
        ValueError: it is none.
    """
    try:
        # JSON has numbers of any length, but no `NaN`.
        value: JsonValue = json.loads(text, parse_int=float, parse_constant=_no_constant)
    except RecursionError as problem:
        raise ValueError(str(problem)) from None
    return value


def _no_constant(name: str) -> JsonValue:
    raise ValueError(f"`{name}` is no value")


def _against(answer: dict[str, JsonValue], gold: dict[str, JsonValue], subject: Subject) -> Measurement:
    given = subject.options.get("fields")
    names = [str(name) for name in given] if isinstance(given, list | tuple) else list(gold)
    wrong = [name for name in names if (name in answer) != (name in gold) or not same(answer.get(name), gold.get(name))]
    score = Fraction(len(names) - len(wrong), len(names)) if names else Fraction(1)
    return Measurement(score, "; ".join(_describe_field(name, answer, gold, subject) for name in wrong) or "right")


def _describe_field(name: str, answer: dict[str, JsonValue], gold: dict[str, JsonValue], subject: Subject) -> str:
    if not subject.reveal:
        return f"{name}: {shown(answer.get(name))} is wrong"
    return f"{name}: expected {shown(gold.get(name))}, got {shown(answer.get(name))}"


def read_object(value: JsonValue) -> dict[str, JsonValue] | None:
    """Return a JSON object, parsed if it is a text, else None."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(text: str) -> str:
    """Return the text as SQuAD compares it."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def f1_score(ours: Sequence[str], theirs: Sequence[str]) -> Fraction:
    """Return F1 of two multisets; 0 if they share nothing, also if both are empty, as in the official script."""
    shared = sum((Counter(ours) & Counter(theirs)).values())
    return Fraction(2 * shared, len(ours) + len(theirs)) if shared else Fraction(0)


@primitive
def f1(subject: Subject) -> Measurement:
    """The best F1 over the right answers: of the words of a text, or of the items of a list, each normalised.

    Two empty lists score 1; SQuAD has no lists.
    """
    is_list = subject.type.kind == "list"
    ours, *golds = (_bag(subject, value) for value in (subject.value, *subject.golds))
    best = max(Fraction(1) if is_list and not (ours or gold) else f1_score(ours, gold) for gold in golds)
    return Measurement(best, "right" if best == 1 else expected(subject))


@primitive
def precision_of(subject: Subject) -> Measurement:
    """The share of the answer's words or items that a right answer has; 1 if both are empty, 0 if one is."""
    return _of_bags(subject, lambda shared, ours, theirs: Fraction(shared, ours))


@primitive
def recall_of(subject: Subject) -> Measurement:
    """The share of a right answer's words or items that the answer has; 1 if both are empty, 0 if one is."""
    return _of_bags(subject, lambda shared, ours, theirs: Fraction(shared, theirs))


def _of_bags(subject: Subject, share: Callable[[int, int, int], Fraction]) -> Measurement:
    ours, *golds = (_bag(subject, value) for value in (subject.value, *subject.golds))
    best = Fraction(0)
    for gold in golds:
        shared = sum((Counter(ours) & Counter(gold)).values())
        empty = Fraction(not ours and not gold)
        best = max(best, share(shared, len(ours), len(gold)) if ours and gold else empty)
    return Measurement(best, "right" if best == 1 else expected(subject))


def _bag(subject: Subject, value: JsonValue) -> list[str]:
    """Return the normalised words of a text, or items of a list."""
    if subject.type.kind != "list":
        return normalise(text_of(value)).split()
    items = value if isinstance(value, list) else [] if value is None else [value]
    return [normalise(text_of(item)) for item in items]


_MOST_QUOTED = 8


def phrases_of(value: JsonValue) -> list[str]:
    """Return the phrases to search for: the texts of a list or the one text, without empty ones."""
    items = value if isinstance(value, list) else [value]
    return [text for text in map(text_of, items) if text.strip()]


def mentions(value: JsonValue, phrases: list[str], reveal: bool = True) -> Measurement:
    """1 if the text contains at least one of the phrases, ignoring case and white space, else 0."""
    text = _folded_text(text_of(value))
    found = [phrase for phrase in phrases if _folded_text(phrase) in text]
    if not found:
        return Measurement(0, f"mentions none of {_quote_phrases(phrases)}" if reveal else "mentions none of them")
    return Measurement(1, f"mentions {_quote_phrases(found)}" if reveal else f"mentions {len(found)} of them")


def covers(value: JsonValue, phrases: list[str], reveal: bool = True) -> Measurement:
    """The share of the phrases that the text contains, ignoring case and white space; 1 without phrases."""
    text = _folded_text(text_of(value))
    missing = [phrase for phrase in phrases if _folded_text(phrase) not in text]
    score = Fraction(len(phrases) - len(missing), len(phrases)) if phrases else Fraction(1)
    if not missing:
        return Measurement(score, "right")
    return Measurement(
        score, f"lacks {_quote_phrases(missing)}" if reveal else f"lacks {len(missing)} of {len(phrases)}"
    )


def words(text: str) -> int:
    """Count runs of characters between white space."""
    return len(text.split())


def lines(text: str) -> int:
    """Count lines that are not blank; a list has one for each item."""
    return sum(bool(line.strip()) for line in text.splitlines())


def _folded_text(text: str) -> str:
    return canonical_text(" ".join(canonical_text(text).casefold().split()))


def _quote_phrases(phrases: list[str]) -> str:
    more = ", ..." if len(phrases) > _MOST_QUOTED else ""
    return ", ".join(shown(phrase) for phrase in phrases[:_MOST_QUOTED]) + more


COUNTS: Mapping[str, Callable[[str], int]] = {"tokens": count_tokens, "words": words, "lines": lines}
SEARCHES: Mapping[str, Callable[[JsonValue, list[str], bool], Measurement]] = {"mentions": mentions, "covers": covers}
