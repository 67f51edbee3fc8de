"""Reading a program from a file, with a message for everything that a path may turn out to be."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path

from skillc.errors import SkillcError
from skillc.syntax.source import Source

SIZE_LIMIT = 10_000_000
"""Bytes of the largest file that is read as a program."""

# With files, without any, in several parts.
_ZIPS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_OTHER_MARKS = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
_OTHER_FILES = {
    b"\x1f\x8b": "a gzip archive",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ\0": "an xz archive",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"Rar!\x1a": "a rar archive",
    b"%PDF-": "a PDF",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"\x7fELF": "an executable",
    b"SQLite format 3\0": "a database",
}
_DATA_HINT = 'write a first program for it with `skillc new {name}`, or name it in one: `data {{ source = "{file}" }}`'
_TEXT_HINT = 'take its sections over in a program: `use "./{file}" as today`'
_LOCK_HINT = "`skillc check --locked` holds a program against the lock beside its skill"
_OTHER_SUFFIXES = {
    ".md": ("a markdown document", _TEXT_HINT),
    ".csv": ("a data file", _DATA_HINT),
    ".tsv": ("a data file", _DATA_HINT),
    ".json": ("a data file", _DATA_HINT),
    ".jsonl": ("a data file", _DATA_HINT),
    ".ndjson": ("a data file", _DATA_HINT),
    ".parquet": ("a data file", _DATA_HINT),
    ".py": ("a Python file", 'a program calls its functions: `metric m = python("module:function")`'),
}
_OTHER_NAMES = {
    "SKILL.md": ("a skill", _TEXT_HINT),
    "skill.lock": ("a lock", _LOCK_HINT),
    "history.jsonl": ("the history of a skill", "`skillc report` and git read it; check the program instead"),
}
"""Files that people name in place of a program: what they are, and the verb that reads them."""
_WIDE = re.compile(rb"(?:\0[^\0]){3}|(?:[^\0]\0){3}")


class SourceError(SkillcError):
    """A file that is no program; the message says why."""


def read_source(path: Path) -> Source:
    """The text of a file, without a byte-order mark, under the name that the user gave.

    Raises:
        SourceError: there is no such file, it can't be read, or what it holds is not a text.
    """
    return Source(str(path), decode(str(path), read_bytes(path)))


def read_main(path: Path) -> Source:
    """The program that a command line names.

    Raises:
        SourceError: as `read_source`, and where its name says that it is something else.
    """
    return Source(str(path), decode(str(path), read_program(path)))


def read_program(path: Path) -> bytes:
    """The bytes of a program's file.

    Raises:
        SourceError: there is no such file, it can't be read, or its name says that it is something else.
    """
    data = read_bytes(path)
    other = _OTHER_NAMES.get(path.name) or _OTHER_SUFFIXES.get(path.suffix.lower())
    if other is None:
        return data
    what, hint = other
    raise SourceError(f"`{path}` is {what}, not a program", hint=hint.format(name=path, file=path.name))


def write_source(path: Path, text: str, *, keep_mark: bool = True) -> None:
    """Puts a text in the place of a file's, whole or not at all; its mode stays, and with `keep_mark` what marks UTF-8.

    Raises:
        SourceError: the file may not be written, or can't be.
    """
    from skillc.files import write_whole

    try:
        place = path.resolve(strict=True)
        mode = stat.S_IMODE(place.stat().st_mode)
        if not os.access(place, os.W_OK):
            raise SourceError(f"`{path}` may not be written", hint="check its permissions")
        with place.open("rb") as file:
            marked = keep_mark and file.read(3) == b"\xef\xbb\xbf"
        write_whole(place, "\ufeff" + text if marked else text, mode=mode)
    except OSError as error:
        raise SourceError(f"`{path}` can't be written: {_reason(error)}") from None


def read_bytes(path: Path) -> bytes:
    """What a file holds.

    Raises:
        SourceError: there is no such file, or it can't be read.
    """
    name = str(path)
    try:
        # Without it, opening a pipe waits for a writer.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise SourceError(f"there is no file `{name}`", hint=_nearby(path)) from None
    except PermissionError:
        if path.is_dir():
            raise _folder(name) from None
        raise SourceError(f"`{name}` may not be read", hint="check its permissions") from None
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) == errno.ENXIO:
            raise _device(name) from None
        raise SourceError(f"`{name}` can't be read: {_reason(error)}") from None
    state = os.fstat(handle)
    if not stat.S_ISREG(state.st_mode):
        os.close(handle)
        folder = stat.S_ISDIR(state.st_mode)
        raise _folder(name) if folder else _device(name)
    with os.fdopen(handle, "rb") as file:
        if state.st_size > SIZE_LIMIT:
            raise _too_large(name)
        try:
            data = file.read(SIZE_LIMIT + 1)
        except OSError as error:
            raise SourceError(f"`{name}` can't be read: {_reason(error)}") from None
    if len(data) > SIZE_LIMIT:
        raise _too_large(name)
    return data


def decode(name: str, data: bytes) -> str:
    """The text of a program, without a byte-order mark.

    Raises:
        SourceError: it is not a text, or not UTF-8.
    """
    if data.startswith(_ZIPS):
        hint = 'unpack it, and take its text over with `use "./SKILL.md" as today`'
        raise SourceError(f"`{name}` is a zipped skill, not a program", hint=hint)
    for mark, encoding in _OTHER_MARKS.items():
        if data.startswith(mark):
            raise SourceError(f"`{name}` is {encoding}, not UTF-8", hint="save it as UTF-8")
    for mark, what in _OTHER_FILES.items():
        if data.startswith(mark):
            raise SourceError(f"`{name}` is {what}, not a program")
    if _WIDE.match(data):
        raise SourceError(f"`{name}` is UTF-16, not UTF-8", hint="save it as UTF-8")
    data = data.removeprefix(b"\xef\xbb\xbf")
    zero = data.find(b"\0")
    if zero >= 0:
        raise SourceError(f"`{name}` is not a text: line {_line(data, zero)} holds a zero byte (byte {zero})")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        place = f"line {_line(data, error.start)}, byte {error.start}"
        message = f"`{name}` is not UTF-8: {place} is 0x{data[error.start]:02x}"
        raise SourceError(message, hint="save it as UTF-8") from None


def _line(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1


def _folder(name: str) -> SourceError:
    return SourceError(f"`{name}` is a folder, not a program", hint="name a file in it")


def _device(name: str) -> SourceError:
    return SourceError(f"`{name}` is a device or a pipe, not a file")


def _too_large(name: str) -> SourceError:
    return SourceError(f"`{name}` is larger than {SIZE_LIMIT // 1_000_000} MB, which no program is")


def _reason(error: Exception) -> str:
    return ((error.strerror if isinstance(error, OSError) else None) or str(error)).lower()


def _nearby(path: Path) -> str | None:
    from skillc.diagnostics.suggest import suggest

    try:
        names = [each.name for each in path.parent.iterdir() if each.suffix == ".skill"]
    except OSError:
        return None
    near = path.name + ".skill" if path.name + ".skill" in names else suggest(path.name, names)
    return f"did you mean `{path.with_name(near)}`?" if near else None
