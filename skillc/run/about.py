"""What a run is of: it tells a user why a changed program, data file or model starts another run."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from skillc.errors import SkillcError
from skillc.files import write_whole
from skillc.run.folder import RunFolder
from skillc.store.run_store import RunStore


@dataclass(frozen=True, slots=True)
class About:
    """One run.

    Attributes:
        program: the program's file name.
        parts: digest of each thing that its decisions depend on, by the name that a user knows it under.
        salt: part of every cache key; empty where earlier replies may be used.
        finished: whether it came to its end.
    """

    program: str
    parts: Mapping[str, str]
    salt: str = ""
    finished: bool = False


def begin(folder: RunFolder, store: RunStore, program: str, parts: Mapping[str, str], *, fresh: bool) -> About:
    """Resumes the run in a folder, or begins it; `fresh` throws away what its store knows.

    Raises:
        SkillcError: the folder cannot be written.
    """
    known = _read(folder.about)
    if fresh:
        store.clear()
        known = About(program, parts, salt=str(time.time_ns()))
    elif known is None or known.finished:
        known = About(program, parts, salt=known.salt if known else "")
    _write(folder, known)
    return known


def changed_since_unfinished(folder: RunFolder, program: str, parts: Mapping[str, str]) -> tuple[str, ...] | None:
    """Which parts differ from the newest run of a program that was left unfinished; None where this run is known."""
    if folder.about.exists():
        return None
    runs = [path for path in (folder.home / "runs").glob("*/run.json") if path != folder.about]
    for path in sorted(runs, key=lambda path: path.stat().st_mtime, reverse=True):
        about = _read(path)
        if about is not None and about.program == program:
            if about.finished:
                return None
            return tuple(name for name, part in parts.items() if about.parts.get(name) != part)
    return None


def finish(folder: RunFolder, about: About) -> None:
    """Notes that the run came to its end.

    Raises:
        SkillcError: the folder cannot be written.
    """
    _write(folder, replace(about, finished=True))


def _write(folder: RunFolder, about: About) -> None:
    try:
        write_whole(folder.about, json.dumps(asdict(about), indent=2, sort_keys=True) + "\n")
    except OSError as problem:
        raise _unwritable(folder, problem) from problem


def _unwritable(folder: RunFolder, problem: OSError) -> SkillcError:
    return SkillcError(f"the run folder `{folder.path}` cannot be written: {problem.strerror}")


def _read(path: Path) -> About | None:
    try:
        told: Any = json.loads(path.read_text(encoding="utf-8"))
        return About(told["program"], told["parts"], told["salt"], told["finished"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
