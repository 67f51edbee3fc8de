"""The typed reply of a judge, and a reader that is tolerant of form and strict in meaning."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from skillc.dataclass import dataclass
from skillc.json_values import values_within
from skillc.metrics.judging.prompt import NO, TIE, YES, A, B
from skillc.plan.schema import CriterionPlan, RubricPlan
from skillc.text import listed, shown

_LONGEST_REASON = 400
_LEADING_NUMBER = re.compile(r"\s*(-?\d{1,6})(?:\.0+)?\s*(?:$|[^\d.])")
_YES = {"yes": 1, "true": 1, "1": 1, "no": 0, "false": 0, "0": 0}
_SIDES = {"a": A, "b": B, "tie": TIE, "neither": TIE, "equal": TIE, "answer a": A, "answer b": B}


class MalformedVerdict(ValueError):  # noqa: N818 -- as `MalformedReply`
    """A reply that is no verdict; its message can be sent back to the judge."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What a judge says on one criterion.

    Attributes:
        criterion: its name; empty for the only one.
        value: the level, 1 or 0 for yes or no; in a comparison `A`, `B` or `tie`.
        reason: on one line.
    """

    criterion: str
    value: int | str
    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The reply of one judge.

    Attributes:
        role: of the judge.
        marks: one for each criterion, in the order of the rubric.
        instructions: whether it reports instructions to the judge within the case.
    """

    role: str
    marks: tuple[Mark, ...]
    instructions: bool = False


@dataclass(frozen=True, slots=True)
class JudgeFailed:
    """A judge without a verdict: unmeasured, never a score."""

    role: str
    detail: str


Reply = Verdict | JudgeFailed


def read_verdict(role: str, rubric: RubricPlan, text: str, *, code: str, pair: bool) -> Verdict:
    """Read the verdict in a reply: bare JSON, in a code fence, or within prose.

    An object with the code of the case goes first, since a judge may quote a verdict that the answer contains; else
    the last one counts.

    Raises:
        MalformedVerdict: no object fits, or one lacks a criterion or has a level that the rubric does not have.
    """
    found = [value for value in values_within(text) if isinstance(value, Mapping | list)]
    ours = [value for value in found if isinstance(value, Mapping) and value.get("case") == code]
    problem: MalformedVerdict | None = None
    for value in reversed(ours or found):
        try:
            return _verdict(role, rubric, value, pair=pair)
        except MalformedVerdict as error:
            problem = problem or error
    raise problem or MalformedVerdict("the reply has no JSON object" if text.strip() else "the reply is empty")


def _verdict(role: str, rubric: RubricPlan, value: Any, *, pair: bool) -> Verdict:
    entries = {_folded(name): entry for name, entry in _entries(rubric, value)}
    marks = []
    for criterion in rubric.criteria:
        entry = entries.get(_folded(criterion.name))
        if entry is None:
            raise MalformedVerdict(f"there is no verdict on `{criterion.name}`" if criterion.name else _NO_VERDICT)
        marks.append(_mark(criterion, entry, pair=pair))
    flag = value.get("instructions") if isinstance(value, Mapping) else None
    return Verdict(role, tuple(marks), flag is True or (isinstance(flag, str) and flag.strip().lower() == "true"))


_NO_VERDICT = "there is no verdict: `verdicts` needs one entry"


def _entries(rubric: RubricPlan, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield criterion and entry: of a list, of a mapping by criterion, or of a single entry."""
    verdicts = value.get("verdicts", value) if isinstance(value, Mapping) else value
    only = rubric.criteria[0].name if len(rubric.criteria) == 1 else None
    if isinstance(verdicts, list):
        for entry in verdicts:
            if isinstance(entry, Mapping):
                name = entry.get("criterion")
                yield (only if only is not None and len(verdicts) == 1 else str(name or "")), entry
        return
    if not isinstance(verdicts, Mapping):
        return
    if only is not None and {"level", "better"} & verdicts.keys():
        yield only, verdicts
        return
    for name, entry in verdicts.items():
        yield str(name), entry if isinstance(entry, Mapping) else {"level": entry, "better": entry}


def _folded(name: str) -> str:
    return name.strip().strip("`").casefold()


def _mark(criterion: CriterionPlan, entry: Mapping[str, Any], *, pair: bool) -> Mark:
    reason = " ".join(str(entry.get("reason") or "").split())
    reason = reason if len(reason) <= _LONGEST_REASON else reason[:_LONGEST_REASON].rstrip() + "…"
    given = entry.get("better") if pair else entry.get("level")
    value = _side(given) if pair else _level(criterion, given)
    if value is None:
        where = f" of `{criterion.name}`" if criterion.name else ""
        key = "better" if pair else "level"
        raise MalformedVerdict(f"`{key}`{where} must be {_wanted(criterion, pair)}, not {shown(repr(given))}")
    return Mark(criterion.name, value, reason)


def _wanted(criterion: CriterionPlan, pair: bool) -> str:
    if pair:
        return f'"{A}", "{B}" or "{TIE}"'
    return listed([level for level, _ in criterion.levels], "or") if criterion.levels else f'"{YES}" or "{NO}"'


def _side(given: object) -> str | None:
    return _SIDES.get(given.strip().strip('"`.').casefold()) if isinstance(given, str) else None


def _level(criterion: CriterionPlan, given: object) -> int | None:
    if not criterion.levels:
        word = str(given).strip().strip('"`.').casefold() if isinstance(given, str | bool | int) else ""
        return _YES.get(word)
    if isinstance(given, bool):
        return None
    if isinstance(given, str):
        found = _LEADING_NUMBER.match(given)
        given = int(found[1]) if found else None
    if isinstance(given, float) and given.is_integer():
        given = int(given)
    return given if isinstance(given, int) and given in dict(criterion.levels) else None
