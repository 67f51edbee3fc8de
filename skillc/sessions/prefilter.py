"""Prefilter regular expressions: search only texts that contain one of the plain texts that every match needs.

A search for plain texts takes a fraction of the time of an expression with many alternatives. The plain texts are
derived from the expression by Python's own parser, as in search engines for code: Cox, *Regular Expression Matching
with a Trigram Index* (2012).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any

_parser: Any = import_module("re._parser")
_SHORTEST = 2
"""Characters of a text that is worth looking for."""


class Alternatives:
    """An expression in parts; only the parts that may match are searched.

    Args:
        parts: expressions; a text is matched by the first of them that matches.
    """

    def __init__(self, *parts: str) -> None:
        self.parts = tuple(f"(?:{part})" for part in parts)
        self._prefilters = tuple(Prefilter(re.compile(part)) for part in self.parts)
        self._compiled: dict[tuple[str, ...], re.Pattern[str]] = {}

    def search(self, low: str) -> re.Match[str] | None:
        """Return the first match in a text in lower case."""
        pattern = self._left(low)
        return pattern.search(low) if pattern is not None else None

    def finditer(self, low: str) -> Iterator[re.Match[str]]:
        """Yield the matches in a text in lower case."""
        pattern = self._left(low)
        return pattern.finditer(low) if pattern is not None else iter(())

    def _left(self, low: str) -> re.Pattern[str] | None:
        """Return the expression without the parts that match nowhere."""
        left = tuple(part for part, one in zip(self.parts, self._prefilters, strict=True) if one.may_match(low))
        if left and left not in self._compiled:
            self._compiled[left] = re.compile("|".join(left))
        return self._compiled[left] if left else None


class Prefilter:
    """Fast check that an expression matches nowhere in a text.

    Args:
        pattern: an expression; with `re.IGNORECASE`, its letters have to be of ASCII.
    """

    def __init__(self, pattern: re.Pattern[str]) -> None:
        flags = pattern.flags & ~re.UNICODE
        self.needed = _of_sequence(_parser.parse(pattern.pattern, flags))

    def may_match(self, low: str) -> bool:
        """Return whether the expression may match in a text that is in lower case."""
        return self.needed is None or any(text in low for text in self.needed)


def _of_sequence(items: Iterable[tuple[Any, Any]]) -> tuple[str, ...] | None:
    """Return texts of which each match of a sequence contains one; None if there are none."""
    choices: list[tuple[str, ...]] = []
    run = ""
    for name, value in items:
        if str(name) == "LITERAL":
            run += chr(value)
            continue
        choices.append((run,))
        run = ""
        found = _of_item(str(name), value)
        if found is not None:
            choices.append(found)
    choices.append((run,))
    best = max(choices, key=lambda texts: (min(map(len, texts)), -len(texts)))
    return tuple(dict.fromkeys(text.lower() for text in best)) if min(map(len, best)) >= _SHORTEST else None


def _of_item(name: str, value: Any) -> tuple[str, ...] | None:
    match name:
        case "SUBPATTERN":
            return _of_sequence(value[3])
        case "BRANCH":
            return _of_any(value[1])
        case "MAX_REPEAT" | "MIN_REPEAT":
            least, _, inner = value
            return _of_sequence(inner) if least else None
        case _:
            return None


def _of_any(branches: Sequence[Iterable[tuple[Any, Any]]]) -> tuple[str, ...] | None:
    found: list[str] = []
    for branch in branches:
        of_branch = _of_sequence(branch)
        if of_branch is None:
            return None
        found += of_branch
    # A text that contains another one adds nothing.
    return tuple(text for text in dict.fromkeys(found) if not any(o != text and o in text for o in found))
