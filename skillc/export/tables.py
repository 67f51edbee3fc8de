"""Rows of rollouts as JSON lines or as a Parquet file, written while they are read."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

from skillc.errors import SkillcError
from skillc.export.rollouts import SCHEMA, Row
from skillc.files import write_atomically

Style = Literal["jsonl", "parquet"]
_ROWS_A_GROUP = 1_000
# Other ends of lines, at which some readers would split a row. They occur only within the texts of a JSON object.
_LINE_ENDS = {ord(sign): f"\\u{ord(sign):04x}" for sign in "\x85\u2028\u2029"}
# Their keys are those of the program, so a Parquet file has them as JSON.
_AS_JSON = ("inputs", "right", "fields", "output")


def write_rows(rows: Iterable[Row], metrics: Sequence[str], path: Path, style: Style) -> int:
    """Write rows to a file, `-` for standard output, and return their number.

    Raises:
        SkillcError: the file cannot be written, there is no row, or the library for Parquet is missing.
    """
    counted = _Counted(rows)
    first = next(counted, None)
    if first is None:
        raise SkillcError("the run has no recorded rollout", hint="`skillc compile` records them")
    every = chain([first], counted)
    try:
        if style == "parquet":
            _write_parquet(every, metrics, path)
        elif str(path) == "-":
            sys.stdout.writelines(_lines(every))
        else:
            write_atomically(path, _lines(every))
    except BrokenPipeError:
        raise
    except OSError as problem:
        raise SkillcError(f"`{path}` cannot be written: {problem.strerror or problem}") from problem
    return counted.count


class _Counted:
    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = iter(rows)
        self.count = 0

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        row = next(self._rows)
        self.count += 1
        return row


def _lines(rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        yield json.dumps(row, ensure_ascii=False, separators=(",", ":")).translate(_LINE_ENDS) + "\n"


def _write_parquet(rows: Iterator[Row], metrics: Sequence[str], path: Path) -> None:
    if str(path) == "-":
        raise SkillcError("a Parquet file can't be written to standard output", hint="name a file with `--output`")
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise SkillcError(
            "a Parquet file needs the library `pyarrow`", hint='pip install "skillc[parquet]", or `--format jsonl`'
        ) from None
    schema = _schema(arrow).with_metadata({"skillc.rollouts": str(SCHEMA), "skillc.metrics": json.dumps(list(metrics))})
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        # Opened here, so that the path is a file's and never an address.
        with beside.open("wb") as stream, parquet.ParquetWriter(stream, schema, compression="zstd") as writer:
            while group := list(islice(rows, _ROWS_A_GROUP)):
                writer.write_table(arrow.Table.from_pylist([_flat(row) for row in group], schema=schema))
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _flat(row: Row) -> dict[str, Any]:
    flat: dict[str, Any] = dict(row)
    for name in _AS_JSON:
        flat[name] = None if row[name] is None else json.dumps(row[name], ensure_ascii=False)
    for name in ("scores", "unmeasured"):
        values = row[name]
        flat[name] = list(values.items()) if isinstance(values, dict) else []
    messages = row["messages"]
    flat["messages"] = [
        {**each, "arguments": None if each["arguments"] is None else json.dumps(each["arguments"], ensure_ascii=False)}
        for each in (messages if isinstance(messages, list) else ())
        if isinstance(each, dict)
    ]
    return flat


def _schema(arrow: Any) -> Any:
    text, whole, real = arrow.string(), arrow.int64(), arrow.float64()
    message = dict.fromkeys(("kind", "role", "text", "tool", "arguments", "path"), text)
    columns = {
        "format_version": arrow.int32(),
        **dict.fromkeys(("run", "kind", "place"), text),
        "decision": whole,
        **dict.fromkeys(("result", "candidate", "skill", "trial", "split", "example", "group", *_AS_JSON[:3]), text),
        "sample": whole,
        "attempt": whole,
        **dict.fromkeys(("output", "problem", "ending"), text),
        "scores": arrow.map_(text, real),
        "unmeasured": arrow.map_(text, text),
        "reason": text,
        "feedback": text,
        "reward": real,
        "stage": text,
        **dict.fromkeys(("calls", "prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens"), whole),
        "cost": real,
        "seconds": real,
        "turns": whole,
        "messages": arrow.list_(arrow.struct({**message, "failed": arrow.bool_()})),
    }
    return arrow.schema(columns.items())
