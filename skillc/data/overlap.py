"""How much of a skill is copied from examples, word by word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from pydantic import JsonValue

from skillc.document.skill import Document
from skillc.outcomes import Example
from skillc.plan.schema import FieldPlan, TaskPlan

RUN = 5
SHORTEST = 2

_BY_ITSELF = r"\u2e80-\U0010ffff"
_WORD = re.compile(rf"(?!_)(?=\w)[{_BY_ITSELF}]|[^\W_{_BY_ITSELF}]+")
_NO_TEXT = frozenset({"labels", "bool", "number", "integer", "file", "image"})

Words = tuple[str, ...]


def overlap(skill: Document, examples: Iterable[Example], task: TaskPlan) -> Fraction:
    """Return the share of a skill's trained words that are copied from a training example, in runs of five words."""
    texts = [words(text) for text in _trained(skill)]
    total = sum(len(text) for text in texts)
    places = _runs(texts)
    if not places:
        return Fraction(0)
    copied: set[tuple[int, int]] = set()
    known = frozenset(word for text in texts for word in text)
    for example in examples:
        for text in example_words(example, task):
            if len(text) < SHORTEST or known.isdisjoint(text):
                continue
            length = min(RUN, len(text))
            runs = {text[i : i + length] for i in range(len(text) - length + 1)}
            for run in runs & places.keys():
                copied.update((text_, i + j) for text_, i in places[run] for j in range(length))
                del places[run]
    return Fraction(len(copied), total)


def words(text: str) -> Words:
    """Return the case-folded words of a text."""
    return tuple(_WORD.findall(text.casefold()))


def example_words(example: Example, task: TaskPlan) -> Iterator[Words]:
    """Yield the words of each text of an example, of inputs and of right answers."""
    for fields, values in ((task.inputs, example.inputs), (task.outputs, example.gold)):
        for field in fields:
            if _is_text(field):
                yield from (words(text) for text in _texts(values.get(field.name)))


def _is_text(field: FieldPlan) -> bool:
    type_ = field.type.item if field.type.kind == "list" and field.type.item is not None else field.type
    return type_.kind not in _NO_TEXT


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)


def _trained(skill: Document) -> Iterator[str]:
    """Yield each rule and each slow section by itself, so that no run spans two of them."""
    for section in skill.sections:
        if section.mode == "slow":
            yield section.text
        elif section.mode == "trainable":
            yield from (rule.text for rule in section.rules)


def _runs(texts: Sequence[Words]) -> dict[Words, list[tuple[int, int]]]:
    """Return the positions of each run of two to five words: (text, first word)."""
    places: dict[Words, list[tuple[int, int]]] = {}
    for number, text in enumerate(texts):
        for length in range(SHORTEST, RUN + 1):
            for i in range(len(text) - length + 1):
                places.setdefault(text[i : i + length], []).append((number, i))
    return places
