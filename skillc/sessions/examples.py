"""Make examples from labelled sessions: the request, the answer, and whether it worked."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import Any

from skillc.dataclass import dataclass
from skillc.sessions.labels import CONSENSUS, PERSON, Label, Outcome, consensus, labels_of
from skillc.sessions.likeness import Clusters, cluster
from skillc.sessions.session import Event, Session
from skillc.sessions.store import Row, SessionStore
from skillc.trajectories.trajectory import FileChange, Message, ToolCall

REQUEST_CHARACTERS = 4_000
"""The most characters of a request in an example; a longer one is cut in the middle."""
ANSWER_CHARACTERS = 2_000
"""The most characters of an answer in an example."""

_OFFERS = re.compile(
    r"\b(anything else|something else|what else|shall i|should i|would you like|do you want|want me to|may i|"
    r"noch etwas|soll ich)\b",
    re.IGNORECASE,
)
_OBJECTION = re.compile(
    r"^\W*(no\b(?! (?:problem|worries|more))|nope\b|wrong\b|not (?:quite|what|right|correct|like)\b|"
    r"(?:that(?:'s| is)|this is) (?:not|wrong)\b|incorrect\b|still (?:fails|wrong|broken|not)\b|try again\b|undo\b|"
    r"revert\b|you (?:forgot|missed)\b|nein\b|falsch\b|non\b|faux\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class SessionExample:
    """One session as an example.

    Attributes:
        session: its key.
        cluster: the key of the first session with nearly the same request.
        request: what the user asked until the agent acted, at most `REQUEST_CHARACTERS`.
        answer: the agent's last message about that request, at most `ANSWER_CHARACTERS`; empty if it wrote none.
        outcome: by the consensus of its labels.
        certainty: of the outcome.
        note: the reason of the outcome, from the most trusted label with it.
        cut: which of `request` and `answer` were shortened.
    """

    session: str
    cluster: str
    request: str
    answer: str
    outcome: Outcome
    certainty: float
    note: str
    project: str
    began: str | None
    ended: str | None
    cut: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The id of its row: a digest of the key, which stays the same when other sessions are added."""
        return hashlib.sha256(self.session.encode(errors="surrogatepass")).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Found:
    """The examples for a skill.

    Attributes:
        left_out: how many sessions gave none, by reason.
        by_person: keys of the sessions whose outcome a person gave.
        checked: of the sessions that the other sources together call `worked` and a person labelled, those that did
            work, and all.
    """

    examples: tuple[SessionExample, ...]
    left_out: Mapping[str, int]
    by_person: frozenset[str] = frozenset()
    checked: tuple[int, int] = (0, 0)


def examples_of(
    store: SessionStore,
    *,
    skill: str | None = None,
    project: str | None = None,
    report: Callable[[int], None] = lambda done: None,
) -> Found:
    """Return an example for each usable session with a label.

    Args:
        store: the sessions.
        skill: only labels for this skill; by default those for any, of which the most certain one counts.
        project: only sessions whose project contains this text.
        report: called with the number of sessions read.

    Raises:
        SkillcError: the store cannot be read.
    """
    outcomes = outcomes_of(store, skill)
    elsewhere = outcomes_of(store, None).keys() - outcomes.keys() if skill is not None else set()
    left = Counter[str]()
    picked: list[tuple[str, str, str, str, str | None, str | None]] = []
    for number, row in enumerate(store.rows(reason=None, project=project), 1):
        report(number)
        label = outcomes.get(row.key)
        if label is None:
            left["labelled for another skill or none" if row.key in elsewhere else "not labelled"] += 1
        elif label.outcome == "unclear":
            left["unclear whether they worked"] += 1
        else:
            session = store.session(row.id)
            request = valid(request_of(session))
            if not request.strip():
                left["without a request in words"] += 1
                continue
            answer = valid(answer_of(session))
            picked.append((row.key, request, answer, row.project, row.began, session.ended))
    clusters = cluster((key, request) for key, request, *_ in picked)
    examples = []
    for key, request, answer, where, began, ended in picked:
        label = outcomes[key]
        short_request, short_answer = shortened(request, REQUEST_CHARACTERS), shortened(answer, ANSWER_CHARACTERS)
        was_cut = [
            name for name, a, b in (("request", request, short_request), ("answer", answer, short_answer)) if a != b
        ]
        examples.append(
            SessionExample(
                session=key,
                cluster=clusters.of[key],
                request=short_request,
                answer=short_answer,
                outcome=label.outcome,
                certainty=label.certainty,
                note=valid(label.note),
                project=valid(where),
                began=began,
                ended=ended,
                cut=tuple(was_cut),
            )
        )
    return Found(tuple(examples), left, *_checked(store, skill))


def _checked(store: SessionStore, skill: str | None) -> tuple[frozenset[str], tuple[int, int]]:
    """Return the sessions that a person labelled, and how often the other sources' `worked` is right there."""
    persons, right, checked = set[str](), 0, 0
    for (key, _), labels in groupby(labels_of(store, skill=skill), lambda each: (each.session, each.skill)):
        given = [each for each in labels if each.kind != CONSENSUS]
        own, others = ([each for each in given if (each.kind == PERSON) is wanted] for wanted in (True, False))
        if not own:
            continue
        persons.add(key)
        truth = consensus(own).outcome
        if others and truth != "unclear" and consensus(others).outcome == "worked":
            right, checked = right + (truth == "worked"), checked + 1
    return frozenset(persons), (right, checked)


def outcomes_of(store: SessionStore, skill: str | None) -> Mapping[str, Label]:
    """Return the consensus of the labels of each labelled session, by key."""
    found: dict[str, Label] = {}
    for (key, _), labels in groupby(labels_of(store, skill=skill), lambda each: (each.session, each.skill)):
        given = [each for each in labels if each.kind != CONSENSUS]
        if not given:
            continue
        label = consensus(given)
        if key not in found or label.certainty > found[key].certainty:
            found[key] = label
    return found


def cluster_store(store: SessionStore, report: Callable[[int], None] = lambda done: None) -> Clusters:
    """Return the clusters of the usable sessions by likeness of their requests."""

    def requests() -> Iterator[tuple[str, str]]:
        rows: Iterator[Row] = store.rows(reason=None)
        for number, row in enumerate(rows, 1):
            report(number)
            yield row.key, request_of(store.session(row.id))

    return cluster(requests())


# ---- of one session --------------------------------------------------------------------------------


def request_of(session: Session) -> str:
    """Return what the user asked until the agent acted.

    The agent acts with its first call, changed file, or message that is not a question to the user. A question and what
    the user replied to it belong to the request; an offer such as `anything else?` does not ask for anything.
    """
    parts: list[str] = []
    pending = ""
    for event in session.events:
        step = event.step
        if _acts(event):
            break
        if isinstance(step, Message) and not event.automatic:
            if step.role == "user":
                parts += [f"[agent] {pending}", f"[user] {step.text.strip()}"] if pending else [step.text.strip()]
                pending = ""
            else:
                pending = f"{pending}\n{step.text.strip()}".strip()
    return "\n\n".join(part for part in parts if part)


def answer_of(session: Session) -> str:
    """Return the agent's last message about the request.

    If the user's next message objects, the answer after it counts. If it begins something else, nothing after it
    belongs to the request.
    """
    answer, acted = "", False
    for event in session.events:
        step = event.step
        if isinstance(step, Message) and step.role == "user" and not event.automatic:
            if acted and answer and not objects(step.text):
                break
        elif isinstance(step, Message) and step.role == "assistant" and (acted or _acts(event)):
            acted = True
            answer = step.text.strip() or answer
        else:
            acted = acted or _acts(event)
    return answer


def objects(text: str) -> bool:
    """Return whether a user's words object to what the agent did."""
    return _OBJECTION.search(text) is not None


def _acts(event: Event) -> bool:
    step: Any = event.step
    if isinstance(step, ToolCall | FileChange):
        return True
    return isinstance(step, Message) and step.role == "assistant" and bool(step.text.strip()) and not _asks(step.text)


def _asks(text: str) -> bool:
    """Return whether a message only asks the user for what it needs."""
    last = re.split(r"(?<=[.!?])\s+|\n+", text.strip())[-1]
    return last.rstrip("*_`\"') ").endswith("?") and len(text) <= 600 and not _OFFERS.search(last)


def shortened(text: str, most: int) -> str:
    """Return a text of at most `most` characters: its beginning and its end, with what is left out between them."""
    if len(text) <= most:
        return text
    mark = f"\n[{len(text) - most:,} characters left out]\n"
    kept = most - len(mark) - 8
    mark = f"\n[{len(text) - kept:,} characters left out]\n"
    head = kept * 2 // 3
    return text[:head] + mark + text[len(text) - (kept - head) :]


def valid(text: str) -> str:
    """Return a text without lone surrogates, which no UTF-8 file can have."""
    return text.encode("utf-8", "replace").decode("utf-8") if any("\ud800" <= c <= "\udfff" for c in text) else text
