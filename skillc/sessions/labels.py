"""What a session was about and whether it worked: labels, each with its source and certainty."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Literal, cast

from skillc.dataclass import dataclass
from skillc.sessions.store import SessionStore

Outcome = Literal["worked", "failed", "unclear"]

PERSON, JUDGE, SIGNAL = "person", "judge", "signal"
"""The kinds of sources, the most trusted first; a source is `KIND:NAME`, such as `signal:tests`."""


@dataclass(frozen=True, slots=True)
class Label:
    """What one source says of a session.

    Attributes:
        session: its key.
        skill: the skill that it exercised, by the name of its program; empty if it exercised none that is known.
        source: who says so: `person:NAME`, `judge:NAME` or `signal:NAME`.
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
