"""Rank texts by BM25 over their words (Robertson and Zaragoza 2009; `bm25s`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

_WORD = re.compile(r"\w+")
# Scores have single precision: smaller differences are ties.
DIGITS = 4


def words_of(text: str) -> list[str]:
    """Return the words of a text, ignoring case."""
    return _WORD.findall(text.casefold())


def index_of(texts: Sequence[Sequence[str]]) -> Any:
    """Return an index of texts given by their words; None if none has a word."""
    import bm25s

    if not any(texts):
        return None
    index = bm25s.BM25()
    index.index(texts, show_progress=False)
    return index


def scores_of(index: Any, words: Sequence[str], texts: int) -> list[float]:
    """Return the rounded score of each text of an index for some words, 0 without words."""
    if index is None or not words:
        return [0.0] * texts
    return [round(float(score), DIGITS) for score in index.get_scores(words)]
