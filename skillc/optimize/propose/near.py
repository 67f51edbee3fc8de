"""Find similar examples and texts by BM25 over their words."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from pydantic import JsonValue

from skillc.bm25 import DIGITS, index_of, scores_of, words_of
from skillc.json_values import as_text
from skillc.outcomes import Example


class Near:
    """An index of the inputs of one split, built at its first use."""

    def __init__(self, examples: Sequence[Example]) -> None:
        self._examples = tuple(examples)

    def to(self, example: Example, count: int, *, among: Collection[str]) -> list[Example]:
        """Return at most `count` other examples, the nearest first; ties in the order of the split.

        `among` contains the ids of the examples to search.
        """
        if count <= 0 or not among:
            return []
        scores = scores_of(self._index, _words(example.inputs), len(self._examples))
        found = [
            (-score, place)
            for place, (score, other) in enumerate(zip(scores, self._examples, strict=True))
            if other.id in among and other.id != example.id
        ]
        return [self._examples[place] for _, place in sorted(found)[:count]]

    @cached_property
    def _index(self) -> Any:
        return index_of([_words(example.inputs) for example in self._examples])


class Alike:
    """Index of texts that measures how much of each is contained in another text.

    Args:
        texts: the texts.
        beside: further texts of the same kind, used to weight words: frequent words count less.
    """

    def __init__(self, texts: Sequence[str], beside: Sequence[str] = ()) -> None:
        words = [_distinct(text) for text in texts]
        self._index = index_of([*words, *map(_distinct, beside)])
        self._whole = [float(self._index.get_scores(each)[i]) if each else 0.0 for i, each in enumerate(words)]

    def within(self, text: str) -> list[float]:
        """Return, for each of the texts, the share of its score that the other text reaches: 0 to 1."""
        words = _distinct(text)
        reached = self._index.get_scores(words) if words and self._index is not None else self._whole
        shares = zip(reached, self._whole, strict=False)
        return [round(float(score) / whole, DIGITS) if words and whole else 0.0 for score, whole in shares]


def _distinct(text: str) -> list[str]:
    """Return the distinct words of a text without English stop words."""
    from bm25s.stopwords import STOPWORDS_EN

    return [word for word in dict.fromkeys(words_of(text)) if word not in STOPWORDS_EN]


def _words(values: Mapping[str, JsonValue]) -> list[str]:
    texts = map(as_text, values.values())
    return [word for text in texts for word in words_of(text)]
