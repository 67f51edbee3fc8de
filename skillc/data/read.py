"""Rows of a data file, one at a time: JSONL, JSON, CSV, TSV, Parquet, folders saved by Hugging Face `datasets`, and
folders of tasks in the format of Harbor.

Lines, objects and fields have size limits, so that a broken file fails early and in little memory.
"""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from pydantic import JsonValue

from skillc.data.evals import read_eval
from skillc.data.problems import Problems, name_list
from skillc.data.tables import PARQUET, is_saved, parquet_rows, saved_rows
from skillc.data.task_folders import task_rows, tasks_in
from skillc.dataclass import dataclass
from skillc.json_values import JsonObject
from skillc.text import counted

FIELD_CHARACTERS = 1_000_000
ROW_BYTES = 16_000_000
_CHUNK = 1 << 20
_TOO_LONG = f"a field may have {FIELD_CHARACTERS:,} characters"
_TOO_DEEP = "the value is nested too deeply"
_AN_EVAL = 'write `{"id": 1, "prompt": "...", "expected_output": "...", "files": [], "assertions": ["..."]}`'
_READ = ".jsonl, .json, .csv, .tsv or .parquet"


@dataclass(frozen=True, slots=True)
class Row:
    """A row and its first line, or its number in a file without lines. In CSV and TSV all values are text."""

    line: int
    values: JsonObject


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    name: str
    problems: Problems

    def stop(self, line: int, message: str, hint: str | None = None) -> NoReturn:
        raise self.problems.fatal(self.name, line, message, hint)


def is_csv(path: Path) -> bool:
    """Return whether the values of the file are all text."""
    return path.suffix.lower() in (".csv", ".tsv")


def read_rows(path: Path, name: str, problems: Problems) -> Iterator[Row]:
    """Yield the rows of a file, whose format is its extension. Report a bad row in `problems` and skip it.

    `name` is the file's name in messages.

    Raises:
        SkillcError: the file cannot be read, or not any further.
    """
    file = _File(path, name, problems)
    if path.is_dir() and is_saved(path):
        yield from _of_table(file, saved_rows(path, file.stop))
        return
    if path.is_dir() and tasks_in(path):
        yield from _of_table(file, task_rows(path, name, file.stop))
        return
    if path.is_dir():
        file.stop(0, "is a folder", f"name the file in it: {_READ}")
    if not path.is_file():
        if path.exists():
            file.stop(0, "is a device or a pipe, not a file", f"name a file: {_READ}")
        others = sorted(other.name for other in path.parent.glob("*") if other.suffix in {*_READERS, PARQUET})
        file.stop(0, "file not found", f"data files in that folder: {name_list(others)}" if others else None)
    suffix = path.suffix.lower()
    if suffix == PARQUET:
        yield from _of_table(file, parquet_rows(path, file.stop))
        return
    if suffix not in _READERS:
        what = f"`{path.suffix}` is not a supported format" if path.suffix else "the name has no extension"
        file.stop(0, what, f"use {_READ}")
    has_rows = False
    try:
        with path.open("rb") as stream:
            for row in _READERS[suffix](file, stream):
                has_rows = True
                yield row
    except OSError as error:
        file.stop(0, f"cannot be read: {error.strerror}")
    if not has_rows and not problems.any:
        file.stop(0, "has no rows")


# ---- bytes to lines -------------------------------------------------------------------------------


def _lines(file: _File, stream: BinaryIO) -> Iterator[tuple[int, str | None]]:
    """Yield number and text of each line; None for a line that is not UTF-8, which is reported."""
    offset, number = 0, 0
    while raw := stream.readline(ROW_BYTES + 1):
        number += 1
        if number == 1 and raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            file.stop(1, "is UTF-16", "save it as UTF-8")
        if len(raw) > ROW_BYTES:
            file.stop(number, f"the line is longer than {ROW_BYTES // 1_000_000} MB", _TOO_LONG)
        skip = len(codecs.BOM_UTF8) if number == 1 and raw.startswith(codecs.BOM_UTF8) else 0
        yield number, _decoded(file, raw, skip, offset, number)
        offset += len(raw)


def _decoded(file: _File, raw: bytes, skip: int, offset: int, number: int) -> str | None:
    if b"\0" in raw:
        file.problems.add(file.name, number, f"a NUL byte at offset {offset + raw.index(0)}", "remove it")
        return None
    try:
        return raw[skip:].decode("utf-8")
    except UnicodeDecodeError as error:
        at = offset + skip + error.start
        byte = raw[skip + error.start]
        file.problems.add(file.name, number, f"not UTF-8: byte 0x{byte:02X} at offset {at}", "save the file as UTF-8")
        return None


# ---- JSON -----------------------------------------------------------------------------------------


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"duplicate key `{next(k for k in keys if keys.count(k) > 1)}`")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"the number `{text}` is too large")
    return number


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"`{text}` is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_float=_finite, parse_constant=_no_constant)


def parse_json(text: str) -> JsonValue:
    """Parse a JSON value, strictly: no duplicate keys, no NaN, no infinite number.

    Raises:
        ValueError: the text is not such a value.
    """
    try:
        value: JsonValue = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(_why(error)) from None
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    return value


def _why(error: json.JSONDecodeError) -> str:
    return f"invalid JSON: {error.msg[:1].lower()}{error.msg[1:]} at column {error.colno}"


def _jsonl(file: _File, stream: BinaryIO) -> Iterator[Row]:
    for number, line in _lines(file, stream):
        if line is None or not line.strip():
            continue
        if number == 1 and line.strip() == "[":
            file.stop(
                1, "begins like a JSON list", f"rename it to `{file.path.stem}.json`, or write one object per line"
            )
        try:
            value = parse_json(line)
        except ValueError as error:
            file.problems.add(file.name, number, str(error))
            continue
        if row := _row(file, number, value, len(line)):
            yield row


def _json(file: _File, stream: BinaryIO) -> Iterator[Row]:
    """Yield the objects of a list, or the evals of an object, from a buffer of little more than one row."""
    text = _JsonStream(file, stream)
    if text.next() == "{":
        yield from _evals(file, text)
        return
    if text.next() != "[":
        what = "is not a list of objects" if text.next() else "is empty"
        file.stop(
            0, what, f"write `[{{...}}, {{...}}]`; with one object per line rename it to `{file.path.stem}.jsonl`"
        )
    for line, value, length in _json_list(file, text):
        if row := _row(file, line, value, length):
            yield row
    if text.next():
        file.stop(text.line, "text after the closing `]`", "remove it")


def _json_list(file: _File, text: _JsonStream) -> Iterator[tuple[int, JsonValue, int]]:
    """Yield line, value and length of each item of a list."""
    text.take()
    while text.next() != "]":
        line = text.line
        value, length = text.value()
        yield line, value, length
        if text.next() == ",":
            text.take()
            if text.next() == "]":
                file.stop(text.line, "a comma before the closing `]`", "remove it")
        elif text.next() != "]":
            file.stop(text.line, "a `,` or the closing `]` is missing")
    text.take()


def _evals(file: _File, text: _JsonStream) -> Iterator[Row]:
    """Yield the evals of an object such as `evals/evals.json`."""
    found = False
    text.take()
    while text.next() != "}":
        key, _ = text.value()
        if text.next() != ":":
            file.stop(text.line, "a `:` is missing")
        text.take()
        if text.next() != "[" or key != "evals":
            text.value()
        else:
            found = True
            for line, value, length in _json_list(file, text):
                row = _row(file, line, value, length)
                try:
                    if row is not None:
                        yield Row(line, read_eval(row.values, file.path))
                except ValueError as error:
                    file.problems.add(file.name, line, str(error), _AN_EVAL)
        if text.next() == ",":
            text.take()
        elif text.next() != "}":
            file.stop(text.line, "a `,` or the closing `}` is missing")
    if not found:
        stem = file.path.stem
        file.stop(
            0,
            "is an object, not a list of objects",
            f"write `[{{...}}, {{...}}]`, or `evals` as Agent Skills has them; with one object per line rename it to "
            f"`{stem}.jsonl`",
        )
    text.take()
    if text.next():
        file.stop(text.line, "text after the closing `}`", "remove it")


_SPACE = re.compile(r"[ \t\r\n]*")


class _JsonStream:
    """A JSON scanner over a stream that is read in chunks."""

    def __init__(self, file: _File, stream: BinaryIO) -> None:
        self.line = 1
        self._text, self._at = "", 0
        self._file = file
        self._pieces = _text_pieces(file, stream)
        self._ended = False

    def _more(self) -> None:
        piece = next(self._pieces, None)
        self._ended = piece is None
        self._text = self._text[self._at :] + (piece or "")
        self._at = 0

    def _go(self, to: int) -> None:
        self.line += self._text.count("\n", self._at, to)
        self._at = to

    def take(self) -> None:
        """Advance by one character."""
        self._go(self._at + 1)

    def next(self) -> str:
        """Return the next character that is not white space, "" at the end."""
        while True:
            space = _SPACE.match(self._text, self._at)
            self._go(space.end() if space else self._at)
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._more()

    def value(self) -> tuple[JsonValue, int]:
        """Parse the next JSON value; return it and its length."""
        while True:
            held = len(self._text) - self._at
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
                if end < len(self._text) or self._ended:
                    length = end - self._at
                    self._go(end)
                    return value, length
            except json.JSONDecodeError as error:
                if self._ended or (held > ROW_BYTES and not error.msg.startswith("Unterminated")):
                    self._file.stop(self.line + self._text.count("\n", self._at, error.pos), _why(error))
            except (ValueError, RecursionError) as error:
                self._file.stop(self.line, _TOO_DEEP if isinstance(error, RecursionError) else str(error))
            if held > ROW_BYTES:
                self._file.stop(self.line, f"the row is longer than {ROW_BYTES // 1_000_000} MB", _TOO_LONG)
            for _ in range(1 + held // _CHUNK):
                self._more()


def _text_pieces(file: _File, stream: BinaryIO) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    offset, line, rest = 0, 1, 0
    while True:
        raw = stream.read(_CHUNK)
        if offset == 0 and raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            file.stop(1, "is UTF-16", "save it as UTF-8")
        if b"\0" in raw:
            at = raw.index(0)
            file.stop(line + raw.count(b"\n", 0, at), f"a NUL byte at offset {offset + at}", "remove it")
        try:
            text = decoder.decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            begun = offset - rest
            where = line + error.object.count(b"\n", 0, error.start)
            byte = error.object[error.start]
            file.stop(where, f"not UTF-8: byte 0x{byte:02X} at offset {begun + error.start}", "save the file as UTF-8")
        if not raw:
            return
        rest = len(decoder.getstate()[0])
        offset += len(raw)
        line += raw.count(b"\n")
        yield text


def _row(file: _File, line: int, value: JsonValue, length: int) -> Row | None:
    if not isinstance(value, dict):
        kind = {list: "a list", str: "text", bool: "a bool", type(None): "null"}.get(type(value), "a number")
        file.problems.add(file.name, line, f"{kind}, not an object", 'write `{"field": value}`')
        return None
    if length > FIELD_CHARACTERS:
        for name, field in value.items():
            size = len(field) if isinstance(field, str) else len(json.dumps(field))
            if size > FIELD_CHARACTERS:
                file.problems.add(file.name, line, f"the field `{name}` has {size:,} characters", _TOO_LONG)
                return None
    return Row(line, value)


def _of_table(file: _File, rows: Iterator[tuple[int, dict[str, JsonValue]]]) -> Iterator[Row]:
    has_rows = False
    for number, values in rows:
        has_rows = True
        long = any(isinstance(value, str) and len(value) > FIELD_CHARACTERS for value in values.values())
        if row := _row(file, number, values, FIELD_CHARACTERS + 1 if long else 0):
            yield row
    if not has_rows:
        file.stop(0, "has no rows")


# ---- CSV ------------------------------------------------------------------------------------------

_DELIMITERS = {",": "comma", "\t": "tab"}


def _csv(file: _File, stream: BinaryIO, delimiter: str = ",") -> Iterator[Row]:
    before = csv.field_size_limit()
    lines = ("\n" if line is None else line for _, line in _lines(file, stream))
    reader = csv.reader(lines, strict=True, delimiter=delimiter)
    header: list[str] | None = None
    while True:
        line = reader.line_num + 1
        csv.field_size_limit(FIELD_CHARACTERS)
        try:
            cells = next(reader, None)
        except csv.Error as error:
            if "field larger" in str(error):
                file.stop(line, "a cell is too long", f"{_TOO_LONG}; is a quote left open?")
            kind = "CSV" if delimiter == "," else "TSV"
            file.stop(line, f"invalid {kind}: {error}", "double each quote in a cell")
        finally:
            csv.field_size_limit(before)
        if cells is None:
            return
        if not cells:
            continue
        if header is None:
            header = _header(file, cells, delimiter)
        elif len(cells) != len(header):
            message = f"{counted(len(cells), 'cell')}, but the header has {len(header)}"
            file.problems.add(file.name, line, message, f"quote a cell that contains a {_DELIMITERS[delimiter]}")
        else:
            yield Row(line, dict(zip(header, cells, strict=True)))


def _header(file: _File, cells: list[str], delimiter: str) -> list[str]:
    names = [cell.strip() for cell in cells]
    if len(names) == 1 and any(other in names[0] for other in ";,\t"):
        name = _DELIMITERS[delimiter]
        hint = f"save the file with {name}s between the cells"
        if delimiter == "," and "\t" in names[0]:
            hint = f"its cells are separated by tabs: rename it to `{file.path.stem}.tsv`"
        elif delimiter == "\t" and "," in names[0]:
            hint = f"its cells are separated by commas: rename it to `{file.path.stem}.csv`"
        file.stop(1, f"the header has no {name}", hint)
    if "" in names:
        file.stop(1, f"column {names.index('') + 1} of the header has no name", "name it, or remove the column")
    double = [name for i, name in enumerate(names) if name in names[:i]]
    if double:
        file.stop(1, f"two columns are named `{double[0]}`", "rename one")
    return names


_READERS: Mapping[str, Callable[[_File, BinaryIO], Iterator[Row]]] = {
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".json": _json,
    ".csv": _csv,
    ".tsv": partial(_csv, delimiter="\t"),
}
