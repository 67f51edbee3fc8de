"""Labels of sessions: which skill each exercised and whether it worked, with source and certainty."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, cast

from skillc.dataclass import dataclass
from skillc.sessions.store import SessionStore

Outcome = Literal["worked", "failed", "unclear"]

PERSON, JUDGE, SIGNAL = "person", "judge", "signal"
"""The kinds of sources, the most trusted first; a source is `KIND:NAME`, such as `signal:tests`."""
CONSENSUS = "consensus"
"""The source of the combined label of a session and a skill."""


@dataclass(frozen=True, slots=True)
class Label:
    """One source's label of a session.

    Attributes:
        session: its key.
        skill: the skill that it exercised, by the name of its program; empty if it exercised none that is known.
        source: who gave it: `person:NAME`, `judge:NAME`, `signal:NAME` or `consensus`.
        certainty: the probability that the outcome is right, from 0.5 for a guess to 1.
        note: why, in a few words.
        at: when, as ISO 8601 in UTC.
    """

    session: str
    skill: str
    source: str
    outcome: Outcome
    certainty: float
    note: str = ""
    at: str = ""

    @property
    def kind(self) -> str:
        """The kind of its source."""
        return self.source.partition(":")[0]


def add_labels(store: SessionStore, labels: Iterable[Label]) -> None:
    """Store labels; a source that labels a session and a skill again replaces its label."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    for each in labels:
        values = (each.session, each.skill, each.source, each.outcome, each.certainty, each.note, each.at or now)
        store.execute("INSERT OR REPLACE INTO labels VALUES (?, ?, ?, ?, ?, ?, ?)", values)


def labels_of(store: SessionStore, *, session: str | None = None, skill: str | None = None) -> Iterator[Label]:
    """Yield the labels, of one session or one skill if it is given, in a stable order."""
    query = """
        SELECT * FROM labels WHERE (? IS NULL OR session = ?) AND (? IS NULL OR skill = ?)
        ORDER BY session, skill, source
    """
    for row in store.execute(query, (session, session, skill, skill)):
        yield Label(
            row["session"],
            row["skill"],
            row["source"],
            cast(Outcome, row["outcome"]),
            row["certainty"],
            row["note"],
            row["at"],
        )


# ---- one outcome of several labels -----------------------------------------------------------------

FAMILIES: Mapping[str, str] = {
    "signal:exit_status": "commands",
    "signal:tests": "commands",
    "signal:changes": "user",
    "signal:next_words": "user",
}
"""Signals that read the same evidence: their agreement counts once. Judges are one family too: they read one text."""

LEAST_CERTAINTY = 0.7
"""A consensus of signals and judges that is less certain is `unclear`."""

_MOST_CERTAIN = 0.99


def consensus(labels: Iterable[Label]) -> Label:
    """Return one label for all labels of a session and a skill, with source `consensus`.

    A person's label wins; if persons disagree, most of them do. Otherwise the certainties are combined as independent
    evidence at even prior odds: the log-odds of the sources are added (naive Bayes). Sources of one family are not
    independent, so a family adds its strongest label for either outcome only. A label `unclear` adds nothing.

    Args:
        labels: all of the same session and skill; earlier consensus labels are ignored.

    Raises:
        ValueError: there are none, or they are of several sessions or skills.
    """
    given = sorted((each for each in labels if each.kind != CONSENSUS), key=lambda each: each.source)
    if len({(each.session, each.skill) for each in given}) != 1:
        raise ValueError("expected the labels of one session and one skill")
    persons = [each for each in given if each.kind == PERSON]
    if persons:
        return _of_persons(persons)
    strongest: dict[tuple[str, Outcome], float] = {}
    for each in given:
        if each.outcome != "unclear":
            family = FAMILIES.get(each.source, JUDGE if each.kind == JUDGE else each.source)
            certainty = min(max(each.certainty, 0.5), _MOST_CERTAIN)
            place = (family, each.outcome)
            strongest[place] = max(strongest.get(place, 0.0), math.log(certainty / (1 - certainty)))
    total = math.fsum(odds if outcome == "worked" else -odds for (_, outcome), odds in strongest.items())
    outcome: Outcome = "worked" if total > 0 else "failed"
    certainty = min(1 / (1 + math.exp(-abs(total))), _MOST_CERTAIN)
    if certainty >= LEAST_CERTAINTY:
        return _combined(given, outcome, certainty, _note(given, outcome))
    if len({outcome for _, outcome in strongest}) == 2:
        said = ", ".join(f"{each.source} {each.outcome}" for each in given if each.outcome != "unclear")
        return _combined(given, "unclear", certainty, f"sources disagree: {said}")
    return _combined(given, "unclear", certainty, "no source is certain enough" if strongest else given[0].note)


def _of_persons(persons: Sequence[Label]) -> Label:
    counts = Counter(each.outcome for each in persons).most_common()
    if len(counts) > 1 and counts[0][1] == counts[1][1]:
        said = ", ".join(f"{each.source} {each.outcome}" for each in persons)
        return _combined(persons, "unclear", 0.5, f"persons disagree: {said}")
    outcome = counts[0][0]
    certainty = max(each.certainty for each in persons if each.outcome == outcome)
    return _combined(persons, outcome, certainty, _note(persons, outcome))


def _combined(labels: Sequence[Label], outcome: Outcome, certainty: float, note: str) -> Label:
    first = labels[0]
    return Label(first.session, first.skill, CONSENSUS, outcome, certainty, note, max(each.at for each in labels))


def _note(labels: Sequence[Label], outcome: Outcome) -> str:
    kinds = (PERSON, JUDGE)
    agreeing = [each for each in labels if each.outcome == outcome]
    most = min(
        agreeing, key=lambda each: (kinds.index(each.kind) if each.kind in kinds else len(kinds), -each.certainty)
    )
    return most.note
