"""Where the output of a command has its answer."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from skillc.json_values import as_text
from skillc.plan.schema import AnswerPlan
from skillc.processes.command import MOST_OUTPUT


class AnswerMissing(ValueError):  # noqa: N818
    """The output of a command has no answer in the declared place, so it is malformed."""


def prepare(answer: AnswerPlan, folder: Path) -> None:
    """Date the answer's file of an earlier call to the epoch, so that it is not read as this call's."""
    if answer.kind == "file" and (folder / answer.text).exists():
        os.utime(folder / answer.text, ns=(0, 0))


def take(answer: AnswerPlan, output: bytes, folder: Path) -> str:
    """Return the answer, stripped, or empty if the command printed nothing; raise `AnswerMissing` if it has none."""
    if answer.kind == "file":
        return _decode(_read_file(folder, answer.text), f"the file `{answer.text}`").strip()
    text = _decode(output, "the output").strip()
    return _READERS[answer.kind](answer, text).strip() if text else ""


def _decode(raw: bytes, what: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as problem:
        raise AnswerMissing(f"{what} is not UTF-8 at byte {problem.start}") from None


def _json(answer: AnswerPlan, text: str) -> str:
    """The value at the path in the output, or in the last line that has one there."""
    for part in (text, *reversed(text.splitlines())):
        try:
            value = json.loads(part)
            for step in answer.path:
                value = value[step]
        except (ValueError, RecursionError, KeyError, IndexError, TypeError):
            continue
        if value is not None:
            return as_text(value)
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in answer.path)
    raise AnswerMissing(f"no JSON in the output has a value at `{path}`")


def _after(answer: AnswerPlan, text: str) -> str:
    _, found, rest = text.rpartition(answer.text)
    if not found:
        raise AnswerMissing(f"the output does not contain `{answer.text}`")
    return rest


def _match(answer: AnswerPlan, text: str) -> str:
    last = None
    for last in re.finditer(answer.text, text):  # noqa: B007
        pass
    found = last and last[last.re.groups]
    if found is None:
        raise AnswerMissing(f"nothing in the output matches `{answer.text}`")
    return str(found)


_READERS: Mapping[str, Callable[[AnswerPlan, str], str]] = {
    "stdout": lambda answer, text: text,
    "json": _json,
    "after": _after,
    "match": _match,
}


def _read_file(folder: Path, name: str) -> bytes:
    path = folder / name
    try:
        if not path.resolve().is_relative_to(folder.resolve()) or not path.is_file():
            raise AnswerMissing(f"the command wrote no file `{name}` into its working folder")
        stat = path.stat()
        if stat.st_mtime_ns == 0:
            raise AnswerMissing(f"the command did not write the file `{name}`; it is from an earlier call")
        if stat.st_size > MOST_OUTPUT:
            raise AnswerMissing(f"the file `{name}` is too large: {stat.st_size:,} bytes")
        return path.read_bytes()
    except OSError as problem:
        raise AnswerMissing(f"the file `{name}` cannot be read: {problem.strerror}") from None
