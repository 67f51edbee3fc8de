"""Session store: one SQLite file with redacted sessions and the reason why each one is set apart."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.sessions.audit import Reason
from skillc.sessions.poison import scan
from skillc.sessions.session import Session, Tokens

FORMAT = 2
"""Of the file, in its `user_version`."""
DEFAULT = Path(".skillc/sessions.db")
"""Where a project keeps its sessions, below its folder."""

_TABLES = """
CREATE TABLE sources (path TEXT PRIMARY KEY, size INTEGER NOT NULL, changed INTEGER NOT NULL);
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, format TEXT NOT NULL, source TEXT NOT NULL, agent TEXT NOT NULL,
    model TEXT NOT NULL, project TEXT NOT NULL, began TEXT, ended TEXT, parent TEXT, ending TEXT NOT NULL,
    continues INTEGER NOT NULL, sent INTEGER NOT NULL, cached INTEGER NOT NULL, received INTEGER NOT NULL, cost REAL,
    turns INTEGER NOT NULL, calls INTEGER NOT NULL, reason TEXT, copy_of TEXT, removed TEXT NOT NULL,
    content BLOB NOT NULL
);
CREATE INDEX by_reason ON sessions (reason);
CREATE TABLE chains (link BLOB NOT NULL, session INTEGER NOT NULL, is_last INTEGER NOT NULL);
CREATE INDEX by_link ON chains (link);
CREATE INDEX chain_of ON chains (session);
"""
# Facts about sessions, by key, since a session that has grown is stored again.
_KNOWLEDGE = """
CREATE TABLE labels (
    session TEXT NOT NULL, skill TEXT NOT NULL, source TEXT NOT NULL, outcome TEXT NOT NULL, certainty REAL NOT NULL,
    note TEXT NOT NULL, at TEXT NOT NULL, PRIMARY KEY (session, skill, source)
);
CREATE TABLE findings (
    session TEXT NOT NULL, kind TEXT NOT NULL, step INTEGER NOT NULL, excerpt TEXT NOT NULL
);
CREATE INDEX findings_of ON findings (session);
CREATE TABLE verdicts (
    session TEXT PRIMARY KEY, word TEXT NOT NULL, person TEXT NOT NULL, why TEXT NOT NULL, at TEXT NOT NULL
);
"""
_COLUMNS = (
    *(
        "key",
        "format",
        "source",
        "agent",
        "model",
        "project",
        "began",
        "ended",
        "parent",
        "ending",
        "continues",
        "sent",
    ),
    *("cached", "received", "cost", "turns", "calls", "reason", "copy_of", "removed", "content"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """A session in the store, without its content.

    Attributes:
        turns: messages of the user, automatic ones left out.
        calls: of tools.
        reason: why it is set apart; None if it is usable.
        copy_of: the key of the session that it is a copy or a beginning of.
        removed: values that were removed, by kind.
    """

    id: int
    key: str
    format: str
    agent: str
    model: str
    project: str
    began: str | None
    turns: int
    calls: int
    tokens: Tokens
    reason: Reason | None
    copy_of: str | None
    removed: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Packed:
    """A session ready to be stored, made where it was read.

    Attributes:
        chain: as `Session.chain` returns it.
        findings: kind, step and excerpt of what the scan found.
    """

    columns: Mapping[str, Any]
    chain: tuple[bytes, ...]
    findings: tuple[tuple[str, int, str], ...] = ()


def pack(
    session: Session,
    reason: Reason | None,
    removed: Mapping[str, int],
    findings: tuple[tuple[str, int, str], ...] = (),
) -> Packed:
    """Return the stored form of a redacted session."""
    steps = session.to_json()
    return Packed(
        {
            "key": session.key,
            "format": session.format,
            "source": session.source,
            "agent": session.agent,
            "model": session.model,
            "project": session.project,
            "began": session.began,
            "ended": session.ended,
            "parent": session.parent,
            "ending": session.end,
            "continues": session.continues,
            "sent": session.tokens.sent,
            "cached": session.tokens.cached,
            "received": session.tokens.received,
            "cost": session.cost,
            "turns": sum(1 for _ in session.by("user")),
            "calls": sum(step[0] == "call" for step in steps["steps"]),
            "reason": reason,
            "copy_of": None,
            "removed": json.dumps(dict(sorted(removed.items()))),
            "content": zlib.compress(json.dumps(steps, ensure_ascii=False).encode(errors="surrogatepass"), 6),
        },
        tuple(session.chain()),
        findings,
    )


class SessionStore:
    """The file with the sessions of a project; `close` it at the end.

    Raises:
        SkillcError: it is no store of sessions, has a newer format, cannot be written, or is in use.
    """

    def __init__(self, path: Path, *, create: bool = False) -> None:
        self.path = path
        if not create and not path.exists():
            raise SkillcError(f"no sessions are stored in `{path}`", hint="import some with `skillc sessions import`")
        try:
            if create:
                path.parent.mkdir(parents=True, exist_ok=True)
                # What agents and users wrote to each other is private.
                path.touch(0o600)
            self._database = sqlite3.connect(path, timeout=30, isolation_level=None)
            self._database.row_factory = sqlite3.Row
            version = self._database.execute("PRAGMA user_version").fetchone()[0]
            if version == 0 and create:
                self._database.executescript(
                    f"PRAGMA journal_mode = WAL; {_TABLES} {_KNOWLEDGE} PRAGMA user_version = {FORMAT};"
                )
            elif version == 1:
                self._migrate()
            elif version != FORMAT:
                raise SkillcError(f"`{path}` is no store of sessions of this version of skillc")
        except (sqlite3.Error, OSError) as problem:
            raise self._trouble(problem) from problem

    def _migrate(self) -> None:
        """Add what format 1 lacks, and scan its sessions."""
        self._database.executescript(f"BEGIN IMMEDIATE; {_KNOWLEDGE}")
        try:
            for row in self._database.execute("SELECT id, key, reason FROM sessions").fetchall():
                found = [(each.kind, each.step, each.excerpt) for each in scan(self.session(row["id"]))]
                self._replace_findings(row["key"], found)
                if found and row["reason"] in (None, "duplicate", "beginning"):
                    self._database.execute("UPDATE sessions SET reason = 'suspect' WHERE id = ?", (row["id"],))
            self._database.execute(f"PRAGMA user_version = {FORMAT}")
            self._database.execute("COMMIT")
        except BaseException:
            self._database.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> SessionStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _trouble(self, problem: Exception) -> SkillcError:
        if "locked" in str(problem):
            return SkillcError(
                f"the store of sessions `{self.path}` is in use by another process",
                hint="run the command again when that has ended, such as an import",
            )
        return SkillcError(f"the store of sessions `{self.path}` can't be used: {str(problem).lower()}")

    def execute(self, query: str, values: Sequence[object] = ()) -> list[sqlite3.Row]:
        """Run one statement for a module of this package and return its rows.

        Raises:
            SkillcError: the file cannot be read or written, or is in use.
        """
        try:
            return self._database.execute(query, values).fetchall()
        except sqlite3.Error as problem:
            raise self._trouble(problem) from problem

    # ---- writing -----------------------------------------------------------------------------------

    def is_known(self, path: Path) -> bool:
        """Return whether a file was imported whole and has not changed since."""
        stat = path.stat()
        query = "SELECT 1 FROM sources WHERE path = ? AND size = ? AND changed = ?"
        return self._database.execute(query, (str(path), stat.st_size, stat.st_mtime_ns)).fetchone() is not None

    def add_source(self, path: Path, size: int, changed: int, sessions: Iterable[Packed]) -> int:
        """Store the sessions of a file in one transaction and return how many are new; known ones are replaced."""
        new = 0
        try:
            self._database.execute("BEGIN IMMEDIATE")
            for packed in sessions:
                new += self._add(packed)
            self._database.execute("INSERT OR REPLACE INTO sources VALUES (?, ?, ?)", (str(path), size, changed))
            self._database.execute("COMMIT")
        except BaseException as problem:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            if isinstance(problem, sqlite3.Error):
                raise self._trouble(problem) from problem
            raise
        return new

    def _add(self, packed: Packed) -> int:
        known = self._database.execute("SELECT id FROM sessions WHERE key = ?", (packed.columns["key"],)).fetchone()
        if known is not None:
            self._database.execute("DELETE FROM chains WHERE session = ?", (known["id"],))
            self._database.execute("DELETE FROM sessions WHERE id = ?", (known["id"],))
        marks = ", ".join("?" * len(_COLUMNS))
        values = [packed.columns[name] for name in _COLUMNS]
        query = f"INSERT INTO sessions ({', '.join(_COLUMNS)}) VALUES ({marks})"
        number = self._database.execute(query, values).lastrowid
        links = [(link, number, link == packed.chain[-1]) for link in packed.chain]
        self._database.executemany("INSERT INTO chains VALUES (?, ?, ?)", links)
        self._replace_findings(packed.columns["key"], packed.findings)
        return known is None

    def _replace_findings(self, key: str, findings: Iterable[tuple[str, int, str]]) -> None:
        """Store what was found in a session; one that was cleared is a suspect again if it has more now."""
        query = "SELECT kind, step, excerpt FROM findings WHERE session = ?"
        known = {tuple(row) for row in self._database.execute(query, (key,))}
        new = set(findings)
        if new == known:
            return
        if new - known:
            self._database.execute("DELETE FROM verdicts WHERE session = ? AND word = 'cleared'", (key,))
        self._database.execute("DELETE FROM findings WHERE session = ?", (key,))
        rows = [(key, *each) for each in sorted(new, key=lambda each: (each[1], each[0]))]
        self._database.executemany("INSERT INTO findings VALUES (?, ?, ?, ?)", rows)

    def find_copies(self) -> None:
        """Set apart usable sessions that are copies or beginnings of others, anew for the whole store.

        Of equal sessions the one that was stored first stays.
        """
        try:
            self._database.executescript(
                """
                BEGIN IMMEDIATE;
                UPDATE sessions SET reason = NULL, copy_of = NULL WHERE reason IN ('duplicate', 'beginning');
                CREATE TEMP TABLE copies AS
                  SELECT mine.session AS session, MAX(NOT other.is_last) AS goes_on,
                         COALESCE(MIN(CASE WHEN NOT other.is_last THEN other.session END), MIN(other.session))
                           AS of_session
                  FROM chains mine JOIN chains other USING (link)
                  JOIN sessions s ON s.id = mine.session JOIN sessions o ON o.id = other.session
                  WHERE mine.is_last AND other.session != mine.session AND s.reason IS NULL AND o.reason IS NULL
                    AND (NOT other.is_last OR other.session < mine.session)
                  GROUP BY mine.session;
                UPDATE sessions SET
                  reason = (SELECT CASE WHEN goes_on THEN 'beginning' ELSE 'duplicate' END
                            FROM copies WHERE session = id),
                  copy_of = (SELECT o.key FROM copies JOIN sessions o ON o.id = of_session WHERE session = sessions.id)
                WHERE id IN (SELECT session FROM copies);
                DROP TABLE copies;
                COMMIT;
                """
            )
        except sqlite3.Error as problem:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise self._trouble(problem) from problem

    # ---- reading -----------------------------------------------------------------------------------

    def rows(self, *, reason: str | None = "", project: str | None = None) -> Iterator[Row]:
        """Yield the sessions by the time they began.

        Args:
            reason: only those that are set apart for it; None for the usable ones, empty for all.
            project: only those whose project contains this text.
        """
        query = """
            SELECT id, key, format, agent, model, project, began, turns, calls, sent, cached, received, reason, copy_of,
                removed
            FROM sessions WHERE (? OR reason IS ?) AND (? IS NULL OR instr(project, ?)) ORDER BY began, id
        """
        for row in self._database.execute(query, (reason == "", reason, project, project)):
            yield _row(row)

    def counts(self) -> Counter[str | None]:
        """Return how many sessions there are by reason, None for usable ones."""
        query = "SELECT reason, COUNT(*) AS number FROM sessions GROUP BY reason"
        return Counter({row["reason"]: row["number"] for row in self._database.execute(query)})

    def removed(self) -> Counter[str]:
        """Return how many values were removed from all sessions, by kind."""
        found: Counter[str] = Counter()
        for row in self._database.execute("SELECT removed FROM sessions WHERE removed != '{}'"):
            found.update(json.loads(row["removed"]))
        return found

    def find(self, name: str) -> Row:
        """Return the session with a number, a key, or the beginning of a key that only one has.

        Raises:
            SkillcError: there is none, or more than one.
        """
        if name.isdigit():
            rows = self._database.execute("SELECT * FROM sessions WHERE id = ?", (int(name),)).fetchall()
        else:
            rows = self._database.execute("SELECT * FROM sessions WHERE key = ?", (name,)).fetchall()
        if not rows:
            like = "SELECT * FROM sessions WHERE instr(key, ?) = 1 OR instr(key, ':' || ?) > 0 LIMIT 2"
            rows = self._database.execute(like, (name, name)).fetchall()
        if not rows:
            raise SkillcError(f"no session `{name}` is stored", hint="list them with `skillc sessions list`")
        if len(rows) > 1:
            raise SkillcError(f"several sessions begin with `{name}`", hint="write more of the key")
        return _row(rows[0])

    def session(self, number: int) -> Session:
        """Return a whole session by its number."""
        row = self._database.execute("SELECT * FROM sessions WHERE id = ?", (number,)).fetchone()
        bare = Session(
            key=row["key"],
            format=row["format"],
            source=row["source"],
            agent=row["agent"],
            model=row["model"],
            project=row["project"],
            began=row["began"],
            ended=row["ended"],
            tokens=Tokens(row["sent"], row["cached"], row["received"]),
            cost=row["cost"],
            parent=row["parent"],
            continues=bool(row["continues"]),
            end=row["ending"],
        )
        return bare.with_content(json.loads(zlib.decompress(row["content"]).decode(errors="surrogatepass")))


def _row(row: sqlite3.Row) -> Row:
    return Row(
        id=row["id"],
        key=row["key"],
        format=row["format"],
        agent=row["agent"],
        model=row["model"],
        project=row["project"],
        began=row["began"],
        turns=row["turns"],
        calls=row["calls"],
        tokens=Tokens(row["sent"], row["cached"], row["received"]),
        reason=row["reason"],
        copy_of=row["copy_of"],
        removed=json.loads(row["removed"]),
    )
