"""Examples and texts that read alike, by BM25 over their words (Robertson and Zaragoza 2009; `bm25s`)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from pydantic import JsonValue

from skillc.json_values import as_text
from skillc.outcomes import Example

_WORD = re.compile(r"\w+")
# BM25 gives single precision: what differs less than this is a tie.
_DIGITS = 4


class Near:
    """Finds the examples of one split whose inputs read most like those of an example. Makes no calls.

    Args:
        examples: the split. The index is made at the first question.
    """

    def __init__(self, examples: Sequence[Example]) -> None:
        self._examples = tuple(examples)

    def to(self, example: Example, count: int, *, among: Collection[str]) -> list[Example]:
        """At most `count` examples, the nearest first; ties in the order of the split.

        Args:
            example: what they shall be near; never among them.
            count: how many.
            among: ids of the examples that may be found.
        """
        if count <= 0 or not among:
            return []
        words = _words(example.inputs)
        scores = self._index.get_scores(words) if words and self._index is not None else [0.0] * len(self._examples)
        found = [
            (-round(float(score), _DIGITS), place)
            for place, (score, other) in enumerate(zip(scores, self._examples, strict=True))
            if other.id in among and other.id != example.id
        ]
        return [self._examples[place] for _, place in sorted(found)[:count]]

    @cached_property
    def _index(self) -> Any:
        return _index_of([_words(example.inputs) for example in self._examples])


class Alike:
    """How much of each of some texts is in another text. Makes no calls.

    Args:
        texts: what is looked for.
        beside: more of the same kind. Words that many texts of the two have count little.
    """

    def __init__(self, texts: Sequence[str], beside: Sequence[str] = ()) -> None:
        said = [_said(text) for text in texts]
        self._index = _index_of([*said, *map(_said, beside)])
        self._whole = [float(self._index.get_scores(each)[i]) if each else 0.0 for i, each in enumerate(said)]

    def within(self, text: str) -> list[float]:
        """For each of the texts, the share of its score that the other text reaches: 0 to 1."""
        words = _said(text)
        reached = self._index.get_scores(words) if words and self._index is not None else self._whole
        shares = zip(reached, self._whole, strict=False)
        return [round(float(score) / whole, _DIGITS) if words and whole else 0.0 for score, whole in shares]


def _said(text: str) -> list[str]:
    """The words of a text, each once, but those that every English text has."""
    from bm25s.stopwords import STOPWORDS_EN

    return [word for word in dict.fromkeys(_WORD.findall(text.casefold())) if word not in STOPWORDS_EN]


def _index_of(texts: Sequence[Sequence[str]]) -> Any:
    """None where there is no word at all."""
    import bm25s

    if not any(texts):
        return None
    index = bm25s.BM25()
    index.index(texts, show_progress=False)
    return index


def _words(values: Mapping[str, JsonValue]) -> list[str]:
    texts = map(as_text, values.values())
    return [word for text in texts for word in _WORD.findall(text.casefold())]
