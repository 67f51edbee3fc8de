"""Rows of Parquet files and of folders saved by Hugging Face `datasets`."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

from pydantic import JsonValue

from skillc.text import listed

PARQUET = ".parquet"
_ROWS_A_BATCH = 1_000
_DATASET, _SPLITS = "state.json", "dataset_dict.json"
Fail = Callable[[int, str, str | None], NoReturn]
"""Raise an error at a row, 0 for the whole file, with a message and a hint."""


def is_saved(path: Path) -> bool:
    """Return whether a folder was written by `datasets.save_to_disk`."""
    return (path / _DATASET).is_file() or (path / _SPLITS).is_file()


def parquet_rows(path: Path, fail: Fail) -> Iterator[tuple[int, dict[str, JsonValue]]]:
    """Yield number, from 1, and values of each row, with one batch of rows in memory.

    Raises:
        SkillcError: `pyarrow` is not installed, the file is damaged, or a value has no JSON form.
    """
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        fail(0, "a Parquet file needs the library `pyarrow`", 'pip install "skillc[parquet]"')
    try:
        # Opened here, so that the path is a file's and never an address.
        with path.open("rb") as stream, parquet.ParquetFile(stream) as file:
            batches = (batch.to_pylist() for batch in file.iter_batches(batch_size=_ROWS_A_BATCH))
            yield from _numbered((row for batch in batches for row in batch), fail)
    except (arrow.ArrowException, ValueError) as problem:
        fail(0, f"is not a valid Parquet file: {_first_line(problem)}", None)


def saved_rows(path: Path, fail: Fail) -> Iterator[tuple[int, dict[str, JsonValue]]]:
    """Yield number and values of each row of a folder saved by `datasets`; a class label becomes its name.

    Raises:
        SkillcError: `datasets` is not installed, or the folder contains several splits or is damaged.
    """
    if (path / _SPLITS).is_file():
        splits = sorted(each.name for each in path.iterdir() if (each / _DATASET).is_file())
        named = listed(f"{path.name}/{name}" for name in splits)
        fail(0, "contains several splits", f"name one of its folders: {named}" if splits else None)
    try:
        import datasets
    except ImportError:
        fail(0, "a saved data set needs the library `datasets`", 'pip install "skillc[datasets]"')
    try:
        data = datasets.load_from_disk(str(path)).with_format(None)
    except Exception as problem:  # the library raises many kinds of errors for a damaged folder
        fail(0, f"is not a valid saved data set: {_first_line(problem)}", None)
    names = {name: kind.names for name, kind in data.features.items() if isinstance(kind, datasets.ClassLabel)}
    yield from _numbered((_labelled(row, names) for row in data), fail)


def _labelled(row: Mapping[str, Any], names: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return a row with the name of each class label; -1 means no label."""
    return {
        key: (names[key][value] if value is not None and value >= 0 else None) if key in names else value
        for key, value in row.items()
    }


def _numbered(rows: Iterator[Mapping[str, Any]], fail: Fail) -> Iterator[tuple[int, dict[str, JsonValue]]]:
    for number, row in enumerate(rows, 1):
        values: dict[str, JsonValue] = {}
        for name, value in row.items():
            try:
                values[str(name)] = _plain(value)
            except TypeError as problem:
                fail(number, f"the column `{name}` contains {problem}", "leave the column out, or convert it to text")
        yield number, values


def _plain(value: Any) -> JsonValue:
    """Convert a value to JSON.

    Raises:
        TypeError: it has no JSON form; the message names its type.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    what = "bytes" if isinstance(value, bytes | bytearray | memoryview) else f"a {type(value).__name__}"
    raise TypeError(f"{what}, which has no JSON form")


def _first_line(problem: Exception) -> str:
    return (str(problem).strip() or type(problem).__name__).splitlines()[0][:200]
