"""Paths as a program writes them: relative, with `/`, the same on every system, and below the folder that is read."""

from __future__ import annotations

import posixpath
import re
import unicodedata

from skillc.errors import SkillcError

_LONGEST = 1000
_LONGEST_PART = 255
_INVISIBLE = ("Cc", "Cf", "Cs", "Zl", "Zp")
_DRIVE = re.compile(r"[A-Za-z]:")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://|(?:file|data|https?):", re.IGNORECASE)
_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}")
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)
_COPY = "copy the file beside the program"


class PathError(SkillcError):
    """A path that is not followed; `code` is the diagnostic's, `instead` the path that was probably meant."""

    def __init__(self, code: str, message: str, *, hint: str | None = None, instead: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.code = code
        self.instead = instead


def followed(written: str, folder: str, what: str = "the program's folder") -> str:
    """The path below a root that is meant by one in a file.

    Args:
        written: as it stands in the file.
        folder: the folder of that file, below the root.
        what: the root, for messages.

    Raises:
        PathError: it leads out of the root, or is no path that means the same everywhere.
    """
    _must_be_text(written)
    if written.startswith("~"):
        message = f"`{written}` starts at a home folder, and a path starts at the file that says it"
        raise PathError("SK102", message, hint=_COPY)
    drive = _DRIVE.match(written) is not None
    if not drive and _ADDRESS.match(written):
        raise PathError("SK102", f"`{written}` is an address, and a program reads files alone", hint=_COPY)
    plain = written.replace("\\", "/")
    path = posixpath.normpath(posixpath.join(folder, plain))
    if drive or plain.startswith("/") or path == ".." or path.startswith("../"):
        raise PathError("SK102", f"`{written}` lies outside {what}", hint=_COPY)
    if "\\" in written:
        raise PathError("SK101", "a path is written with `/`", hint=f'write `"{plain}"`', instead=plain)
    if encoded := _ENCODED.search(written):
        message = f"a path is taken as it is written, and `{encoded[0]}` stands for nothing in it"
        raise PathError("SK101", message, hint="write the character itself")
    for part in path.split("/"):
        _must_be_portable(written, part)
    return path


def _must_be_text(written: str) -> None:
    if not written.strip():
        raise PathError("SK101", "this is no path", hint='write `use "./lab.skill" as lab`')
    for character in written:
        if unicodedata.category(character) in _INVISIBLE:
            message = f"this path holds the character U+{ord(character):04X}, which nobody can see"
            raise PathError("SK101", message, hint="write the path again by hand")
    too_long = any(len(part.encode("utf-8", "replace")) > _LONGEST_PART for part in re.split(r"[/\\]", written))
    if len(written) > _LONGEST or too_long:
        raise PathError("SK101", "this path is longer than a file system takes", hint="give the file a shorter name")


def _must_be_portable(written: str, part: str) -> None:
    """Names that another system reads in another way."""
    if ":" in part:
        message = f"`{written}` holds a `:`, which not every system has in names"
        raise PathError("SK101", message, hint="rename the file")
    if _DEVICE.fullmatch(part):
        raise PathError("SK101", f"`{part}` is a device on Windows", hint="rename the file")
    if part.endswith((" ", ".")) and part not in (".", ".."):
        raise PathError("SK101", f"`{part}` ends in a {'space' if part[-1] == ' ' else 'dot'}", hint="rename the file")
