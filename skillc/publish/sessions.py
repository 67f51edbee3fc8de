"""Find the sessions behind the data of a compiled skill, and check whether all are still usable."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from skillc.artifact_paths import ArtifactPaths
from skillc.artifacts.owner import program_of
from skillc.data.problems import Problems
from skillc.data.read import read_rows
from skillc.errors import SkillcError
from skillc.frontend import plan_file
from skillc.plan.lock import Lock, read_lock
from skillc.sessions.examples import request_of
from skillc.sessions.likeness import cluster
from skillc.sessions.store import SessionStore

_STORE = ".skillc/sessions.db"
_FIELD = "session"
NIGHTS_SUFFIX = ".nights.jsonl"
"""Suffix of the file with the rows that `skillc evolve` adds from new sessions."""
UNKNOWN = "unknown"
"""Replaces the keys if the program names sessions and its data cannot be read here."""


def sessions_behind(paths: ArtifactPaths) -> tuple[str, ...]:
    """Return the keys of the sessions in the data of a skill's program and of its nights, in order.

    It is empty if the data has no field `session` and there were no nights.
    A program or data that cannot be read has `UNKNOWN` sessions, because an absent file must not pass for a clean one.
    A skill without a lock was not compiled, and has none.
    """
    try:
        lock = read_lock(paths.lock) if paths.lock.exists() else None
        if lock is None:
            return ()
        program = program_of(paths, lock)
        if program is None:
            return (UNKNOWN,)
        data = plan_file(program, complete=False).plan.data
        nights = program.with_name(f"{program.stem}{NIGHTS_SUFFIX}")
        names = [nights.name] if nights.exists() and nights.stat().st_size else list[str | None]()
        if any(each.name == _FIELD for each in data.fields):
            names += [data.source, data.train, data.validation, data.test]
        keys = dict[str, None]()
        for name in names:
            if name is not None:
                for row in read_rows(program.parent / name, name, Problems()):
                    keys |= {key: None} if isinstance(key := row.values.get(_FIELD), str) else {}
    except (SkillcError, OSError):
        return (UNKNOWN,)
    return tuple(keys)


def thin_rules(project: Path, lock: Lock, support: int) -> int:
    """Return how many rules from sessions cite fewer than so many independent sessions.

    Sessions with nearly the same request count as one. A rule whose author named no case cites none: it may be from
    a single text among all that was read.

    Raises:
        SkillcError: the store cannot be read.
    """
    if support <= 1 or not lock.sessions:
        return 0
    cited = {key: lock.cited.get(key, ()) for key in lock.sessions}
    wanted = sorted({each for keys in cited.values() for each in keys})
    with SessionStore(project / _STORE) as opened:
        alike = cluster((key, request_of(opened.session(opened.find(key).id))) for key in wanted).of
    return sum(len({alike[each] for each in keys}) < support for keys in cited.values())


def are_cleared(project: Path, keys: Collection[str]) -> bool:
    """Return whether all sessions are in the project's store and usable: neither suspect nor withdrawn.

    Raises:
        SkillcError: the store cannot be read.
    """
    store = project / _STORE
    if not store.exists():
        return False
    with SessionStore(store) as opened:
        return set(keys) <= {row.key for row in opened.rows(reason=None)}
