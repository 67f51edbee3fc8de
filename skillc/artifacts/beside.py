"""What skillc keeps beside an installed skill: the record of its install, and copies while it is replaced or removed.

The record `.NAME.skillc.json` names the files that skillc wrote, by digest: `files` of the installed version; while it
is replaced also `writing` of the new one and `before` of what is replaced. The copies are `.NAME.PID.new`, the skill
before it is moved into place, `.NAME.PID.old`, what it replaces, and `.NAME.PID.gone`, what is removed. A kill can
leave copies, and a record of two versions; `recover_folder` ends both.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from types import ModuleType

from skillc.artifacts.foreign import Present, are_carried, carry, look_into
from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.skill_files import with_plain_ends

# Windows locks no folders.
_fcntl: ModuleType | None = None
with suppress(ImportError):
    import fcntl

    _fcntl = fcntl

# Seconds after which an unfinished copy is considered abandoned, where no lock tells whether a process works on it.
_ABANDONED = 3600.0
_WAIT = 60.0
_PULSE = 0.05


def beside(folder: Path, what: str) -> Path:
    """Return a hidden path of this process beside a skill's folder."""
    return folder.with_name(f".{folder.name}.{os.getpid()}.{what}")


def free_beside(folder: Path, what: str) -> Path:
    """Return a hidden path beside a skill's folder that does not exist: an earlier process can have had this number."""
    paths = (folder.with_name(f".{folder.name}.{number}.{what}") for number in count(os.getpid()))
    return next(each for each in paths if not os.path.lexists(each))


def copies(folder: Path, what: str) -> list[Path]:
    """Return the paths of this form that exist, of any process. Others, such as `.NAME.mine.old`, are the user's."""
    form = re.compile(rf"\.{re.escape(folder.name)}\.\d+\.{what}")
    if not folder.parent.is_dir():
        return []
    return sorted(each for each in folder.parent.iterdir() if form.fullmatch(each.name) and not each.is_symlink())


def digests(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the SHA-256 of each file, the same after git has converted line ends."""
    return {name: hashlib.sha256(with_plain_ends(content)).hexdigest() for name, content in files.items()}


# ---- the record -----------------------------------------------------------------------------------


def record_path(folder: Path) -> Path:
    """Return the record beside an installed skill."""
    return folder.with_name(f".{folder.name}.skillc.json")


def read_record(folder: Path) -> Mapping[str, object]:
    """Return the record beside an installed skill; empty without one."""
    try:
        record = json.loads(record_path(folder).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def write_record(folder: Path, record: Mapping[str, object]) -> None:
    """Write the record beside an installed skill.

    Raises:
        OSError: it cannot be written.
    """
    write_atomically(record_path(folder), json.dumps(record, indent=2, sort_keys=True) + "\n")


# ---- one process at a time ------------------------------------------------------------------------


@contextmanager
def locked(places: Iterable[Path]) -> Iterator[bool]:
    """Let one process at a time change the skills in these folders, those that exist.

    It yields whether that is so: Windows and some network disks have no such locks.

    Raises:
        SkillcError: another process holds one of them.
    """
    held, alone = list[int](), _fcntl is not None
    try:
        for place in sorted({each.resolve() for each in places if each.is_dir()}) if alone else ():
            try:
                held.append(os.open(place, os.O_RDONLY))
            except PermissionError:
                alone = False
            else:
                alone = _lock(held[-1], place) and alone
        yield alone
    finally:
        for each in held:
            os.close(each)


def _lock(descriptor: int, place: Path) -> bool:
    assert _fcntl is not None
    until = time.monotonic() + _WAIT
    while True:
        try:
            _fcntl.flock(descriptor, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > until:
                problem = f"another process changes the skills in `{place}`"
                raise SkillcError(problem, hint="try again when it has ended") from None
            time.sleep(_PULSE)
        except OSError:
            return False


# ---- after a kill ---------------------------------------------------------------------------------


def recover_folder(folder: Path, *, alone: bool) -> None:
    """Recover from kills: restore a skill whose place is empty, remove the copies beside it, and settle its record.

    A copy that contains something else than what the record names is kept.

    Args:
        folder: of the skill; it need not exist.
        alone: whether its place is `locked`; if not, only copies of an hour ago are known to be abandoned.

    Raises:
        SkillcError: something there cannot be read or written.
    """
    if not folder.parent.is_dir() or folder.is_symlink():
        return
    record = read_record(folder)
    # The new version was in its place, so the copy of the old one may be half removed.
    is_replaced = "before" in record and "writing" not in record
    try:
        olds = copies(folder, "old")
        if olds and not is_replaced and not folder.exists():
            whole = (each for each in olds if _is_whole(each, record))
            next(whole, olds[0]).rename(folder)
        for old in copies(folder, "old"):
            _remove_old(old, folder, record)
        for new in (*copies(folder, "new"), *copies(record_path(folder), "new")):
            if alone or time.time() - new.stat().st_mtime > _ABANDONED:
                shutil.rmtree(new) if new.is_dir() else new.unlink()
        if not copies(folder, "old"):
            _settle(folder, record)
    except OSError as problem:
        raise SkillcError(f"`{problem.filename}` cannot be written: {problem.strerror}") from problem


def _is_whole(old: Path, record: Mapping[str, object]) -> bool:
    return digests(look_into(old, record).ours) in (record.get("before"), record.get("files"))


def _remove_old(old: Path, folder: Path, record: Mapping[str, object]) -> None:
    """Remove what a new version has replaced, when the skill's folder has all that skillc did not write."""
    found = look_into(old, record)
    if not _is_written(found, record):
        return
    try:
        carry(old, folder, found.foreign)
    except (FileExistsError, NotADirectoryError):
        # Somebody has put a file in the place of a folder.
        return
    if are_carried(old, folder, found.foreign):
        shutil.rmtree(old, ignore_errors=True)


def _is_written(found: Present, record: Mapping[str, object]) -> bool:
    """Return whether a record has each file with its digest; of a copy that was being removed, files are missing."""
    known = [each for key in ("files", "writing", "before") if isinstance(each := record.get(key), dict)]
    return bool(known) and all(
        any(each.get(name) == digest for each in known) for name, digest in digests(found.ours).items()
    )


def _settle(folder: Path, record: Mapping[str, object]) -> None:
    """Write the record of the version that is there: the other's files may be somebody's from now on."""
    if "writing" not in record and "before" not in record:
        return
    now, files = digests(look_into(folder, record).ours) if folder.is_dir() else {}, record.get("files")
    if "writing" in record:
        if now == record["writing"]:
            files = now
        elif now and now not in (files, record.get("before")):
            # It was changed since; either version may have brought its files.
            return
    rest = {key: value for key, value in record.items() if key not in ("files", "writing", "before")}
    if files:
        write_record(folder, {**rest, "files": files})
    else:
        record_path(folder).unlink(missing_ok=True)
