"""What the columns of a data file look like, from one pass over it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from pydantic import JsonValue

from skillc.data.problems import Problems
from skillc.data.read import is_csv, read_rows

ROWS_READ = 100_000
_DISTINCT_KEPT = 20_000
_BOOLS = frozenset({"true", "false"})
_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,17})")
_DECIMAL = re.compile(r"-?(?:0|[1-9]\d{0,17})\.\d{1,17}")


@dataclass(slots=True)
class ColumnProfile:
    """Counts over one column; a value counts as empty when it is null or "".

    Attributes:
        values: how often each value stands there, the first 20,000 different ones.
        kinds: how often each kind of value does: text, number, integer, bool, list, json.
    """

    name: str
    csv: bool
    rows: int = 0
    empty: int = 0
    characters: int = 0
    longest: int = 0
    values: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, int] = field(default_factory=dict)
    text_items: bool = True
    lines: bool = False

    @property
    def distinct(self) -> int:
        """How many different values there are (20,000 at most)."""
        return len(self.values)

    @property
    def mean_length(self) -> float:
        """Characters of a value that is not empty."""
        return self.characters / max(1, self.rows - self.empty)

    @property
    def kind(self) -> str:
        """The one type that fits all values."""
        kinds = set(self.kinds)
        if len(kinds) == 1:
            (only,) = kinds
            return only if only != "list" or self.text_items else "json"
        if kinds and kinds <= {"integer", "number"}:
            return "number"
        return "text" if self.csv or kinds <= {"text", "integer"} else "json"

    def add(self, value: JsonValue) -> None:
        """Counts one more value."""
        self.rows += 1
        if value is None or value == "":
            self.empty += 1
            return
        kind = _kind(value, csv=self.csv)
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        if isinstance(value, list):
            self.text_items = self.text_items and all(isinstance(item, str) for item in value)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
        self.characters += len(text)
        self.longest = max(self.longest, len(text))
        self.lines = self.lines or "\n" in text
        if text in self.values or len(self.values) < _DISTINCT_KEPT:
            self.values[text] = self.values.get(text, 0) + 1


def profile(path: Path) -> tuple[ColumnProfile, ...]:
    """The columns of a file in the order in which they first appear, over the first 100,000 rows.

    Raises:
        SkillcError: the file cannot be read, or a row is no row.
    """
    problems = Problems()
    columns: dict[str, ColumnProfile] = {}
    csv = is_csv(path)
    for before, row in enumerate(islice(read_rows(path, path.name, problems), ROWS_READ)):
        for name in row.values:
            columns.setdefault(name, ColumnProfile(name, csv, before, before))
        for name, column in columns.items():
            column.add(row.values.get(name))
    problems.check()
    return tuple(columns.values())


def _kind(value: JsonValue, *, csv: bool) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, list):
        return "list"
    if isinstance(value, dict):
        return "json"
    return _kind_of_cell(value) if csv and value else "text"


def _kind_of_cell(value: str) -> str:
    text = value.strip()
    if text.lower() in _BOOLS:
        return "bool"
    # A number with a leading zero is a code, and stays text.
    if _INTEGER.fullmatch(text):
        return "integer"
    return "number" if _DECIMAL.fullmatch(text) else "text"
