"""Extracts the answer from what a command printed or wrote."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from skillc.json_values import as_text
from skillc.models.backends.command_run import MOST_OUTPUT
from skillc.plan.schema import AnswerPlan


class AnswerMissing(ValueError):  # noqa: N818
    """The output of a command has no answer in the declared place: it is malformed."""


def prepare(answer: AnswerPlan, folder: Path) -> None:
    """Make sure that a file of an earlier call is not taken for this one's: its time is set to the epoch.

    Raises:
        OSError: the file belongs to another user.
    """
    if answer.kind == "file" and (folder / answer.text).exists():
        os.utime(folder / answer.text, ns=(0, 0))


def take(answer: AnswerPlan, output: bytes, folder: Path) -> str:
    """The answer, without the blanks around it; empty where the command printed nothing.

    Args:
        answer: where it is.
        output: all that the command printed.
        folder: the working folder.

    Raises:
        AnswerMissing: it is not there, or no UTF-8.
    """
    if answer.kind == "file":
        return _decoded(_file(folder, answer.text), f"the file `{answer.text}`").strip()
    text = _decoded(output, "the output").strip()
    return _READERS[answer.kind](answer, text).strip() if text else ""


def _decoded(raw: bytes, what: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as problem:
        raise AnswerMissing(f"{what} is no UTF-8 at byte {problem.start}") from None


def _stdout(answer: AnswerPlan, text: str) -> str:
    return text


def _json(answer: AnswerPlan, text: str) -> str:
    """The text at the path of the output, or of the last line that has one there."""
    for value in _values(text):
        found = _at(value, answer.path)
        if found is not None:
            return as_text(found)
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in answer.path)
    raise AnswerMissing(f"no JSON in the output has anything at `{path}`")


def _values(text: str) -> Iterator[Any]:
    for part in (text, *reversed(text.splitlines())):
        try:
            yield json.loads(part)
        except (ValueError, RecursionError):
            continue


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _after(answer: AnswerPlan, text: str) -> str:
    _, found, rest = text.rpartition(answer.text)
    if not found:
        raise AnswerMissing(f"the output does not hold `{answer.text}`")
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
    "stdout": _stdout,
    "json": _json,
    "after": _after,
    "match": _match,
}


def _file(folder: Path, name: str) -> bytes:
    """The file's content, if this call wrote it.

    Raises:
        AnswerMissing: it did not, or the file is outside the folder, or too large.
    """
    path = folder / name
    try:
        if not path.resolve().is_relative_to(folder.resolve()) or not path.is_file():
            raise AnswerMissing(f"the command wrote no file `{name}` into its working folder")
        about = path.stat()
        if about.st_mtime_ns == 0:
            raise AnswerMissing(f"the command did not write the file `{name}`, which an earlier one left")
        if about.st_size > MOST_OUTPUT:
            raise AnswerMissing(f"the file `{name}` has {about.st_size:,} bytes")
        return path.read_bytes()
    except OSError as problem:
        raise AnswerMissing(f"the file `{name}` can't be read: {problem.strerror}") from None
