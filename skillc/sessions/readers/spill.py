"""Group unordered records of a file in constant memory, through a temporary SQLite file."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

Keyed: TypeAlias = tuple[str, str, Any]
"""The group of a record, its place in the group, and the record as JSON."""


def grouped(records: Iterable[Keyed]) -> Iterator[tuple[str, list[Any]]]:
    """Yield each group with its records by place; groups come by their first record.

    Only one group is in memory at a time, so that a file may be larger than the memory.
    """
    with tempfile.TemporaryDirectory(prefix="skillc-sessions-") as folder:
        connection = sqlite3.connect(Path(folder) / "spill.db", isolation_level=None)
        try:
            connection.executescript(
                "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
                "CREATE TABLE groups (id INTEGER PRIMARY KEY, name TEXT UNIQUE);"
                "CREATE TABLE records (group_id INTEGER, place TEXT, record TEXT);"
            )
            connection.execute("BEGIN")
            for group, place, record in records:
                connection.execute("INSERT OR IGNORE INTO groups (name) VALUES (?)", (group,))
                connection.execute(
                    "INSERT INTO records SELECT id, ?, ? FROM groups WHERE name = ?", (place, json.dumps(record), group)
                )
            connection.execute("COMMIT")
            connection.execute("CREATE INDEX by_group ON records (group_id, place)")
            rows = connection.execute(
                "SELECT name, record FROM records JOIN groups ON id = group_id ORDER BY group_id, place, records.rowid"
            )
            for name, found in groupby(rows, key=lambda row: row[0]):
                yield name, [json.loads(record) for _, record in found]
        finally:
            connection.close()
