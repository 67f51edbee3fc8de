"""Sentences that copy right answers from the inputs, and structured answers one part at a time."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from skillc.models.rulebook.briefs import Brief, Case
from skillc.models.rulebook.edits import ENOUGH_CASES, Edit, is_rejected
from skillc.models.rulebook.taking import ORDINALS, PATTERNS, Take, number_of, pattern_of, read_take, take_text, taken

_AGAINST = 1.5
_MOST_TAKES = 2
_MOST_TRIED = 240
_MOST_TEXT = 6_000
_MOST_ANCHOR = 30
_BEFORE = re.compile(r"(\S+[ \t]+)?\S*[ \t]*\Z")
_AFTER = re.compile(r"[ \t]*(\S+)")
_SHAPED = re.compile(r"[^\s\"“”]*[^\s\"“”.,;:!?)\]]")
_KINDS = ("number", "name", "word", "line")


def values_of(text: str | None, brief: Brief) -> dict[str, object]:
    """The values in an answer by output, or by key where the one output is JSON; empty where it can't be read."""
    if text is None or not brief.outputs:
        return {}
    if len(brief.outputs) == 1 and brief.outputs[0][1] not in ("json", "list") and "list" not in brief.outputs[0][1]:
        return {brief.outputs[0][0]: text.strip()}
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return {}
    if len(brief.outputs) == 1 and brief.outputs[0][1] != "json":
        return {brief.outputs[0][0]: value}
    if not isinstance(value, Mapping):
        return {}
    flat: dict[str, object] = {}
    kinds = dict(brief.outputs) if len(brief.outputs) > 1 else {}
    for name, each in value.items():
        if kinds.get(name) == "json" and isinstance(each, Mapping):
            flat.update(each)
        else:
            flat[name] = each
    return flat


def is_right(value: object, found: Sequence[str]) -> bool:
    """Whether texts that were copied make a value: a number by its amount, a list by all of its items."""
    if isinstance(value, list):
        return bool(value) and [str(item).strip() for item in value] == list(found)
    if not found:
        return False
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int | float):
        return number_of(found[0]) == float(value)
    return found[0] == str(value).strip()


def take_edits(brief: Brief, cases: Sequence[Case], name: str, kind: str) -> list[Edit]:
    """New sentences for one output or key that get wrong cases right, at most two; none where fewer than two agree."""
    wanted = []
    for case in cases:
        value = _typed(values_of(case.right, brief).get(name), kind)
        if value is not None and not is_right(value, _said(case, brief, name)):
            wanted.append((case, value))
    present = [take for rule in brief.rules if (take := read_take(rule.text, brief.inputs)) and take.name == name]
    edits: list[Edit] = []
    left = list(wanted)
    while left and len(edits) < _MOST_TAKES:
        best = _best(
            brief, left, name, skip=[*present, *(read_take(str(edit["text"]), brief.inputs) for edit in edits)]
        )
        if best is None:
            break
        take, right, wrong = best
        cured = [case.tag for case, value in left if is_right(value, taken(take, case.inputs))]
        stands = any(taken(each, case.inputs) for case, _ in left for each in present)
        add = {
            "op": "add",
            "section": brief.sections[0],
            "text": take_text(take),
            "after": "start" if stands else "end",
        }
        edits.append(
            {**add, "rationale": f"right in {right} of {right + wrong} cases", "cures": cured, "support": right}
        )
        left = [pair for pair in left if not taken(take, pair[0].inputs)]
    return edits


def copied(brief: Brief, cases: Sequence[Case], name: str, kind: str) -> int:
    """Number of cases that hold the right value of an output verbatim."""
    return sum(
        _typed(values_of(case.right, brief).get(name), kind) is not None
        and any(str(values_of(case.right, brief).get(name)) in text for text in case.inputs.values())
        for case in cases
    )


def _typed(value: object, kind: str) -> object:
    if kind in ("number", "integer") and isinstance(value, str):
        return number_of(value)
    return value


def _said(case: Case, brief: Brief, name: str) -> list[str]:
    value = values_of(case.said, brief).get(name)
    if isinstance(value, list):
        return [str(item).strip() for item in value]
    return [] if value is None else [str(value).strip()]


def _best(
    brief: Brief, cases: Sequence[tuple[Case, object]], name: str, skip: Sequence[Take | None]
) -> tuple[Take, int, int] | None:
    """The sentence that gets most cases right, less those that it gets wrong; of equals the least accidental one."""
    tried: Counter[Take] = Counter()
    for case, value in cases:
        tried.update(set(_candidates(brief, case, value, name)))
    best, found = (0.0, 0, 0, ""), None
    for take, seen in tried.most_common(_MOST_TRIED):
        if take in skip or seen < min(ENOUGH_CASES, len(cases)):
            continue
        results = [(value, taken(take, case.inputs)) for case, value in cases]
        right = sum(is_right(value, texts) for value, texts in results)
        wrong = sum(bool(texts) for _, texts in results) - right
        text = take_text(take)
        add: Edit = {"op": "add", "section": brief.sections[0], "text": text}
        if read_take(text, brief.inputs) != take or is_rejected(brief, add):
            continue
        worth = (right - _AGAINST * wrong, -_accident(take), -len(text), text)
        if (found is None and worth[0] > 0) or (found is not None and worth > best):
            best, found = worth, (take, right, wrong)
    return found


def _accident(take: Take) -> int:
    """Rank how likely a place is right by accident: least by its shape, then by its context, then by number."""
    if take.kind == "shape":
        return 0
    return 1 if take.anchor else 2


def _candidates(brief: Brief, case: Case, value: object, name: str) -> Iterator[Take]:
    """The sentences that get one case right."""
    for field, whole in case.inputs.items():
        text = whole[:_MOST_TEXT]
        place = field if len(brief.inputs) > 1 else None
        for take in _places(text, value, name):
            one = replace(take, field=place)
            if is_right(value, taken(one, case.inputs)):
                yield one


def _places(text: str, value: object, name: str) -> Iterator[Take]:
    if isinstance(value, list):
        yield from _every(text, value, name)
        return
    numeric = isinstance(value, int | float)
    for kind in ("number",) if numeric else _KINDS:
        yield from _tokens(text, value, name, kind, "")
    wanted = str(value)
    at = -1 if numeric or not wanted.strip() else text.find(wanted)
    if at < 0:
        return
    if (shape := _SHAPED.fullmatch(wanted)) and any(not c.isalpha() for c in wanted):
        yield from _tokens(text, value, name, "shape", shape[0])
    for before in _anchors_before(text, at):
        yield Take(name, "rest", anchor=before)
        for after in _anchors_after(text, at + len(wanted)):
            yield Take(name, "between", anchor=before, end=after)


def _tokens(text: str, value: object, name: str, kind: str, shape: str) -> Iterator[Take]:
    matches = list(pattern_of(kind, shape).finditer(text))
    for at, match in enumerate(matches):
        if not is_right(value, [match[0].strip()]):
            continue
        if at < len(ORDINALS):
            yield Take(name, kind, ORDINALS[at], shape=shape)
        if at == len(matches) - 1:
            yield Take(name, kind, "last", shape=shape)
        for before in _anchors_before(text, match.start()):
            yield Take(name, kind, "first", "after", before, shape=shape)
        for after in _anchors_after(text, match.end()):
            yield Take(name, kind, "first", "before", after, shape=shape)


def _every(text: str, value: Sequence[object], name: str) -> Iterator[Take]:
    items = [str(item) for item in value]
    yield from (Take(name, kind, "every") for kind in PATTERNS)
    if items and (shape := _SHAPED.fullmatch(items[0])):
        yield Take(name, "shape", "every", shape=shape[0])


def _anchors_before(text: str, at: int) -> Iterator[str]:
    """The one or two pieces of text before a place, on its line."""
    found = _BEFORE.search(text, max(0, at - 2 * _MOST_ANCHOR), at)
    both = found[0].strip() if found else ""
    yield from _usable(dict.fromkeys((both.split()[-1] if both else "", both)))


def _anchors_after(text: str, at: int) -> Iterator[str]:
    """The mark or the word after a place, on its line."""
    found = _AFTER.match(text, at)
    if found:
        piece = found[1]
        yield from _usable(dict.fromkeys((piece[0] if not piece[0].isalnum() else piece.rstrip(".,;:!?)"), piece)))


def _usable(anchors: Mapping[str, None]) -> Iterator[str]:
    """Anchors that a sentence can quote and that hold no number, which belongs to one case."""
    for anchor in anchors:
        if anchor and len(anchor) <= _MOST_ANCHOR and not re.search(r"[\d\"“”`«»‘’'\n\ue000\ue001]", anchor):
            yield anchor


_MOST_VALUES = 12
_BOOLS = ("true", "false")


@dataclass(frozen=True, slots=True)
class Slot:
    """An output or a key of a JSON output, with the type that the task declares for it, `json` for a key."""

    name: str
    kind: str


def slots_of(brief: Brief) -> list[Slot]:
    """The parts of an answer: the outputs, and the keys that right answers have in place of a JSON output."""
    kinds = dict(brief.outputs)
    found = [Slot(name, kind) for name, kind in brief.outputs if kind != "json"]
    if "json" in kinds.values():
        keys = dict.fromkeys(key for case in brief.cases for key in values_of(case.right, brief))
        found += [Slot(key, "json") for key in keys if key not in kinds]
    return found


def label_view(brief: Brief, slot: Slot, cases: Sequence[Case]) -> Brief | None:
    """The prompt as one about labels, for an output or key that has few values; None where it has many."""
    named = brief.is_structured
    viewed = []
    for case in cases:
        gold = _label(values_of(case.right, brief).get(slot.name), slot, named=named)
        if gold is None:
            continue
        answer = _label(values_of(case.said, brief).get(slot.name), slot, named=named) or ""
        viewed.append(replace(case, gold=gold, answer=answer))
    values = sorted({case.gold for case in viewed if case.gold})
    few = len(values) <= _MOST_VALUES and (slot.kind in ("labels", "bool") or 2 * len(values) <= len(viewed))
    if not viewed or not few or (slot.kind == "json" and 2 * copied(brief, cases, slot.name, slot.kind) > len(viewed)):
        return None
    known = {
        answer for _, rule in brief.lines if _about(answer := rule.answer, named=named) == _head(slot, named=named)
    }
    labels = tuple(sorted({*values, *known}))
    lines = tuple(line for line in brief.lines if line[1].answer in labels)
    return replace(brief, cases=tuple(viewed), labels=labels, lines=lines)


def _head(slot: Slot, *, named: bool) -> str:
    return f"{slot.name} with " if named else ""


def _about(answer: str, *, named: bool) -> str:
    return f"{answer.partition(' with ')[0]} with " if named else ""


def _label(value: object, slot: Slot, *, named: bool) -> str | None:
    """A value as the answer of a rule: `priority with high`; None where a rule can't say it."""
    if value is None or isinstance(value, list | dict):
        return None
    text = value if isinstance(value, str) else json.dumps(value)
    if slot.kind == "json" and isinstance(value, str) and (_is_json(text) or '"' in text or len(text) > 40):
        return None
    return _head(slot, named=named) + text


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except json.JSONDecodeError:
        return False
    return True
