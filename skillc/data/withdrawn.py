"""The sessions that a person withdrew: rows that are made from them are left out of the data.

`skillc sessions withdraw` writes their keys beside the store (`.skillc/sessions.withdrawn.json`) and beside each
compiled skill that holds rules from them (`skills/NAME.quarantine.json`), which travels with the skill.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from skillc.artifact_paths import OUTPUT
from skillc.errors import SkillcError

SESSION = "session"
"""The data field with the key of the session that a row is from."""
BESIDE_STORE = ".withdrawn.json"
QUARANTINE = ".quarantine.json"


def withdrawn_near(folder: Path) -> frozenset[str]:
    """Return the keys of the withdrawn sessions that files of a folder, of its skills or of its parents name.

    Raises:
        SkillcError: one of the files cannot be read.
    """
    return frozenset(key for file in _files(folder.resolve()) for key in read_withdrawn(file))


def _files(folder: Path) -> Iterator[Path]:
    for place in (folder, folder / OUTPUT, folder.with_name(f"{folder.name}.candidate")):
        yield from sorted(place.glob(f"*{QUARANTINE}"))
    for parent in (folder, *folder.parents):
        yield from sorted((parent / ".skillc").glob(f"*{BESIDE_STORE}"))


def read_withdrawn(file: Path) -> tuple[str, ...]:
    """Return the keys in one of the files.

    Raises:
        SkillcError: it cannot be read. A file that is damaged must not pass for an empty one.
    """
    try:
        keys = json.loads(file.read_text(encoding="utf-8"))["withdrawn"]
        if not (isinstance(keys, list) and all(isinstance(key, str) for key in keys)):
            raise ValueError("`withdrawn` is no list of keys")
    except (OSError, ValueError, KeyError, TypeError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else "it is no list of keys"
        raise SkillcError(
            f"the withdrawn sessions in `{file}` cannot be read: {why}",
            hint="restore the file, or withdraw the sessions again",
        ) from problem
    return tuple(keys)
