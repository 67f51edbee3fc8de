"""What somebody probably meant."""

from __future__ import annotations

from collections.abc import Iterable

_LONGEST = 100


def suggest(word: str, known: Iterable[str]) -> str | None:
    """The nearest of the known words, None where none is near: at most a third of the letters may differ, or one.

    Case, and `-` for `_`, make no difference. Of words that are equally near the first in the alphabet is taken.

    >>> suggest("acuracy", ["accuracy", "cost"])
    'accuracy'
    >>> suggest("time", ["cost"]) is None
    True
    """
    if len(word) > _LONGEST:
        return None
    limit = max(1, len(word) // 3)
    plain = _plain(word)
    best: tuple[int, str] | None = None
    for each in known:
        if each == word or abs(len(each) - len(word)) > limit:
            continue
        distance = _distance(plain, _plain(each))
        # Otherwise any letter is near any other.
        if distance <= limit and distance < max(len(word), len(each)) and (best is None or (distance, each) < best):
            best = distance, each
    return best[1] if best else None


def _plain(word: str) -> str:
    return word.lower().replace("-", "_").replace(" ", "_")


def _distance(a: str, b: str) -> int:
    """The edit distance; two neighbours that changed places are one step."""
    before: list[int] = []
    last: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, last, row = last, row, [i] * (len(b) + 1)
        for j, y in enumerate(b, 1):
            row[j] = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                row[j] = min(row[j], before[j - 2] + 1)
    return row[-1]
