"""The decisions of a run as they are in its history, typed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Literal, cast

from pydantic import JsonValue

from skillc.dataclass import dataclass
from skillc.document.edits import Edit, edit_from_json
from skillc.json_values import objects_in
from skillc.optimize.propose.proposals import wording

Line = Mapping[str, JsonValue]
Truth = Literal["true", "false", "unknown"]
Result = Literal["accepted", "rejected", "undecided", "beaten", "empty"]

_RESULTS: Mapping[str, Result] = {"accept": "accepted", "reject": "rejected"}


@dataclass(frozen=True, slots=True)
class Bound:
    """A mean on validation: one value, or both ends of where it can still be when only a part was measured."""

    low: Fraction
    high: Fraction

    @property
    def exact(self) -> bool:
        """Whether the whole split was measured."""
        return self.low == self.high


@dataclass(frozen=True, slots=True)
class GateResult:
    """One gate of a decision.

    Attributes:
        drawn: the gate with the value of each operand below it; empty for a gate that holds.
    """

    name: str
    truth: Truth
    drawn: str = ""


@dataclass(frozen=True, slots=True)
class Credit:
    """Validation examples that an edit is associated with: their number, and the first ids."""

    cured: int
    broke: int
    cured_ids: tuple[str, ...] = ()
    broke_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Screen:
    """The trial of one edit alone, on training examples.

    Attributes:
        counts: the result in words.
        cured, broke: ids of examples that changed.
        chance: those of them that an unrelated edit changed as well.
    """

    counts: str
    cured: tuple[str, ...] = ()
    broke: tuple[str, ...] = ()
    chance: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProposedEdit:
    """A proposed edit.

    Attributes:
        edit: None for a record that is no edit.
        words: the edit on one line.
        rule: the id of the rule that it made or changed; empty if it was refused.
        report: the result of applying it.
        cures: ids of the training failures that it was written for.
        screen: None if it was not tried alone.
        credit: None if its candidate was not measured.
        fate: such as `accepted`, `screened out` or `merged into another`.
        opposite: a note that it may turn a rule into its opposite.
    """

    edit: Edit | None
    words: str
    rationale: str = ""
    rule: str = ""
    report: str = ""
    cures: tuple[str, ...] = ()
    screen: Screen | None = None
    credit: Credit | None = None
    fate: str = ""
    why: str = ""
    opposite: str = ""


@dataclass(frozen=True, slots=True)
class DraftTrial:
    """A draft of whole sections, tried on training examples that its author did not see."""

    tokens: int
    cured: int
    of_failures: int
    broke: int
    of_rights: int
    chosen: bool


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of an edit, and why."""

    words: str
    fate: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision of a run.

    Attributes:
        number: in the run, from 1.
        place: such as `step 3/8`.
        kind: `step`, `slow update`, `tidy`, `ablate`, or the method.
        maker: `draft`, `edits`, `prune`; empty for neither.
        incumbent, candidate: digests; the candidate's is empty for none.
        blame: the gate that failed first.
        brief: the failed gate in one line.
        goal: the candidate's mean when the gates were decided; None if nothing was measured.
        incumbent_goal: the incumbent's mean then.
        completed: an accepted candidate's mean on the whole split.
        gains, losses: validation examples that the candidate cured and broke, of `evaluated`.
        of: examples of the validation split.
        tokens: of the candidate; 0 without one.
        edits: those of the candidate.
        others: proposed edits that are not in the candidate: screened out, waiting, merged, refused.
        shared: changes on validation that belong to no single edit.
        guidance: the new text of the slow section `section`.
        sections: new texts of whole sections, by name.
        pool: rank and number of the candidates of the step.
        trains: `about` for a candidate that is a description, not a skill.
        run: the id of its run; empty for a line of the store.
    """

    number: int
    place: str
    epoch: int
    kind: str
    maker: str
    incumbent: str
    candidate: str
    result: Result
    reason: str
    blame: str = ""
    brief: str = ""
    gates: tuple[GateResult, ...] = ()
    goal: Bound | None = None
    incumbent_goal: Bound | None = None
    completed: Bound | None = None
    gains: int = 0
    losses: int = 0
    evaluated: int = 0
    of: int = 0
    tokens: int = 0
    edits: tuple[ProposedEdit, ...] = ()
    others: tuple[ProposedEdit, ...] = ()
    drafts: tuple[DraftTrial, ...] = ()
    shared: Credit | None = None
    section: str = ""
    guidance: str = ""
    sections: Mapping[str, str] = field(default_factory=dict)
    pool: tuple[int, int] | None = None
    trains: str = ""
    run: str = ""

    @property
    def accepted(self) -> bool:
        """Whether the candidate became the incumbent."""
        return self.result == "accepted"

    @property
    def reached(self) -> Bound | None:
        """The candidate's mean, as far as it is known by now."""
        return self.completed or self.goal


def decisions_of(lines: Iterable[Line]) -> tuple[Decision, ...]:
    """Return the decisions in lines of a history, in their order."""
    return tuple(_decision(line) for line in lines if isinstance(line.get("decision"), int))


def _decision(line: Line) -> Decision:
    goal = line.get("goal")
    goal = goal if isinstance(goal, dict) else {}
    edits, others = _edits(line)
    pool = line.get("pool")
    result = _text(line, "result")
    credit = line.get("credit")
    shared = credit.get("shared") if isinstance(credit, dict) else None
    sections = line.get("sections")
    return Decision(
        number=_count(line, "decision"),
        place=_text(line, "place"),
        epoch=_count(line, "epoch"),
        kind=_text(line, "kind"),
        maker=_text(line, "maker") or ("edits" if line.get("edits") or line.get("fates") else ""),
        incumbent=_text(line, "incumbent"),
        candidate=_text(line, "candidate"),
        result=_RESULTS.get(result, cast(Result, result)),
        reason=_text(line, "reason"),
        blame=_text(line, "blame"),
        brief=_text(line, "brief"),
        gates=_gates(line),
        goal=_bound(goal.get("candidate")),
        incumbent_goal=_bound(goal.get("incumbent")),
        completed=_bound(line.get("completed")),
        gains=_count(line, "gains"),
        losses=_count(line, "losses"),
        evaluated=_count(line, "evaluated"),
        of=_count(line, "of"),
        tokens=_count(line, "tokens"),
        edits=edits,
        others=others,
        drafts=tuple(_draft(each) for each in objects_in(line.get("drafts"))),
        shared=_credit(shared) if isinstance(shared, dict) else None,
        section=_text(line, "section"),
        guidance=_text(line, "guidance"),
        sections={name: str(text) for name, text in sections.items()} if isinstance(sections, dict) else {},
        pool=(_count(pool, "candidate"), _count(pool, "of")) if isinstance(pool, dict) else None,
        trains=_text(line, "trains"),
        run=_text(line, "run"),
    )


def _gates(line: Line) -> tuple[GateResult, ...]:
    truths, drawn = line.get("gates"), line.get("drawn")
    drawn = drawn if isinstance(drawn, dict) else {}
    if not isinstance(truths, dict):
        return ()
    return tuple(GateResult(name, cast(Truth, truth), str(drawn.get(name, ""))) for name, truth in truths.items())


def _edits(line: Line) -> tuple[tuple[ProposedEdit, ...], tuple[ProposedEdit, ...]]:
    """Return the edits of the candidate, and the other proposed ones, each with its fate."""
    fates = {each.words: each for each in _fates(line)}
    credit = line.get("credit")
    found_credits = objects_in(credit.get("association")) if isinstance(credit, dict) else []
    rows = objects_in(line.get("edits"))
    of_edits: list[Credit | None] = [_credit(each) for each in found_credits] if len(found_credits) == len(rows) else []
    fate = _RESULTS.get(_text(line, "result"), _text(line, "result"))
    screened = {_words(row): row for row in objects_in(line.get("suggestions"))}
    own = []
    for i, row in enumerate(rows):
        suggested = screened.pop(_words(row), {})
        found = fates.pop(_words(row), Fate("", fate))
        own.append(_edit({**suggested, **row}, found, of_edits[i] if of_edits else None))
    others = []
    for row in (*screened.values(), *objects_in(line.get("screened_out"))):
        others.append(_edit(row, fates.pop(_words(row), Fate("", "screened out")), None))
    others += [ProposedEdit(None, each.words, fate=each.fate, why=each.why) for each in fates.values()]
    return tuple(own), tuple(others)


def _edit(row: Line, fate: Fate, credit: Credit | None) -> ProposedEdit:
    screen = row.get("screen")
    return ProposedEdit(
        edit=edit_from_json(row),
        words=_words(row),
        rationale=_text(row, "rationale"),
        rule=_text(row, "rule"),
        report=_text(row, "report"),
        cures=_ids(row.get("cures")),
        screen=_screen(screen) if isinstance(screen, dict) else None,
        credit=credit,
        fate=fate.fate,
        why=fate.why,
        opposite=_text(row, "opposite"),
    )


def _words(row: Line) -> str:
    edit = edit_from_json(row)
    return wording(edit) if edit is not None else " ".join(str(row.get(name) or "") for name in ("op", "rule", "text"))


def _fates(line: Line) -> list[Fate]:
    rows = objects_in(line.get("fates"))
    return [Fate(_text(row, "edit"), _text(row, "fate"), _text(row, "why")) for row in rows]


def _screen(value: Line) -> Screen:
    ids = {name: _ids(value.get(name)) for name in ("cured", "broke", "chance")}
    return Screen(_text(value, "counts"), **ids)


def _credit(value: Line) -> Credit:
    examples = value.get("examples")
    examples = examples if isinstance(examples, dict) else {}
    counts = _count(value, "cured"), _count(value, "broke")
    return Credit(*counts, _ids(examples.get("cured")), _ids(examples.get("broke")))


def _draft(value: Line) -> DraftTrial:
    return DraftTrial(
        tokens=_count(value, "tokens"),
        cured=_count(value, "cured"),
        of_failures=_count(value, "of_failures"),
        broke=_count(value, "broke"),
        of_rights=_count(value, "of_rights"),
        chosen=bool(value.get("chosen")),
    )


def _bound(value: JsonValue) -> Bound | None:
    ends: Sequence[JsonValue] = value if isinstance(value, list) else [value, value]
    try:
        low, high = (Fraction(str(end)) for end in ends)
    except ValueError:
        return None
    return Bound(low, high)


def _ids(value: JsonValue) -> tuple[str, ...]:
    return tuple(str(each) for each in value) if isinstance(value, list) else ()


def _text(line: Line, name: str) -> str:
    value = line.get(name)
    return value if isinstance(value, str) else ""


def _count(line: Line, name: str) -> int:
    value = line.get(name)
    return value if isinstance(value, int) else 0
