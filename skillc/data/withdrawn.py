"""The sessions that a person withdrew: rows that are made from them are left out of the data.

`skillc sessions withdraw` writes their keys beside the store (`.skillc/sessions.withdrawn.json`) and beside each
compiled skill that holds rules from them (`skills/NAME.quarantine.json`), which travels with the skill. Of a narrowed
withdrawal (`cited_only`) only the rules that cite the session are quarantined; its rows are left out all the same.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Literal

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


def narrowed_near(folder: Path) -> frozenset[str]:
    """Return those of `withdrawn_near` whose withdrawal is narrowed wherever it is named.

    Raises:
        SkillcError: one of the files cannot be read.
    """
    return narrowed_in(_files(folder.resolve()))


def narrowed_in(files: Iterable[Path]) -> frozenset[str]:
    """Return the sessions whose withdrawal is narrowed in each of the files that names it.

    Raises:
        SkillcError: one of the files cannot be read.
    """
    narrowed, whole = set[str](), set[str]()
    for file in files:
        own = {*read_withdrawn(file, "cited_only")}
        narrowed |= own
        whole |= {*read_withdrawn(file)} - own
    return frozenset(narrowed - whole)


def withdrawn_json(keys: Iterable[str], narrowed: Collection[str]) -> str:
    """Return the content of such a file."""
    value: dict[str, object] = {"format_version": 1, "withdrawn": (every := sorted(keys))}
    if only := [key for key in every if key in narrowed]:
        value["cited_only"] = only
    return json.dumps(value, indent=2) + "\n"


def _files(folder: Path) -> Iterator[Path]:
    for place in (folder, folder / OUTPUT, folder.with_name(f"{folder.name}.candidate")):
        yield from sorted(place.glob(f"*{QUARANTINE}"))
    for parent in (folder, *folder.parents):
        yield from sorted((parent / ".skillc").glob(f"*{BESIDE_STORE}"))


def read_withdrawn(file: Path, name: Literal["withdrawn", "cited_only"] = "withdrawn") -> tuple[str, ...]:
    """Return the keys in one of the files, or those of narrowed withdrawals.

    Raises:
        SkillcError: it cannot be read. A file that is damaged must not pass for an empty one.
    """
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
        keys = value["withdrawn"] if name == "withdrawn" else value.get(name, [])
        if not (isinstance(keys, list) and all(isinstance(key, str) for key in keys)):
            raise ValueError(f"`{name}` is no list of keys")
    except (OSError, ValueError, KeyError, TypeError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else "it is no list of keys"
        raise SkillcError(
            f"the withdrawn sessions in `{file}` cannot be read: {why}",
            hint="restore the file, or withdraw the sessions again",
        ) from problem
    return tuple(keys)
