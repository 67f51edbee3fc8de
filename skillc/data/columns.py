"""Columns of a data file: convert the values that a program reads, and profile the values of any file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from skillc.data.attachments import BadFile, paths_in, read_image, read_text, texts_in_prompt
from skillc.data.cutting import Cut, cut_value
from skillc.data.problems import Problems, closest_name, name_list
from skillc.data.read import Row, is_csv, parse_json, read_rows
from skillc.dataclass import dataclass
from skillc.json_values import JsonObject
from skillc.plan.schema import DataPlan, FieldPlan, TaskPlan, TypePlan
from skillc.text import shown

ColumnRole = Literal["input", "output", "field"]

_INTEGER = re.compile(r"[-+]?\d{1,400}")
_BOOLS = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}


@dataclass(frozen=True, slots=True)
class DataColumn:
    """A field of the program and its role.

    Attributes:
        reads: marks an input that is cut or names files.
        needed: whether each row needs a value: an output without a right answer is one that no metric compares.
        metric: the metric that compares an output, if it is known.
    """

    field: FieldPlan
    role: ColumnRole
    reads: bool = False
    needed: bool = True
    metric: str | None = None


@dataclass(frozen=True, slots=True)
class TypedRow:
    """The values of one row, by role and name.

    Attributes:
        inputs: as the target reads them.
        whole: the inputs before any was cut.
        left_out: the tokens that were cut, by input.
    """

    inputs: JsonObject
    gold: JsonObject
    fields: JsonObject
    whole: JsonObject
    left_out: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file whose rows are converted.

    Attributes:
        name: its name in messages.
        csv: whether all its values are text.
        folder: the folder of paths in it.
        root: the program's folder; paths in examples are relative to it.
        one_turn: whether the target reads the text of files in its prompt.
    """

    name: str
    csv: bool
    folder: Path
    root: Path
    one_turn: bool = False


class BadValue(ValueError):  # noqa: N818
    """A value that does not fit its type.

    Attributes:
        hint: the fix.
        kind: the message for several such values.
        metric: the metric that needs it, if it is the metric that may be wrong.
    """

    def __init__(
        self, message: str, hint: str | None = None, kind: str | None = None, metric: str | None = None
    ) -> None:
        super().__init__(message)
        self.hint = hint
        self.kind = kind
        self.metric = metric


def columns_of(task: TaskPlan, data: DataPlan, compared: Mapping[str, str] | None = None) -> tuple[DataColumn, ...]:
    """Return all columns that a program reads, inputs first.

    `compared` has the outputs that need right answers, each with the metric that compares them; None for all.
    """

    def output(field: FieldPlan) -> DataColumn:
        metric = (compared or {}).get(field.name)
        return DataColumn(field, "output", needed=compared is None or metric is not None, metric=metric)

    return (
        *(
            DataColumn(field, "input", field.cut is not None or field.type.file_kind is not None)
            for field in task.inputs
        ),
        *map(output, task.outputs),
        *(DataColumn(field, "field") for field in data.fields),
    )


def convert_row(row: Row, columns: tuple[DataColumn, ...], file: DataFile, problems: Problems) -> TypedRow | None:
    """Return the typed values of a row; report its problems and return None if it has any."""
    values: dict[ColumnRole, dict[str, JsonValue]] = {"input": {}, "output": {}, "field": {}}
    whole: dict[str, JsonValue] | None = None
    left_out: dict[str, int] = {}
    good = True
    for column in columns:
        if not column.needed and row.values.get(column.field.column) in (None, ""):
            continue
        try:
            value = _value(row, column, file)
            if column.role == "input" and column.reads:
                full, cut = _read_input(value, column.field, file)
                if cut.left_out:
                    left_out[column.field.name] = cut.left_out
                    whole = whole or {}
                    whole[column.field.name] = full
                value = cut.value
            values[column.role][column.field.name] = value
        except BadValue as bad:
            at = (column.role, column.field.name, None) if bad.metric is None else ("metric", bad.metric, None)
            problems.add(file.name, row.line, str(bad), bad.hint, at=at, kind=bad.kind)
            good = False
    if not good:
        return None
    inputs = values["input"]
    return TypedRow(inputs, values["output"], values["field"], {**inputs, **whole} if whole else inputs, left_out)


def _read_input(value: JsonValue, field: FieldPlan, file: DataFile) -> tuple[JsonValue, Cut]:
    """Return an input before and after its files were read and its limit was applied."""
    if field.type.file_kind is None:
        return value, cut_value(value, field)
    if field.type.file_kind == "image" or not file.one_turn or value is None:
        return value, Cut(value)
    files = []
    for path in paths_in(value):
        place = file.root / path
        name = Path(os.path.relpath(place, file.folder)).as_posix()
        try:
            files.append((name, read_text(place)))
        except BadFile as bad:
            raise _bad_file(name, field, bad) from None
    try:
        cut = texts_in_prompt(files, field)
        return (texts_in_prompt(files, field.model_copy(update={"cut": None})) if cut.left_out else cut).value, cut
    except BadFile as bad:
        raise _bad_file(", ".join(name for name, _ in files), field, bad) from None


def _bad_file(name: str, field: FieldPlan, bad: BadFile) -> BadValue:
    kind = f"files in `{field.column}`: {bad}"
    return BadValue(f"{shown(name)} in `{field.column}` {bad}", bad.hint, kind)


def _value(row: Row, column: DataColumn, file: DataFile) -> JsonValue:
    field = column.field
    value = row.values.get(field.column)
    if field.column not in row.values and not field.type.optional:
        raise _missing(row, column)
    if value is None or (file.csv and value == "" and (field.type.kind != "text" or field.type.optional)):
        value = None
    if column.role == "output":
        return _gold(value, field, file)
    return _typed(value, field, field.type, file)


def _missing(row: Row, column: DataColumn) -> BadValue:
    field = column.field
    close = _closest_name(field.column, tuple(row.values))
    what = f"no `{field.column}`" if field.column == field.name else f"no `{field.column}` for `{field.name}`"
    message = f"{what}; the row has {name_list(row.values) or 'nothing'}"
    if close is None and column.metric is not None:
        message += f", and `{column.metric}` compares `{field.name}` with it"
        advice = "give the right answers, or a metric that needs none: `judge` without `gold`, `python(...)`"
        return BadValue(message, advice, metric=column.metric)
    hint = f'if `{close}` is meant, write `{column.role} {field.name}: ... {{ column = "{close}" }}`' if close else None
    return BadValue(message, hint)


# Rows with a missing column mostly lack the same one.
_closest_name = lru_cache(maxsize=8192)(closest_name)


def _gold(value: JsonValue, field: FieldPlan, file: DataFile) -> JsonValue:
    """Return the right answer, or for an output that is no list, a list of answers any of which is right."""
    kind = field.type.kind
    empty = value is None or value == "" or (value == [] and kind != "list")
    if empty and not field.type.optional:
        raise BadValue(f"no answer in `{field.column}`", "give the right answer, or leave the row out")
    if value == "" and field.type.optional:
        return None
    if kind not in ("list", "json"):
        if file.csv and kind != "text" and isinstance(value, str) and value.lstrip().startswith("["):
            value = _json_cell(value, field, "a list")
        if isinstance(value, list):
            if None in value or "" in value:
                raise BadValue(f"an empty answer in the list `{field.column}`", "remove it")
            return [_typed(answer, field, field.type, file) for answer in value]
    return _typed(value, field, field.type, file)


def _typed(value: JsonValue, field: FieldPlan, type_: TypePlan, file: DataFile) -> JsonValue:
    if value is None:
        if type_.optional:
            return None
        raise BadValue(f"`{field.column}` is empty", f"give a value, or declare `{field.name}: ... | none`")
    if type_.kind in ("file", "image"):
        return _path(value, field, file)
    if type_.kind == "list":
        return _list(value, field, type_, file)
    if type_.kind == "labels":
        return _label(value, field, type_)
    return _CONVERT[type_.kind](value, field, file)


def _text(value: JsonValue, field: FieldPlan, file: DataFile) -> JsonValue:
    if isinstance(value, str):
        return _whole(value, field)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise _wrong(value, field, "text", "put it in quotes")


def _whole(value: str, field: FieldPlan) -> str:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise BadValue(f"half a character (a lone surrogate) in `{field.column}`", "write the file again") from None
    return value


def _bool(value: JsonValue, field: FieldPlan, file: DataFile) -> JsonValue:
    if isinstance(value, bool):
        return value
    if file.csv and isinstance(value, str) and value.strip().lower() in _BOOLS:
        return _BOOLS[value.strip().lower()]
    raise _wrong(value, field, "a bool", "write true or false")


def _number(value: JsonValue, field: FieldPlan, file: DataFile) -> JsonValue:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if file.csv and isinstance(value, str):
        text = value.strip()
        if _INTEGER.fullmatch(text):
            return int(text)
        if re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", text) and abs(float(text)) != float("inf"):
            return float(text)
    raise _wrong(value, field, "a number", "write digits and a decimal point, nothing else")


def _integer(value: JsonValue, field: FieldPlan, file: DataFile) -> JsonValue:
    number = _number(value, field, file)
    if isinstance(number, float) and number.is_integer():
        return int(number)
    if isinstance(number, int):
        return number
    raise _wrong(value, field, "an integer", f"declare `{field.name}: number`")


def _json(value: JsonValue, field: FieldPlan, file: DataFile) -> JsonValue:
    return _json_cell(value, field, "JSON") if file.csv and isinstance(value, str) else value


def _json_cell(value: str, field: FieldPlan, what: str) -> JsonValue:
    try:
        return parse_json(value)
    except ValueError as error:
        raise BadValue(f"`{field.column}` is not {what}: {error}", 'write it as JSON: `["a", "b"]`') from None


def _list(value: JsonValue, field: FieldPlan, type_: TypePlan, file: DataFile) -> JsonValue:
    if file.csv and isinstance(value, str):
        value = _json_cell(value, field, "a list")
        # Values inside JSON are typed.
        file = replace(file, csv=False)
    if not isinstance(value, list):
        raise _wrong(value, field, "a list", 'write `["a", "b"]`')
    item = type_.item or TypePlan(kind="text")
    return [_typed(part, field, item, file) for part in value]


def _label(value: JsonValue, field: FieldPlan, type_: TypePlan) -> JsonValue:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if isinstance(text, str) and text in type_.labels:
        return text
    shape = shown(text) if isinstance(text, str) else f"`{json.dumps(value)[:60]}`"
    close = closest_name(text, type_.labels) if isinstance(text, str) else None
    hint = f"did you mean `{close}`?" if close else "correct it, or declare it"
    raise BadValue(
        f"{shape} in `{field.column}` is not a declared label of `{field.name}`: {name_list(type_.labels)}", hint
    )


def _path(value: JsonValue, field: FieldPlan, file: DataFile) -> JsonValue:
    """Return a path, which must be below the data file's folder, relative to the program's folder."""
    if not isinstance(value, str) or not value:
        raise _wrong(value, field, "a path", "write it relative to the data file")
    folder = file.folder.resolve()
    try:
        found = (folder / value).resolve()
        inside = found.is_relative_to(folder)
        there = inside and found.is_file()
    except (OSError, ValueError, RuntimeError):
        raise BadValue(f"{shown(value)} in `{field.column}` is not a path") from None
    if Path(value).is_absolute() or not inside:
        raise BadValue(f"{shown(value)} in `{field.column}` is outside the data's folder", "move the file below it")
    if not there:
        if "://" in value:
            hint = "download it beside the data, since what an address gives can change"
            raise BadValue(f"{shown(value)} in `{field.column}` is an address, not a file", hint)
        raise BadValue(f"no file {shown(value)}, named in `{field.column}`", "paths are relative to the data file")
    if field.type.file_kind == "image":
        try:
            read_image(found)
        except BadFile as bad:
            raise _bad_file(value, field, bad) from None
    return Path(os.path.relpath(file.folder / value, file.root)).as_posix()


def _wrong(value: JsonValue, field: FieldPlan, what: str, hint: str) -> BadValue:
    message = f"{shown(json.dumps(value, ensure_ascii=False))} in `{field.column}` is not {what}"
    return BadValue(message, hint, f"values in `{field.column}` are not {what}")


_CONVERT: dict[str, Callable[[JsonValue, FieldPlan, DataFile], JsonValue]] = {
    "text": _text,
    "bool": _bool,
    "number": _number,
    "integer": _integer,
    "json": _json,
}


ROWS_READ = 100_000
_DISTINCT_KEPT = 20_000
_PATHS_TRIED = 100
_DOTTED = re.compile(r"\.\w{1,8}\Z")
_IMAGE_NAME = re.compile(r"\.(?:png|jpe?g|gif|webp)\Z", re.IGNORECASE)
_TRUTHS = frozenset({"true", "false"})
_WHOLE_CELL = re.compile(r"-?(?:0|[1-9]\d{0,17})")
_KINDS: dict[type, str] = {bool: "bool", int: "integer", float: "number", list: "list", dict: "json"}
_DECIMAL = re.compile(r"-?(?:0|[1-9]\d{0,17})\.\d{1,17}")


@dataclass
class ColumnProfile:
    """Counts over one column; a value counts as empty when it is null or "".

    Attributes:
        values: how often each value occurs, for the first 20,000 distinct ones.
        kinds: how often each kind occurs: text, number, integer, bool, list, json.
        folder: the folder of the file, to which paths in the column are relative; None outside of any.
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
    folder: Path | None = None

    @property
    def distinct(self) -> int:
        """The number of distinct values, 20,000 at most."""
        return len(self.values)

    @property
    def mean_length(self) -> float:
        """Characters of a non-empty value on average."""
        return self.characters / max(1, self.rows - self.empty)

    @property
    def kind(self) -> str:
        """The one type that fits all values."""
        kinds = set(self.kinds)
        if kinds == {"text"} and self._named is not None:
            return self._named
        if len(kinds) == 1:
            (only,) = kinds
            return only if only != "list" or self.text_items else "json"
        if kinds and kinds <= {"integer", "number"}:
            return "number"
        return "text" if self.csv or kinds <= {"text", "integer"} else "json"

    @cached_property
    def _named(self) -> str | None:
        """`image` or `file` if the first values are all paths of such files, else None."""
        values = list(islice(self.values, _PATHS_TRIED))
        if self.folder is None or self.lines or not all(_DOTTED.search(value) for value in values):
            return None
        try:
            there = values and all((self.folder / value).is_file() for value in values)
        except (OSError, ValueError):
            return None
        if not there:
            return None
        return "image" if all(_IMAGE_NAME.search(value) for value in values) else "file"

    def add(self, value: JsonValue) -> None:
        """Count one more value."""
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
    """Return the columns of a file in the order in which they first appear, over the first 100,000 rows.

    Raises:
        SkillcError: the file or a row cannot be read.
    """
    problems = Problems()
    columns: dict[str, ColumnProfile] = {}
    csv = is_csv(path)
    for before, row in enumerate(islice(read_rows(path, path.name, problems), ROWS_READ)):
        for name in row.values:
            columns.setdefault(name, ColumnProfile(name, csv, before, before, folder=path.parent))
        for name, column in columns.items():
            column.add(row.values.get(name))
    problems.check()
    return tuple(columns.values())


def _kind(value: JsonValue, *, csv: bool) -> str:
    if not isinstance(value, str):
        return _KINDS[type(value)]
    if not csv:
        return "text"
    text = value.strip()
    if text.lower() in _TRUTHS:
        return "bool"
    # A number with a leading zero is a code, and stays text.
    if _WHOLE_CELL.fullmatch(text):
        return "integer"
    return "number" if _DECIMAL.fullmatch(text) else "text"
