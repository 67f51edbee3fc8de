"""Examples and texts that read alike, by BM25 over their words (Robertson and Zaragoza 2009; `bm25s`)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from pydantic import JsonValue

from skillc.data.example import Example

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


def alike(texts: Sequence[str]) -> list[list[float]]:
    """How alike texts are, pair by pair, from 0 to 1; words that many of them have count little.

    It is the score of one text against the other as a share of its score against itself, the larger of both ways, so
    that a short text within a long one is alike.
    """
    words = [_WORD.findall(text.casefold()) for text in texts]
    index, every = _index_of(words), range(len(texts))
    rows = [index.get_scores(each) if each else [0.0] * len(texts) for each in words]
    shares = [[float(rows[i][j]) / (float(rows[i][i]) or 1.0) for j in every] for i in every]
    return [[round(max(shares[i][j], shares[j][i]), _DIGITS) for j in every] for i in every]


def _index_of(texts: Sequence[Sequence[str]]) -> Any:
    """None where there is no word at all."""
    import bm25s

    if not any(texts):
        return None
    index = bm25s.BM25()
    index.index(texts, show_progress=False)
    return index


def _words(values: Mapping[str, JsonValue]) -> list[str]:
    texts = (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values.values())
    return [word for text in texts for word in _WORD.findall(text.casefold())]
