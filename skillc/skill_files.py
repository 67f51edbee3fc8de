"""The files of a skill's folder on disk: read them within limits, and write them."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.text import counted, in_bytes

FILE_LIMIT = 10_000_000
FOLDER_LIMIT = 30_000_000
COUNT_LIMIT = 1_000
SKIPPED = frozenset({"__pycache__", "node_modules"})
"""Folders of caches, which are no part of a skill; neither are hidden files and folders."""

_EXECUTABLE = 0o755


def list_folder(folder: Path, only: Collection[str] | None = None) -> dict[str, Path]:
    """Return the files below a folder by their paths with `/`, without hidden files and caches.

    Args:
        folder: of a skill.
        only: the paths to look at, None for all.

    Raises:
        SkillcError: the folder cannot be read, or contains a link or a device, a name that other systems cannot
            store, two names that differ only in case, or more than the limits of a skill.
    """
    found: dict[str, Path] = {}
    size = 0
    try:
        for file in _walk(folder, only):
            name = file.relative_to(folder).as_posix()
            _check_name(folder, name)
            bytes_ = file.stat().st_size
            size += bytes_
            if bytes_ > FILE_LIMIT:
                raise SkillcError(
                    f"`{file}` has {in_bytes(bytes_)}; a file of a skill may have {in_bytes(FILE_LIMIT)}",
                    hint="shorten it, or keep it outside the skill's folder",
                )
            found[name] = file
            if size > FOLDER_LIMIT or len(found) > COUNT_LIMIT:
                limits = f"{in_bytes(FOLDER_LIMIT)} in {counted(COUNT_LIMIT, 'file')}"
                raise SkillcError(
                    f"`{folder}` has more than a skill may have: {limits}", hint="move files out of the skill's folder"
                )
    except OSError as problem:
        raise SkillcError(f"`{problem.filename}` cannot be read: {problem.strerror}") from problem
    check_distinct(found)
    return found


def read_folder(folder: Path, only: Collection[str] | None = None) -> dict[str, bytes]:
    """Return the contents of the files below a folder, as `list_folder` finds them.

    Raises:
        SkillcError: as `list_folder`, or a file cannot be read.
    """
    try:
        return {name: file.read_bytes() for name, file in list_folder(folder, only).items()}
    except OSError as problem:
        raise SkillcError(f"`{problem.filename}` cannot be read: {problem.strerror}") from problem


def with_plain_ends(content: bytes) -> bytes:
    """Return a file's content with the line ends that it has before git converts them."""
    return content.replace(b"\r\n", b"\n")


def decoded(name: str, content: bytes, encoding: str = "utf-8") -> str:
    """Return the text of a file of a skill.

    Raises:
        SkillcError: it is not UTF-8.
    """
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as problem:
        raise SkillcError(f"`{name}` is not UTF-8: byte {problem.start}", hint="save it as UTF-8") from problem


def _walk(folder: Path, only: Collection[str] | None) -> Iterator[Path]:
    looked_at = only if only is None else {*only, *(str(each) for name in only for each in PurePosixPath(name).parents)}

    def fail(problem: OSError) -> None:
        raise problem

    for place, folders, names in os.walk(folder, onerror=fail):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in SKIPPED)
        for name in sorted([*names, *(each for each in folders if Path(place, each).is_symlink())]):
            file = Path(place, name)
            if name.startswith("."):
                continue
            # A link in the place of a folder that is looked at hides what is.
            if looked_at is not None and file.relative_to(folder).as_posix() not in looked_at:
                continue
            if file.is_symlink() or not file.is_file():
                raise SkillcError(f"`{file}` is not a plain file", hint="replace it by a copy of the file")
            yield file


def _check_name(folder: Path, name: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:
        shown = os.fsencode(name).decode("utf-8", "backslashreplace")
        raise SkillcError(f"the name of `{shown}` in `{folder}` is not UTF-8", hint="rename the file") from None


def check_distinct(names: Iterable[str]) -> None:
    """Refuse paths of which some systems could keep only one.

    Raises:
        SkillcError: two paths differ only in case or in how Unicode composes them, or one is a folder of another.
    """
    problem = collision(names)
    if problem is not None:
        one, other = problem
        raise SkillcError(
            f"`{one}` and `{other}` are one path where case is ignored, as on macOS and Windows",
            hint="rename one of them",
        )


def collision(names: Iterable[str]) -> tuple[str, str] | None:
    """Return two paths that cannot both exist on every system, or None."""
    seen: dict[str, tuple[str, bool, str]] = {}
    for name in names:
        parts = name.split("/")
        for i in range(1, len(parts) + 1):
            path, is_file = "/".join(parts[:i]), i == len(parts)
            known = seen.setdefault(plain_name(path), (path, is_file, name))
            # Only a folder may occur more than once, in one spelling.
            if known[2] != name and (known[0] != path or is_file or known[1]):
                return known[2], name
    return None


def plain_name(path: str) -> str:
    """Return a path in the form in which systems that ignore case compare it."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def write_folder(folder: Path, files: Mapping[str, bytes], *, lasting: bool = True) -> None:
    """Write files below a folder; one that begins with `#!` is executable.

    Args:
        folder: made if it does not exist.
        files: their content by path.
        lasting: whether each is written atomically, and is on the disk when this returns.

    Raises:
        OSError: a file cannot be written.
    """
    for name, content in files.items():
        if lasting:
            write_file(folder / name, content)
            continue
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        if content.startswith(b"#!"):
            place.chmod(_EXECUTABLE)


def write_file(place: Path, content: bytes) -> None:
    """Write one file of a skill atomically, with its folders.

    Raises:
        OSError: it cannot be written.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(place, content, mode=_EXECUTABLE if content.startswith(b"#!") else None)


def remove_files(folder: Path, names: Iterable[str]) -> None:
    """Remove files below a folder, and its subfolders that are then empty.

    Raises:
        OSError: a file cannot be removed.
    """
    for name in names:
        place = folder / name
        place.unlink(missing_ok=True)
        for parent in place.parents:
            if parent == folder or not parent.is_relative_to(folder) or not parent.is_dir() or any(parent.iterdir()):
                break
            parent.rmdir()
