"""Label the stored sessions by signals, with the certainties that a person's labels have measured."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping

from skillc.dataclass import dataclass
from skillc.sessions.agreement import Agreements, agreements_of, calibrated
from skillc.sessions.examples import request_of
from skillc.sessions.exercised import skill_of
from skillc.sessions.labels import PERSON, SIGNAL, Label, add_labels, consensus, labels_of
from skillc.sessions.session import Session
from skillc.sessions.signals import signals_of
from skillc.sessions.store import SessionStore


@dataclass(frozen=True, slots=True)
class Labelled:
    """What a run of the signals found.

    Attributes:
        sessions: usable sessions that were read.
        labels: by signal and outcome.
        outcomes: sessions by the outcome of all their labels; `none` without a label.
        skills: sessions by skill, empty for none that is known.
    """

    sessions: int
    labels: Mapping[tuple[str, str], int]
    outcomes: Mapping[str, int]
    skills: Mapping[str, int]


def label_by_signals(
    store: SessionStore, skills: Mapping[str, str], report: Callable[[int], None] = lambda done: None
) -> Labelled:
    """Label all usable sessions by all signals; earlier labels of signals are replaced.

    Args:
        store: the sessions.
        skills: name and `about` of the known skills.
        report: called with the number of sessions read.

    Raises:
        SkillcError: the store cannot be read or written.
    """
    named = skills_named(store)
    fresh: list[Label] = []
    exercised, keys = Counter[str](), set[str]()
    for number, row in enumerate(store.rows(reason=None)):
        report(number)
        session = store.session(row.id)
        for skill in skills_of(session, skills, named):
            exercised[skill] += 1
            fresh += signals_of(session, skill)
        keys.add(row.key)
    others = [each for each in labels_of(store) if each.kind != SIGNAL]
    fresh = calibrated(fresh, agreements_of([*others, *fresh]))
    replace_labels(store, f"{SIGNAL}:", fresh)
    by_case: dict[tuple[str, str], list[Label]] = defaultdict(list)
    for each in (*others, *fresh):
        if each.session in keys:
            by_case[each.session, each.skill].append(each)
    outcomes = Counter[str](consensus(labels).outcome for labels in by_case.values())
    outcomes["none"] = len(keys - {key for key, _ in by_case})
    counts = Counter((each.source, str(each.outcome)) for each in fresh)
    return Labelled(len(keys), counts, outcomes, exercised)


def skills_named(store: SessionStore) -> Mapping[str, list[str]]:
    """Return the skills that persons name for each session, by key."""
    named: dict[str, list[str]] = defaultdict(list)
    for each in labels_of(store):
        if each.kind == PERSON and each.skill not in named[each.session]:
            named[each.session].append(each.skill)
    return named


def skills_of(session: Session, skills: Mapping[str, str], named: Mapping[str, list[str]]) -> list[str]:
    """Return the skills that a session exercised: those that a person names, else the one that is found, or ``""``."""
    return list(named.get(session.key, ())) or [skill_of(session, request_of(session), skills)]


def measure_certainties(store: SessionStore, skill: str | None = None) -> Agreements:
    """Return how far the sources agree, and write the measured certainties to the stored labels of signals and judges.

    Args:
        store: the labels.
        skill: only labels for this skill.

    Raises:
        SkillcError: the store cannot be read or written.
    """
    labels = list(labels_of(store, skill=skill))
    found = agreements_of(labels)
    add_labels_at_once(store, [new for old, new in zip(labels, calibrated(labels, found), strict=True) if old != new])
    return found


def replace_labels(store: SessionStore, source: str, labels: Iterable[Label]) -> None:
    """Replace all labels whose source begins with a text, in one transaction."""
    _in_one(store, lambda: store.execute("DELETE FROM labels WHERE instr(source, ?) = 1", (source,)), labels)


def add_labels_at_once(store: SessionStore, labels: Iterable[Label]) -> None:
    """Store labels in one transaction: all of them or, after a failure, none."""
    _in_one(store, lambda: None, labels)


def _in_one(store: SessionStore, first: Callable[[], object], labels: Iterable[Label]) -> None:
    store.execute("BEGIN IMMEDIATE")
    try:
        first()
        add_labels(store, labels)
    except BaseException:
        store.execute("ROLLBACK")
        raise
    store.execute("COMMIT")
