"""The programs that a command line names: files as they are, and every program below a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from skillc.errors import SkillcError

SUFFIX = ".skill"


def programs(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Each file once, in the order given; in place of a folder all `.skill` files below it, by name.

    Hidden folders, links to folders and `node_modules` are not entered. A file that is named is taken whatever its
    suffix, and whether or not it is there.

    Raises:
        SkillcError: a folder can't be read, or holds no program.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if not _is_folder(path):
            found[path] = None
            continue
        below = tuple(_below(path))
        if not below:
            raise SkillcError(f"no program lies in the folder `{path}`", hint=f"programs end in `{SUFFIX}`")
        found.update(dict.fromkeys(below))
    return tuple(found)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        # A folder above may not be entered: whoever opens the path says so.
        return False


def _below(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder, onerror=_refuse):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
        for name in sorted(files):
            # `._name.skill` is what another system leaves beside a file.
            if name.endswith(SUFFIX) and not name.startswith("."):
                yield Path(place) / name


def _refuse(problem: OSError) -> None:
    reason = (problem.strerror or str(problem)).lower()
    raise SkillcError(f"the folder `{problem.filename}` can't be read: {reason}")
