"""Files in the folder of an installed skill that skillc did not write: they survive what replaces the skill.

The record of an install names the files that skillc wrote. Everything else in the folder is somebody else's: hidden
files, notes, links, folders. A file of somebody else that a new version would overwrite counts as an edit by hand.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from skillc.artifact_paths import SKILL_FILE
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.skill_files import SKIPPED, plain_name, read_folder, with_plain_ends

_JUNK = SKIPPED | {".DS_Store"}


@dataclass(frozen=True, slots=True)
class Present:
    """What is in the folder of an installed skill.

    Attributes:
        ours: content of the files that skillc wrote, edited or not, and of others that a new version would overwrite.
        foreign: paths of everything else; a folder is before its content.
    """

    ours: Mapping[str, bytes]
    foreign: tuple[str, ...]


def look_into(folder: Path, record: Mapping[str, object], brings: Mapping[str, bytes] | None = None) -> Present:
    """Return what is in an installed skill's folder.

    Without a record, a folder with SKILL.md is a skill of somebody else: all of its files that a skill may have count
    as `ours`, so that a command which asks before it replaces them sees them.

    Args:
        folder: of the skill; it exists.
        record: of its install, empty without one.
        brings: files of the version that is to be installed.

    Raises:
        SkillcError: a file cannot be read, or a link is in the place of one that skillc wrote.
    """
    written = {name for key in ("files", "writing", "before") for name in _names(record.get(key))}
    is_a_skill = not written and os.path.lexists(folder / SKILL_FILE)
    ours = read_folder(folder, None if is_a_skill else written)
    try:
        return _present(folder, ours, written, brings or {})
    except OSError as problem:
        raise SkillcError(f"`{problem.filename}` cannot be read: {problem.strerror}") from problem


def carry(folder: Path, target: Path, names: Sequence[str]) -> None:
    """Bring foreign files into another folder of the same disk, where they are missing.

    A file is linked, so that it stays the same one for a process that writes it; where the disk knows no such links,
    it is copied.

    Raises:
        OSError: one cannot be brought there.
    """
    made = []
    for name in names:
        source, place = folder / name, target / name
        if os.path.lexists(place):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            place.symlink_to(source.readlink())
        elif source.is_dir():
            place.mkdir()
            made.append(name)
        else:
            try:
                place.hardlink_to(source)
            except OSError:
                shutil.copy2(source, place)
    for name in reversed(made):
        shutil.copystat(folder / name, target / name)


def are_carried(folder: Path, target: Path, names: Iterable[str]) -> bool:
    """Return whether another folder has these foreign files, as they are."""
    return all(_is_same(folder / name, target / name) for name in names)


def without_junk(foreign: Iterable[str]) -> tuple[str, ...]:
    """Return foreign files without caches, which nobody misses once a skill is removed."""
    return tuple(each for each in foreign if _JUNK.isdisjoint(PurePosixPath(each).parts))


def topmost(foreign: Iterable[str]) -> tuple[str, ...]:
    """Return foreign files and folders without those in foreign folders."""
    names = set(foreign)
    return tuple(sorted(each for each in names if names.isdisjoint(map(str, PurePosixPath(each).parents))))


def _names(digests: object) -> Iterator[str]:
    yield from digests if isinstance(digests, dict) else ()


def _present(folder: Path, ours: dict[str, bytes], written: Collection[str], brings: Mapping[str, bytes]) -> Present:
    # A folder stays one that skillc wrote when its files are gone.
    parents = {str(each) for name in (*ours, *written) for each in PurePosixPath(name).parents}
    brought = {plain_name(name) for name in brings}
    above = {plain_name(str(each)) for name in brings for each in PurePosixPath(name).parents}
    foreign, in_the_way = list[str](), dict[str, bytes]()
    for name, is_folder in _walk(folder):
        if name in ours or (is_folder and name in parents):
            continue
        plain = plain_name(name)
        blocks = plain in above and not is_folder
        if not blocks and brought.isdisjoint([plain, *map(str, PurePosixPath(plain).parents)]):
            foreign.append(name)
        elif not is_folder:
            content = _content(folder / name)
            if name not in brings or with_plain_ends(content) != with_plain_ends(brings[name]):
                in_the_way[name] = content
    return Present({**ours, **in_the_way}, tuple(foreign))


def _walk(folder: Path) -> Iterator[tuple[str, bool]]:
    """Yield the paths below a folder, and whether each is a folder; links are not followed."""

    def fail(problem: OSError) -> None:
        raise problem

    for place, folders, names in os.walk(folder, onerror=fail):
        names += [each for each in folders if Path(place, each).is_symlink()]
        folders[:] = sorted({*folders} - {*names})
        for name in sorted([*folders, *names]):
            yield Path(place, name).relative_to(folder).as_posix(), name in folders


def _content(place: Path) -> bytes:
    """Return the bytes of a file; of a link or a device, a line that describes it."""
    if place.is_symlink():
        return os.fsencode(f"a link to {place.readlink()}\n")
    return place.read_bytes() if place.is_file() else b"neither a file nor a link\n"


def _is_same(one: Path, other: Path) -> bool:
    try:
        if one.is_symlink() or other.is_symlink():
            return one.readlink() == other.readlink()
        if one.is_dir() or one.samefile(other):
            return other.is_dir() == one.is_dir()
        # Copied, since it cannot be linked.
        a, b = one.stat(), other.stat()
    except OSError:
        return False
    return (a.st_size, a.st_mtime_ns) == (b.st_size, b.st_mtime_ns)
