"""Read program files: UTF-8 text only, below one folder only, under paths that mean the same on every system."""

from __future__ import annotations

import errno
import os
import posixpath
import re
import stat
import unicodedata
from pathlib import Path

from skillc.dataclass import dataclass
from skillc.diagnostics.suggest import spelling_hint, suggest
from skillc.errors import SkillcError
from skillc.syntax.source import Source

SIZE_LIMIT = 10_000_000
"""Maximum size of a program, in bytes."""

# A zip with files, and an empty one.
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
_TEXT_HINT = 'import its sections in a program: `use "./{file}" as today`'
_LOCK_HINT = "`skillc check --locked` compares a program with the lock of its skill"
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
"""Files that users name instead of a program: their kind, and a hint."""
_WIDE = re.compile(rb"(?:\0[^\0]){3}|(?:[^\0]\0){3}")


class SourceError(SkillcError):
    """A file that can't be read as a program."""


def read_source(path: Path) -> Source:
    """Read a file, without its byte-order mark.

    Raises:
        SourceError: the file does not exist, can't be read, or is not text.
    """
    return Source(str(path), decode(str(path), _read_bytes(path)))


def read_main(path: Path) -> Source:
    """Read the program that a command line names.

    Raises:
        SourceError: as `read_source`, or its name is that of another kind of file.
    """
    return Source(str(path), decode(str(path), read_program(path)))


def read_program(path: Path) -> bytes:
    """Read the bytes of a program.

    Raises:
        SourceError: the file does not exist, can't be read, or its name is that of another kind of file.
    """
    data = _read_bytes(path)
    other = _OTHER_NAMES.get(path.name) or _OTHER_SUFFIXES.get(path.suffix.lower())
    if other is None:
        return data
    what, hint = other
    raise SourceError(f"`{path}` is {what}, not a program", hint=hint.format(name=path, file=path.name))


def write_source(path: Path, text: str, *, keep_mark: bool = True) -> None:
    """Replace a file atomically; keep its mode, and with `keep_mark` its byte-order mark.

    Raises:
        SourceError: the file can't be written.
    """
    from skillc.files import write_atomically

    try:
        place = path.resolve(strict=True)
        mode = stat.S_IMODE(place.stat().st_mode)
        if not os.access(place, os.W_OK):
            raise SourceError(f"`{path}` may not be written", hint="check its permissions")
        with place.open("rb") as file:
            marked = keep_mark and file.read(3) == b"\xef\xbb\xbf"
        write_atomically(place, "\ufeff" + text if marked else text, mode=mode)
    except OSError as error:
        raise SourceError(f"`{path}` can't be written: {_reason(error)}") from None


def _read_bytes(path: Path) -> bytes:
    name = str(path)
    try:
        # Without O_NONBLOCK, opening a pipe waits for a writer.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise SourceError(f"there is no file `{name}`", hint=_nearby(path)) from None
    except PermissionError:
        if path.is_dir():
            raise _folder_error(name) from None
        raise SourceError(f"`{name}` may not be read", hint="check its permissions") from None
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) == errno.ENXIO:
            raise _device_error(name) from None
        raise SourceError(f"`{name}` can't be read: {_reason(error)}") from None
    state = os.fstat(handle)
    if not stat.S_ISREG(state.st_mode):
        os.close(handle)
        folder = stat.S_ISDIR(state.st_mode)
        raise _folder_error(name) if folder else _device_error(name)
    with os.fdopen(handle, "rb") as file:
        try:
            data = file.read(SIZE_LIMIT + 1)
        except OSError as error:
            raise SourceError(f"`{name}` can't be read: {_reason(error)}") from None
    if len(data) > SIZE_LIMIT:
        raise SourceError(f"`{name}` is larger than {SIZE_LIMIT // 1_000_000} MB, the limit for programs")
    return data


def decode(name: str, data: bytes) -> str:
    """Decode a program, without its byte-order mark.

    Raises:
        SourceError: it is not text, or not UTF-8.
    """
    if data.startswith(_ZIPS):
        hint = 'unpack it, and import its sections with `use "./SKILL.md" as today`'
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
        raise SourceError(f"`{name}` is not text: line {_line(data, zero)} contains a zero byte (byte {zero})")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        place = f"line {_line(data, error.start)}, byte {error.start}"
        message = f"`{name}` is not UTF-8: {place} is 0x{data[error.start]:02x}"
        raise SourceError(message, hint="save it as UTF-8") from None


def _line(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1


def _folder_error(name: str) -> SourceError:
    return SourceError(f"`{name}` is a folder, not a program", hint="name a file in it")


def _device_error(name: str) -> SourceError:
    return SourceError(f"`{name}` is a device or a pipe, not a file")


def _reason(error: Exception) -> str:
    return ((error.strerror if isinstance(error, OSError) else None) or str(error)).lower()


def _nearby(path: Path) -> str | None:
    try:
        names = [each.name for each in path.parent.iterdir() if each.suffix == ".skill"]
    except OSError:
        return None
    near = path.name + ".skill" if path.name + ".skill" in names else suggest(path.name, names)
    return f"did you mean `{path.with_name(near)}`?" if near else None


# ---- one folder -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder outside of which no file can be read, not even through links.

    Attributes:
        place: its path.
        what: its name in messages.
    """

    place: Path
    what: str = "the program's folder"

    def source(self, path: str) -> Source:
        """Read a file by its path relative to the folder.

        Raises:
            SkillcError: the file can't be read, or a link leads out of the folder.
        """
        return read_source(self.file(path))

    def file(self, path: str) -> Path:
        """Return the path of an existing file.

        Raises:
            SkillcError: the file does not exist under exactly this name, or a link leads out of the folder.
        """
        place = self.inside(path)
        try:
            missing = not place.exists()
        except (OSError, ValueError) as error:
            raise SkillcError(f"`{path}` can't be read: {_reason(error)}") from None
        if missing:
            raise SkillcError(f"there is no file `{path}`", hint=self._near(place))
        self._check_case(path)
        return place

    def inside(self, path: str) -> Path:
        """Return the path that a file would have.

        Raises:
            SkillcError: a link leads out of the folder.
        """
        place = self.place / path
        try:
            outside = not place.resolve().is_relative_to(self.place.resolve())
        except RuntimeError:
            raise SkillcError(f"`{path}` can't be read: its links form a cycle") from None
        except (OSError, ValueError) as error:
            raise SkillcError(f"`{path}` can't be read: {_reason(error)}") from None
        if outside:
            raise SkillcError(f"`{path}` is a link that leads out of {self.what}", hint="copy the file instead")
        return place

    def _check_case(self, path: str) -> None:
        """Reject a path with another case than the file, also on file systems that ignore case."""
        place = self.place
        for part in path.split("/"):
            try:
                names = {unicodedata.normalize("NFC", each.name) for each in place.iterdir()}
            except OSError:
                return
            if part != ".." and unicodedata.normalize("NFC", part) not in names:
                right = next((name for name in sorted(names) if name.casefold() == part.casefold()), None)
                hint = f"write `{right}`, the name of the file" if right else None
                raise SkillcError(f"there is no file `{path}`", hint=hint)
            place = place / part

    def _near(self, place: Path) -> str | None:
        try:
            names = sorted(each.name for each in place.parent.iterdir() if each.suffix in (".skill", ".md"))
        except OSError:
            return None
        return spelling_hint(place.name, names)


# ---- paths in programs ------------------------------------------------------------------------------

_LONGEST = 1000
_LONGEST_PART = 255
_INVISIBLE = ("Cc", "Cf", "Cs", "Zl", "Zp")
_DRIVE = re.compile(r"[A-Za-z]:")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://|(?:file|data|https?):", re.IGNORECASE)
_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}")
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)
_COPY = "copy the file beside the program"


class PathError(SkillcError):
    """A rejected path; `code` is the code of its diagnostic, `instead` the path that was probably meant."""

    def __init__(self, code: str, message: str, *, hint: str | None = None, instead: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.code = code
        self.instead = instead


def resolve_path(written: str, folder: str, what: str = "the program's folder") -> str:
    """Resolve a path in a file to a path below a root.

    Args:
        written: the path in the file.
        folder: the folder of that file, below the root.
        what: the name of the root in messages.

    Raises:
        PathError: the path leads out of the root, or is not portable.
    """
    _check_characters(written)
    if written.startswith("~"):
        message = f"`{written}` starts at a home folder; a path is relative to its file"
        raise PathError("SK102", message, hint=_COPY)
    drive = _DRIVE.match(written) is not None
    if not drive and _ADDRESS.match(written):
        raise PathError("SK102", f"`{written}` is an address, not a file", hint=_COPY)
    plain = written.replace("\\", "/")
    path = posixpath.normpath(posixpath.join(folder, plain))
    if drive or plain.startswith("/") or path == ".." or path.startswith("../"):
        raise PathError("SK102", f"`{written}` is outside {what}", hint=_COPY)
    if "\\" in written:
        raise PathError("SK101", "the separator of paths is `/`", hint=f'write `"{plain}"`', instead=plain)
    if encoded := _ENCODED.search(written):
        message = f"paths are not percent-encoded, but this one contains `{encoded[0]}`"
        raise PathError("SK101", message, hint="write the character itself")
    for part in path.split("/"):
        _check_portable(written, part)
    return path


def _check_characters(written: str) -> None:
    if not written.strip():
        raise PathError("SK101", "empty path", hint='write `use "./lab.skill" as lab`')
    for character in written:
        if unicodedata.category(character) in _INVISIBLE:
            message = f"the path contains the invisible character U+{ord(character):04X}"
            raise PathError("SK101", message, hint="type the path again")
    too_long = any(len(part.encode("utf-8", "replace")) > _LONGEST_PART for part in re.split(r"[/\\]", written))
    if len(written) > _LONGEST or too_long:
        raise PathError("SK101", "the path is too long for file systems", hint="give the file a shorter name")


def _check_portable(written: str, part: str) -> None:
    """Reject a name that another operating system interprets differently."""
    if ":" in part:
        message = f"`{written}` contains a `:`, which not every system allows in names"
        raise PathError("SK101", message, hint="rename the file")
    if _DEVICE.fullmatch(part):
        raise PathError("SK101", f"`{part}` is a device on Windows", hint="rename the file")
    if part.endswith((" ", ".")) and part not in (".", ".."):
        raise PathError("SK101", f"`{part}` ends in a {'space' if part[-1] == ' ' else 'dot'}", hint="rename the file")
