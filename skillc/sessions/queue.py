"""Labelling queue of a person: order of the sessions, decisions, drafts and undo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from skillc.dataclass import dataclass
from skillc.sessions.labels import PERSON, Label, Outcome, add_labels, labels_of
from skillc.sessions.session import Session
from skillc.sessions.store import SessionStore

State = Literal["disputed", "unlabelled", "agreed", "decided"]
"""Sources disagree or are unclear, there are none, all agree, or the person has decided."""
STATES: tuple[State, ...] = ("disputed", "unlabelled", "agreed", "decided")

SEEN = "after seeing the other sources"
"""In the note of a label that the person gave after looking at the other labels."""

_DRAFTS = """
CREATE TABLE IF NOT EXISTS drafts (
    session TEXT NOT NULL, person TEXT NOT NULL, skill TEXT NOT NULL, note TEXT NOT NULL, PRIMARY KEY (session, person)
)
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """A usable session in the queue.

    Attributes:
        state: when the queue was made.
        mine: the person's label, None before the decision.
    """

    key: str
    project: str
    began: str | None
    turns: int
    calls: int
    state: State
    mine: Label | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """The skill and the note of a session that the person has not decided yet; `skill` is None if none is chosen."""

    skill: str | None = None
    note: str = ""


def queue_of(store: SessionStore, person: str) -> list[Entry]:
    """Return the usable sessions, the most useful to label first: disputed, unlabelled, agreed, then decided ones.

    Raises:
        SkillcError: the store cannot be read.
    """
    source = f"{PERSON}:{person}"
    mine: dict[str, Label] = {}
    others: dict[str, set[Outcome]] = {}
    for label in labels_of(store):
        if label.source == source:
            mine.setdefault(label.session, label)
        else:
            others.setdefault(label.session, set()).add(label.outcome)
    # Without the contents, which may be large.
    rows = store.execute(
        "SELECT key, project, began, turns, calls FROM sessions WHERE reason IS NULL ORDER BY began, id"
    )
    entries = [
        Entry(
            row["key"],
            row["project"],
            row["began"],
            row["turns"],
            row["calls"],
            "decided" if row["key"] in mine else _state(others.get(row["key"], set())),
            mine.get(row["key"]),
        )
        for row in rows
    ]
    return sorted(entries, key=lambda each: STATES.index(each.state))


def _state(outcomes: set[Outcome]) -> State:
    if not outcomes:
        return "unlabelled"
    return "agreed" if len(outcomes) == 1 and "unclear" not in outcomes else "disputed"


def whole_session(store: SessionStore, key: str) -> Session:
    """Return a session by its key; its number changes when it grows.

    Raises:
        SkillcError: it is not stored any more.
    """
    return store.session(store.find(key).id)


def findings_of(store: SessionStore, key: str) -> Mapping[int, Sequence[tuple[str, str]]]:
    """Return kind and excerpt of what the scan found, by step."""
    found: dict[int, list[tuple[str, str]]] = {}
    for row in store.execute("SELECT kind, step, excerpt FROM findings WHERE session = ? ORDER BY step, kind", (key,)):
        found.setdefault(row["step"], []).append((row["kind"], row["excerpt"]))
    return found


# ---- what the person writes ------------------------------------------------------------------------


def my_label(store: SessionStore, key: str, person: str) -> Label | None:
    """Return the person's label of a session; the first one if several skills have one."""
    return next((each for each in labels_of(store, session=key) if each.source == f"{PERSON}:{person}"), None)


def other_labels(store: SessionStore, key: str, person: str) -> list[Label]:
    """Return the labels of all other sources for a session."""
    return [each for each in labels_of(store, session=key) if each.source != f"{PERSON}:{person}"]


def replace_label(store: SessionStore, before: Label | None, after: Label | None) -> None:
    """Store a label in place of another one, in one transaction.

    Raises:
        SkillcError: the store cannot be written; then nothing has changed.
    """
    store.execute("BEGIN IMMEDIATE")
    try:
        if before is not None:
            store.execute(
                "DELETE FROM labels WHERE session = ? AND skill = ? AND source = ?",
                (before.session, before.skill, before.source),
            )
        if after is not None:
            add_labels(store, [after])
        store.execute("COMMIT")
    except BaseException:
        store.execute("ROLLBACK")
        raise


def draft_of(store: SessionStore, key: str, person: str) -> Draft:
    """Return the skill and note that the person chose before deciding."""
    if not store.execute("SELECT 1 FROM sqlite_master WHERE name = 'drafts'"):
        return Draft()
    rows = store.execute("SELECT skill, note FROM drafts WHERE session = ? AND person = ?", (key, person))
    return Draft(rows[0]["skill"][1:] if rows[0]["skill"] else None, rows[0]["note"]) if rows else Draft()


def keep_draft(store: SessionStore, key: str, person: str, draft: Draft) -> None:
    """Store the skill and note of a session that is not decided yet."""
    store.execute(_DRAFTS)
    # A chosen skill is stored after `=`, since no skill is a choice too.
    skill = "" if draft.skill is None else f"={draft.skill}"
    store.execute("INSERT OR REPLACE INTO drafts VALUES (?, ?, ?, ?)", (key, person, skill, draft.note))
