"""Read records of a file in constant memory: JSON lines, SQLite rows, and the beginning that reveals the format."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

from skillc.dataclass import dataclass
from skillc.json_values import JsonObject
from skillc.sessions.session import Tokens
from skillc.trajectories.trajectory import Message, Observation, Step, ToolCall

LONGEST_LINE = 64 * 2**20
"""Bytes of the longest line that is read; a longer one is a problem of the file, not of the memory."""

_LATEST = 1e20
"""Nanoseconds since 1970 of the latest time that is read."""
_SQLITE = b"SQLite format 3\x00"
_PARQUET = b"PAR1"
_GZIP = b"\x1f\x8b"
_HEAD_RECORDS = 20


@dataclass(frozen=True, slots=True)
class Problem:
    """A record that could not be read.

    Attributes:
        line: from 1; 0 if it has none.
    """

    source: str
    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of a file.

    Attributes:
        records: its first JSON objects, or one that holds the whole file.
        tables: columns by table of a SQLite file.
        columns: of a Parquet file.
    """

    path: Path
    records: tuple[JsonObject, ...] = ()
    tables: Mapping[str, frozenset[str]] = field(default_factory=dict)
    columns: frozenset[str] = frozenset()

    def has_table(self, name: str, *columns: str) -> bool:
        """Return whether a SQLite file has a table with these columns."""
        return frozenset(columns) <= self.tables.get(name, frozenset()) if name in self.tables else False


def head_of(path: Path) -> Head | None:
    """Return the beginning of a file; None if it cannot be read or no format has files of its kind."""
    try:
        with path.open("rb") as file:
            begin = file.read(16)
        if begin == _SQLITE:
            return Head(path, tables=_tables(path))
        if begin[:4] == _PARQUET:
            return Head(path, columns=_columns(path))
        if path.suffix == ".json":
            whole = json.loads(path.read_text(encoding="utf-8")) if path.stat().st_size < LONGEST_LINE else None
            first = whole[:_HEAD_RECORDS] if isinstance(whole, list) else [whole]
            return Head(path, tuple(each for each in first if isinstance(each, dict)))
        lines = islice(json_lines(path), _HEAD_RECORDS)
        return Head(path, tuple(value for _, value in lines if isinstance(value, dict)))
    except (OSError, ValueError, RecursionError, sqlite3.Error):
        return None


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the number and the value of each line, a `Problem` if it is not a JSON object; gzip is unpacked."""
    with _opened(path) as file:
        number = 0
        while line := file.readline(LONGEST_LINE):
            number += 1
            if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                    pass
                yield number, Problem(str(path), number, f"the line is longer than {LONGEST_LINE >> 20} MiB")
                continue
            if not line.strip():
                continue
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                # A killed agent leaves its last line incomplete.
                yield number, Problem(str(path), number, "it is no JSON")
                continue
            yield number, value if isinstance(value, dict) else Problem(str(path), number, "it is no JSON object")


def json_objects(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the objects of a file: JSON lines, or one JSON list or object in a `.json` file."""
    if path.suffix != ".json":
        yield from json_lines(path)
        return
    try:
        whole = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        yield from json_lines(path)
        return
    for number, value in enumerate(whole if isinstance(whole, list) else [whole], 1):
        yield number, value if isinstance(value, dict) else Problem(str(path), number, "it is no JSON object")


def _opened(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
    return cast(IO[bytes], gzip.open(path, "rb")) if packed else path.open("rb")


# ---- SQLite and Parquet ----------------------------------------------------------------------------


def connect(path: Path) -> sqlite3.Connection:
    """Open a database read-only, since its owner may have it open; rows are read by name."""
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=5)
    connection.row_factory = sqlite3.Row
    return connection


def _tables(path: Path) -> dict[str, frozenset[str]]:
    with closing(connect(path)) as connection:
        query = "SELECT m.name, p.name FROM sqlite_master m, pragma_table_info(m.name) p WHERE m.type = 'table'"
        found: dict[str, set[str]] = {}
        for table, column in connection.execute(query):
            found.setdefault(table, set()).add(column)
        return {table: frozenset(columns) for table, columns in found.items()}


def _columns(path: Path) -> frozenset[str]:
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError:
        return frozenset()
    with ParquetFile(path) as file:
        return frozenset(file.schema_arrow.names)


# ---- values of records -----------------------------------------------------------------------------


def object_of(value: object) -> Mapping[str, Any]:
    """Return a JSON object, also one that is written as text; an empty one for any other value."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = parsed(value)
    return value if isinstance(value, dict) else {}


def list_of(value: object) -> Sequence[Any]:
    """Return a JSON list, also one that is written as text; an empty one for any other value."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = parsed(value)
    return value if isinstance(value, list) else ()


def parsed(text: str) -> Any:
    """Return the value of a JSON text, the text itself if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def count_of(value: object) -> int:
    """Return a count, 0 for any other value."""
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else 0


def time_of(value: object) -> str | None:
    """Return a time as ISO 8601 in UTC, to the millisecond; None if it is none.

    Numbers are seconds, milliseconds, microseconds or nanoseconds since 1970, by their size.
    """
    try:
        if isinstance(value, str) and value.isdecimal():
            value = int(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _LATEST:
            while value > 1e11:
                value /= 1000
            found = datetime.fromtimestamp(value, UTC)
        elif isinstance(value, str) and value:
            found = datetime.fromisoformat(value)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    return found.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def text_of(content: object) -> str:
    """Return the text of a message or a result: a text, parts with texts, or JSON. Parts without text are named."""
    match content:
        case None:
            return ""
        case str():
            return content
        case list():
            return "\n".join(text for text in map(text_of, content) if text)
        case {"text": str(text)} | {"content": str(text)} | {"output_text": str(text)}:
            return text
        case {"type": str(kind)} if kind in _LEFT_OUT:
            return f"[{kind}]"
        case _:
            return json.dumps(content, ensure_ascii=False)


_LEFT_OUT = frozenset(
    {"image", "image_url", "input_image", "file", "input_file", "document", "audio", "input_audio", "video"}
)


# ---- chat messages ---------------------------------------------------------------------------------


def steps_of_chat(message: Mapping[str, Any]) -> Iterator[Step]:
    """Yield the steps of a message in OpenAI's or Anthropic's form; system messages and thoughts have none."""
    role, content = message.get("role"), message.get("content")
    if role in ("tool", "function"):
        yield Observation(text_of(content), bool(message.get("is_error")))
        return
    if role not in ("user", "assistant", "human", "ai", "model"):
        return
    who = "user" if role in ("user", "human") else "assistant"
    parts = content if isinstance(content, list) else [{"type": "text", "text": text_of(content)}]
    texts: list[str] = []
    for part in parts:
        match part:
            case {"type": "tool_use" | "tool_call", "name": name}:
                yield from _flushed(texts, who)
                yield ToolCall(str(name), arguments_of(part.get("input", part.get("arguments"))))
            case {"type": "tool_result"}:
                yield from _flushed(texts, who)
                yield Observation(text_of(part.get("content")), bool(part.get("is_error")))
            case {"type": "tool_call_response"}:
                yield from _flushed(texts, who)
                yield Observation(text_of(part.get("response", part.get("result"))))
            case {"type": "thinking" | "redacted_thinking" | "reasoning"}:
                continue
            case _:
                texts.append(text_of(part))
    yield from _flushed(texts, who)
    for call in list_of(message.get("tool_calls")):
        made = object_of(object_of(call).get("function") or call)
        yield ToolCall(str(made.get("name", "")), arguments_of(made.get("arguments", made.get("args"))))


def _flushed(texts: list[str], who: Any) -> Iterator[Step]:
    text = "\n".join(text for text in texts if text)
    texts.clear()
    if text:
        yield Message(text, who)


def arguments_of(value: object) -> JsonObject:
    """Return the arguments of a call; a text that is no JSON object becomes the argument `input`."""
    value = parsed(value) if isinstance(value, str) else value
    if isinstance(value, dict):
        return value
    return {} if value in (None, "") else {"input": value}  # type: ignore[dict-item]  # it came from JSON


def tokens_of(usage: object) -> Tokens:
    """Return reported usage in OpenAI's or Anthropic's form; the input of the latter excludes its cache."""
    reported = object_of(usage)
    read = count_of(reported.get("cache_read_input_tokens"))
    written = count_of(reported.get("cache_creation_input_tokens"))
    details = object_of(reported.get("prompt_tokens_details") or reported.get("input_tokens_details"))
    cached = read or count_of(details.get("cached_tokens")) or count_of(reported.get("cached_input_tokens"))
    sent = count_of(reported.get("prompt_tokens")) or count_of(reported.get("input_tokens")) + read + written
    received = count_of(reported.get("completion_tokens")) or count_of(reported.get("output_tokens"))
    return Tokens(sent, min(cached, sent), received)
