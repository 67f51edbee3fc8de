"""What people decide on sessions: a suspect is cleared, or a session is withdrawn, and why.

Nothing may be learned from a withdrawn session, nor from its copies. A cleared one is a suspect again as soon as the
scan finds more in it than the person saw.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, cast

from skillc.data.withdrawn import BESIDE_STORE, withdrawn_json
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.sessions.audit import reason_apart
from skillc.sessions.poison import Finding
from skillc.sessions.store import Row, SessionStore

Word = Literal["cleared", "withdrawn"]
_NO_REASON = SkillcError("no reason is given", hint="add `--why`, it is kept with the session")
_NARROWED = "CREATE TABLE IF NOT EXISTS narrowed (session TEXT PRIMARY KEY)"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a person decided on a session.

    Attributes:
        session: its key.
        at: when, as ISO 8601 in UTC.
    """

    session: str
    word: Word
    person: str
    why: str
    at: str


@dataclass(frozen=True, slots=True)
class Suspect:
    """A session that is set apart by the scan, with what was found."""

    row: Row
    findings: tuple[Finding, ...]


def findings_of(store: SessionStore, key: str) -> tuple[Finding, ...]:
    """Return what the scan found in a session."""
    query = "SELECT kind, step, excerpt FROM findings WHERE session = ? ORDER BY step, rowid"
    return tuple(Finding(*row) for row in store.execute(query, (key,)))


def suspects(store: SessionStore) -> Iterator[Suspect]:
    """Yield the sessions that wait for a person, by the time they began."""
    for row in list(store.rows(reason="suspect")):
        yield Suspect(row, findings_of(store, row.key))


def verdicts(store: SessionStore, word: Word | None = None) -> Mapping[str, Verdict]:
    """Return the verdicts, or those of one word, by the key of their session."""
    query = "SELECT * FROM verdicts WHERE ? IS NULL OR word = ? ORDER BY at, session"
    rows = store.execute(query, (word, word))
    return {
        row["session"]: Verdict(row["session"], cast(Word, row["word"]), row["person"], row["why"], row["at"])
        for row in rows
    }


def clear(store: SessionStore, name: str, person: str, why: str) -> Row:
    """Declare a suspect harmless, or take a withdrawal back, and return the session as it is then.

    Raises:
        SkillcError: there is no such session, it is neither suspect nor withdrawn, or no reason is given.
    """
    row = store.find(name)
    known = verdicts(store).get(row.key)
    if row.reason not in ("suspect", "withdrawn"):
        done = " any more: it was cleared" if known is not None and known.word == "cleared" else ""
        raise SkillcError(
            f"session `{row.key}` is neither suspect nor withdrawn{done}",
            hint="list them with `skillc sessions suspects`",
        )
    _decide(store, [row.key], "cleared", person, why)
    return store.find(row.key)


def withdraw(
    store: SessionStore, names: Sequence[str], person: str, why: str, *, cited_only: bool = False
) -> tuple[str, ...]:
    """Withdraw sessions with their copies, and return the keys of all of them: the named ones first.

    With `cited_only` only the rules that cite them are quarantined, not those whose author could read them.

    Raises:
        SkillcError: one of them is not stored, or no reason is given; nothing is withdrawn then.
    """
    keys = list(dict.fromkeys(store.find(name).key for name in names))
    keys += [key for key in _copies(store, keys) if key not in keys]
    if not why.strip():
        raise _NO_REASON
    store.execute(_NARROWED)
    for key in keys:
        store.execute("DELETE FROM narrowed WHERE session = ?", (key,))
        if cited_only:
            store.execute("INSERT INTO narrowed VALUES (?)", (key,))
    _decide(store, keys, "withdrawn", person, why)
    return tuple(keys)


def narrowed(store: SessionStore) -> frozenset[str]:
    """Return the keys of the sessions that are withdrawn only for rules that cite them."""
    store.execute(_NARROWED)
    return frozenset(row["session"] for row in store.execute("SELECT session FROM narrowed"))


def _copies(store: SessionStore, keys: Iterable[str]) -> list[str]:
    """Return the keys of the sessions that share all their messages, or the beginning, with others."""
    pairs = [(row[0], row[1]) for row in store.execute("SELECT key, copy_of FROM sessions WHERE copy_of IS NOT NULL")]
    found = dict.fromkeys(keys)
    size = 0
    while size != len(found):
        size = len(found)
        for one, other in pairs:
            if one in found or other in found:
                found |= {one: None, other: None}
    return list(found)


def _decide(store: SessionStore, keys: Iterable[str], word: Word, person: str, why: str) -> None:
    if not why.strip():
        raise _NO_REASON
    now = datetime.now(UTC).isoformat(timespec="seconds")
    store.execute("BEGIN IMMEDIATE")
    try:
        for key in keys:
            store.execute(
                "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?, ?)", (key, word, person, why.strip(), now)
            )
        store.execute("COMMIT")
    except BaseException:
        store.execute("ROLLBACK")
        raise
    apply_verdicts(store)


def apply_verdicts(store: SessionStore) -> None:
    """Set sessions apart by the verdicts, and find copies among the others, anew for the whole store."""
    withdrawn = "SELECT session FROM verdicts WHERE word = 'withdrawn'"
    store.execute(f"UPDATE sessions SET reason = 'withdrawn' WHERE key IN ({withdrawn})")
    store.execute(
        """
        UPDATE sessions SET reason = NULL, copy_of = NULL
        WHERE reason = 'suspect' AND key IN (SELECT session FROM verdicts WHERE word = 'cleared')
        """
    )
    back = f"SELECT id, key FROM sessions WHERE reason = 'withdrawn' AND key NOT IN ({withdrawn})"
    cleared = verdicts(store, "cleared")
    for row in store.execute(back):
        reason = reason_apart(store.session(row["id"]))
        if reason is None and row["key"] not in cleared and findings_of(store, row["key"]):
            reason = "suspect"
        store.execute("UPDATE sessions SET reason = ?, copy_of = NULL WHERE id = ?", (reason, row["id"]))
    store.find_copies()
    _write_withdrawn(store)


def _write_withdrawn(store: SessionStore) -> None:
    """Write the keys of the withdrawn sessions beside the store, for those who read data without opening it."""
    file = store.path.with_name(f"{store.path.stem}{BESIDE_STORE}")
    keys = sorted(verdicts(store, "withdrawn"))
    if not keys and not file.exists():
        return
    try:
        write_atomically(file, withdrawn_json(keys, narrowed(store)))
    except OSError as problem:
        raise SkillcError(f"`{file}` cannot be written: {problem.strerror}") from problem
