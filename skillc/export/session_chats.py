"""Chat examples and preference pairs from recorded, labelled sessions, in the layouts of `chat.py`.

A session is used if its labels agree on whether it worked and are certain enough, and if neither it nor one with nearly
the same request is an example that the program holds out. Sessions that are set apart are never read.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

from skillc.data.dataset import load_data
from skillc.data.split import quoted
from skillc.data.withdrawn import SESSION
from skillc.dataclass import dataclass
from skillc.export.chat import Chats, Keep, Kind, Split, pair_lengths, spoken_length
from skillc.export.conversation import Conversation, conversation_of, inferred_schemas, split_turns
from skillc.export.rollouts import Row
from skillc.export.turns import Messages
from skillc.frontend import plan_file
from skillc.models.roles import declared_secrets
from skillc.outcomes import Example
from skillc.plan.schema import Plan
from skillc.redaction import Redactor, redact_value
from skillc.sessions.examples import outcomes_of, request_of, valid
from skillc.sessions.labels import CONSENSUS, PERSON, Label, labels_of
from skillc.sessions.likeness import cluster
from skillc.sessions.store import Row as StoredSession
from skillc.sessions.store import SessionStore

CERTAINTY = 0.9
"""The least certainty of a session's outcome, where none is given."""


@dataclass(frozen=True, slots=True)
class _Used:
    """A session that may be trained on.

    Attributes:
        request: as `request_of`.
        label: the consensus of its labels.
        agent: whose tools it had.
        example: the one of the program's data that is made from it, with its split.
    """

    key: str
    request: str
    cluster: str
    label: Label
    agent: str
    conversation: Conversation
    example: tuple[str, Example] | None

    @property
    def split(self) -> str:
        """The side of its example; `no split` for a session that is not among the program's data."""
        return self.example[0] if self.example is not None else "no split"


class SessionChats:
    """Chat examples of the sessions in a store.

    Args:
        program: whose held-out examples are left out.
        store: the sessions.
        skill: the skill that the labels are for; by default that of the program.
        project: only sessions whose project contains this text.
        keep: `keep` keeps the system instructions of the sessions, `drop` leaves them out.
        splits: `train`, and `validation` on request.
        certainty: the least of a session's outcome.
        most: the most tokens of a session; later turns are left out.
        environ: has the values of the secrets that are redacted.

    Attributes:
        plan: of the program.
        used: the sessions that may be trained on.
        models: those that the sessions used.
        source: what the manifest says of the source.

    Raises:
        SkillcError: the program has errors, or the store cannot be read.
    """

    def __init__(
        self,
        program: Path,
        store: SessionStore,
        *,
        skill: str | None = None,
        project: str | None = None,
        keep: Keep = "drop",
        splits: Sequence[Split] = ("train",),
        certainty: float = CERTAINTY,
        most: int | None = None,
        environ: Mapping[str, str] | None = None,
        report: Callable[[int], None] = lambda done: None,
    ) -> None:
        self.plan: Plan = plan_file(program, complete=False).plan
        self.skill = skill or self.plan.skill.artifact
        self.keep: Keep = keep
        self._data = load_data(self.plan, program.parent)
        self._splits = frozenset(splits)
        self._certainty, self._most = certainty, most
        self._hide = Redactor(declared_secrets(self.plan, os.environ if environ is None else environ))
        self._left = Counter[str]()
        self.source = {
            "program": program.name,
            "store": store.path.name,
            "labels": self.skill,
            "certainty": certainty,
            "project": project,
        }
        rows = list(self._certain(store, project))
        self.used = tuple(self._usable(rows, store, report))
        by_agent = groupby(sorted(self.used, key=lambda each: each.agent), lambda each: each.agent)
        self._schemas = {agent: inferred_schemas(each.conversation for each in used) for agent, used in by_agent}
        models = {row.key: row.model for row, _ in rows}
        self.models = sorted({models[each.key] for each in self.used} - {""})

    def sft(self, *, by_turn: bool = False) -> Chats:
        """Return a chat example for each session that worked: its whole turns before the first objection of the user.

        Args:
            by_turn: a row for each message of the agent in place of one for the session, for chat templates that do not
                mark the agent's tokens.
        """
        rows, left, splits, kept = list[Row](), Counter(self._left), Counter[str](), list[_Used]()
        for each in self.used:
            if each.label.outcome != "worked":
                left["failed"] += 1
                continue
            accepted = each.conversation.accepted(self._most)
            if accepted is None:
                left["the user objected to the first answer, or it is too long"] += 1
                continue
            messages, first = accepted.messages, accepted.first
            if by_turn:
                parts = [(before, [reply]) for before, reply in split_turns(messages, first)]
            else:
                parts = [(messages[:first], messages[first:])]
            rows += [self._row(each, {"prompt": prompt, "completion": completion}) for prompt, completion in parts]
            kept.append(each)
            splits[each.split] += len(parts)
        lengths = {"completion": fmean(spoken_length(row, "completion") for row in rows)} if rows else {}
        return self._chats("sft", rows, kept, splits, left, lengths)

    def dpo(self) -> Chats:
        """Return pairs of a session that worked and one with a like request that failed: the messages where they part.

        Each session that failed is in one pair at most, and those that worked are taken in turn.
        """
        rows, left, splits, kept = list[Row](), Counter(self._left), Counter[str](), list[_Used]()
        groups = defaultdict[str, list[_Used]](list)
        for each in self.used:
            groups[each.cluster].append(each)
        like = 0
        for group in groups.values():
            right = [each for each in group if each.label.outcome == "worked"]
            wrong = [each for each in group if each.label.outcome == "failed"]
            if not right or not wrong:
                left["no session of the other outcome with a like request"] += len(group)
                continue
            for other in wrong:
                # The same words first, then the one that was taken least often, then the most certain.
                order = sorted(
                    right,
                    key=lambda one: (one.request != other.request, kept.count(one), -one.label.certainty, one.key),
                )
                found = next(((one, row) for one in order if (row := _pair(one, other)) is not None), None)
                if found is None:
                    left["no message where it parts from one that worked"] += 1
                    continue
                like += found[0].request != other.request
                rows.append(self._row(found[0], found[1]))
                kept += [found[0], other]
                splits[found[0].split] += 1
        note = (
            f"{like} of {len(rows)} pairs have a rejected answer to a like request in other words, not to the same "
            "one; DPO may learn those words"
        )
        notes = [note] if like else []
        return self._chats("dpo", rows, kept, splits, left, pair_lengths(rows), notes)

    # ---- selection ---------------------------------------------------------------------------------

    def _certain(self, store: SessionStore, project: str | None) -> Iterator[tuple[StoredSession, Label]]:
        """Yield the usable sessions whose labels agree and are certain enough; count the others."""
        outcomes = outcomes_of(store, self.skill)
        contradicted = {key for key, labels in _by_session(store, self.skill) if _contradict(labels)}
        for row in list(store.rows(project=project)):
            label = outcomes.get(row.key)
            if row.reason is not None:
                self._left[f"set apart: {row.reason}"] += 1
            elif label is None:
                self._left[f"not labelled for `{self.skill}`"] += 1
            elif row.key in contradicted:
                self._left["labels contradict each other"] += 1
            elif label.outcome == "unclear" or label.certainty < self._certainty:
                self._left[f"less certain than {self._certainty:g}"] += 1
            else:
                yield row, label

    def _usable(
        self, rows: Sequence[tuple[StoredSession, Label]], store: SessionStore, report: Callable[[int], None]
    ) -> Iterator[_Used]:
        """Yield the sessions with a conversation that no held-out example has; count the others."""
        sides = {"train": self._data.train, "validation": self._data.validation, "test": self._data.test}
        places = {key: (side, each) for side, examples in sides.items() for each in examples for key in _keys(each)}
        held = {side: examples for side, examples in sides.items() if side not in self._splits}
        found: list[tuple[StoredSession, Label, str, Conversation]] = []
        for number, (row, label) in enumerate(rows, 1):
            report(number)
            place = places.get(row.key)
            if place is not None and place[0] in held:
                self._left[f"of {place[0]}"] += 1
                continue
            session = store.session(row.id)
            conversation = conversation_of(session, system=self.keep == "keep")
            if conversation is None:
                self._left["a call without a result, or no answer"] += 1
                continue
            said = "\n\0".join(each["content"] for each in conversation.messages if each["role"] == "user")
            side = next((side for side, examples in held.items() if quoted(examples, said)), None)
            if side is not None:
                self._left[f"of {side}"] += 1
                continue
            found.append((row, label, request_of(session), conversation))
        yield from self._unlike(found, held, places)

    def _unlike(
        self,
        found: Sequence[tuple[StoredSession, Label, str, Conversation]],
        held: Mapping[str, Sequence[Example]],
        places: Mapping[str, tuple[str, Example]],
    ) -> Iterator[_Used]:
        """Yield the sessions whose request is not nearly that of a held-out example."""
        kept_back = [
            (f"{side} {each.id}", text) for side, some in held.items() for each in some for text in _texts(each)
        ]
        clusters = cluster((*kept_back, *((row.key, request) for row, _, request, _ in found))).of
        sides = {clusters[key]: key.partition(" ")[0] for key, _ in kept_back}
        for row, label, request, conversation in found:
            side = sides.get(clusters[row.key])
            if side is not None:
                self._left[f"like an example of {side}"] += 1
                continue
            agent = row.agent.partition(" ")[0] or row.format
            yield _Used(row.key, request, clusters[row.key], label, agent, conversation, places.get(row.key))

    # ---- rows --------------------------------------------------------------------------------------

    def _row(self, used: _Used, row: Mapping[str, Any]) -> Row:
        schemas = self._schemas[used.agent]
        plain: dict[str, Any] = {**row, **({"tools": list(schemas)} if schemas else {})}
        hidden: Row = self._hide.value(redact_value(plain, valid))
        return hidden

    def _chats(
        self,
        kind: Kind,
        rows: Sequence[Row],
        kept: Sequence[_Used],
        splits: Mapping[str, int],
        left: Counter[str],
        lengths: Mapping[str, float],
        notes: Sequence[str] = (),
    ) -> Chats:
        examples = {each.example[1].id: each.example[1] for each in kept if each.example is not None}
        return Chats(
            kind,
            tuple(rows),
            tuple(examples.values()),
            splits,
            left,
            sessions=tuple(dict.fromkeys(each.key for each in kept)),
            lengths=lengths,
            skill=self.keep,
            notes=tuple(notes),
        )


def _by_session(store: SessionStore, skill: str) -> Iterable[tuple[str, list[Label]]]:
    for key, labels in groupby(labels_of(store, skill=skill), lambda each: each.session):
        yield key, [each for each in labels if each.kind != CONSENSUS]


def _contradict(labels: Sequence[Label]) -> bool:
    """Return whether labels say both `worked` and `failed`; where a person has decided, only persons count."""
    persons = [each for each in labels if each.kind == PERSON]
    return {"worked", "failed"} <= {each.outcome for each in persons or labels}


def _keys(example: Example) -> tuple[str, ...]:
    """Return the key of the session that an example is made from, if it is."""
    key = example.fields.get(SESSION)
    return (key,) if isinstance(key, str) else ()


def _texts(example: Example) -> list[str]:
    text = "\n".join(value for value in example.inputs.values() if isinstance(value, str))
    return [text] if text.strip() else []


def _pair(one: _Used, other: _Used) -> dict[str, Messages] | None:
    """Return the pair of the messages where a session that worked and one that failed part.

    Their requests may differ in words; all else before must be the same.
    """
    right, wrong = one.conversation, other.conversation
    if [each["role"] for each in right.prompt] != [each["role"] for each in wrong.prompt]:
        return None
    mine, its = right.messages[right.first :], wrong.messages[wrong.first :]
    for i, (chosen, rejected) in enumerate(zip(mine, its, strict=False)):
        if chosen == rejected:
            continue
        if chosen["role"] != "assistant" or rejected["role"] != "assistant" or right.first + i in right.objected:
            return None
        return {"prompt": right.messages[: right.first + i], "chosen": [chosen], "rejected": [rejected]}
    return None
