"""Find sentences that copy right answers from the inputs, and split structured answers into parts."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from skillc.dataclass import dataclass
from skillc.json_values import parse_json
from skillc.models.rulebook.briefs import Brief, Case
from skillc.models.rulebook.copying import (
    ORDINALS,
    PATTERNS,
    CopyRule,
    copied_texts,
    copy_rule_text,
    number_of,
    pattern_of,
    read_copy_rule,
)
from skillc.models.rulebook.edits import ENOUGH_CASES, Edit, add_edit, is_rejected

_AGAINST = 1.5
_MOST_RULES = 2
_MOST_TRIED = 240
_MOST_TEXT = 6_000
_MOST_ANCHOR = 30
_BEFORE = re.compile(r"(\S+[ \t]+)?\S*[ \t]*\Z")
_AFTER = re.compile(r"[ \t]*(\S+)")
_SHAPED = re.compile(r"[^\s\"“”]*[^\s\"“”.,;:!?)\]]")
_KINDS = ("number", "name", "word", "line")
_MOST_VALUES = 12
_MOST_LABEL = 40
_NOT_JSON = object()


def values_of(text: str | None, brief: Brief) -> dict[str, object]:
    """Return the values of an answer by output, or by key if the one output is JSON; empty if unreadable."""
    if text is None or not brief.outputs:
        return {}
    if len(brief.outputs) == 1 and brief.outputs[0][1] != "json" and "list" not in brief.outputs[0][1]:
        return {brief.outputs[0][0]: text.strip()}
    value = parse_json(text, _NOT_JSON)
    if value is _NOT_JSON:
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
    """Whether copied texts equal a value: a number by its amount, a list by all of its items."""
    if isinstance(value, list):
        return bool(value) and [str(item).strip() for item in value] == list(found)
    if not found or isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int | float):
        return number_of(found[0]) == float(value)
    return found[0] == str(value).strip()


def copy_edits(brief: Brief, cases: Sequence[Case], name: str, kind: str) -> list[Edit]:
    """Propose at most two sentences for an output or key that correct wrong cases, if at least two cases agree."""
    wrong_cases = []
    for case in cases:
        value = values_of(case.gold_text, brief).get(name)
        if isinstance(value, str) and kind in ("number", "integer"):
            value = number_of(value)
        if value is not None and not is_right(value, _answered(case, brief, name)):
            wrong_cases.append((case, value))
    present = [copy for rule in brief.rules if (copy := read_copy_rule(rule.text, brief.inputs)) and copy.name == name]
    proposed: list[CopyRule] = []
    edits: list[Edit] = []
    left = wrong_cases
    while left and len(edits) < _MOST_RULES:
        best = _best(brief, left, name, skip=[*present, *proposed])
        if best is None:
            break
        copy, right, wrong = best
        proposed.append(copy)
        cured = [case.tag for case, value in left if is_right(value, copied_texts(copy, case.inputs))]
        hidden = any(copied_texts(each, case.inputs) for case, _ in left for each in present)
        why, after = f"right in {right} of {right + wrong} cases", "start" if hidden else "end"
        edits.append({**add_edit(brief, copy_rule_text(copy), why, cured, after), "support": right})
        left = [pair for pair in left if not copied_texts(copy, pair[0].inputs)]
    return edits


def _answered(case: Case, brief: Brief, name: str) -> list[str]:
    value = values_of(case.answer_text, brief).get(name)
    if isinstance(value, list):
        return [str(item).strip() for item in value]
    return [] if value is None else [str(value).strip()]


def _best(
    brief: Brief, cases: Sequence[tuple[Case, object]], name: str, skip: Sequence[CopyRule]
) -> tuple[CopyRule, int, int] | None:
    """Return the sentence with most right cases less wrong ones, with both numbers; the least accidental of equals."""
    tried: Counter[CopyRule] = Counter()
    for case, value in cases:
        tried.update(set(_candidates(brief, case, value, name)))
    best, found = (0.0, 0, 0, ""), None
    for copy, seen in tried.most_common(_MOST_TRIED):
        if copy in skip or seen < min(ENOUGH_CASES, len(cases)):
            continue
        results = [(value, copied_texts(copy, case.inputs)) for case, value in cases]
        right = sum(is_right(value, texts) for value, texts in results)
        wrong = sum(bool(texts) for _, texts in results) - right
        text = copy_rule_text(copy)
        if read_copy_rule(text, brief.inputs) != copy or is_rejected(brief, add_edit(brief, text, "", [])):
            continue
        # By accident, a shape is least likely right, then a context, then a number.
        accident = 0 if copy.kind == "shape" else 1 if copy.anchor else 2
        score = (right - _AGAINST * wrong, -accident, -len(text), text)
        if (found is None and score[0] > 0) or (found is not None and score > best):
            best, found = score, (copy, right, wrong)
    return found


def _candidates(brief: Brief, case: Case, value: object, name: str) -> Iterator[CopyRule]:
    """Yield the sentences that copy the right value of one case."""
    for field, whole in case.inputs.items():
        text = whole[:_MOST_TEXT]
        for copy in _places(text, value, name):
            one = replace(copy, field=field if len(brief.inputs) > 1 else None)
            if is_right(value, copied_texts(one, case.inputs)):
                yield one


def _places(text: str, value: object, name: str) -> Iterator[CopyRule]:
    if isinstance(value, list):
        yield from (CopyRule(name, kind, "every") for kind in PATTERNS)
        if value and (shape := _SHAPED.fullmatch(str(value[0]))):
            yield CopyRule(name, "shape", "every", shape=shape[0])
        return
    numeric = isinstance(value, int | float)
    for kind in ("number",) if numeric else _KINDS:
        yield from _tokens(text, value, name, kind, "")
    expected = str(value)
    at = -1 if numeric or not expected.strip() else text.find(expected)
    if at < 0:
        return
    if (shape := _SHAPED.fullmatch(expected)) and any(not c.isalpha() for c in expected):
        yield from _tokens(text, value, name, "shape", shape[0])
    for before in _anchors_before(text, at):
        yield CopyRule(name, "rest", anchor=before)
        for after in _anchors_after(text, at + len(expected)):
            yield CopyRule(name, "between", anchor=before, end=after)


def _tokens(text: str, value: object, name: str, kind: str, shape: str) -> Iterator[CopyRule]:
    matches = list(pattern_of(kind, shape).finditer(text))
    for at, match in enumerate(matches):
        if not is_right(value, [match[0].strip()]):
            continue
        if at < len(ORDINALS):
            yield CopyRule(name, kind, ORDINALS[at], shape=shape)
        if at == len(matches) - 1:
            yield CopyRule(name, kind, "last", shape=shape)
        for before in _anchors_before(text, match.start()):
            yield CopyRule(name, kind, "first", "after", before, shape=shape)
        for after in _anchors_after(text, match.end()):
            yield CopyRule(name, kind, "first", "before", after, shape=shape)


def _anchors_before(text: str, at: int) -> Iterator[str]:
    """Yield the one or two words before a place, on its line."""
    found = _BEFORE.search(text, max(0, at - 2 * _MOST_ANCHOR), at)
    both = found[0].strip() if found else ""
    yield from _usable(dict.fromkeys((both.split()[-1] if both else "", both)))


def _anchors_after(text: str, at: int) -> Iterator[str]:
    """Yield the punctuation or the word after a place, on its line."""
    found = _AFTER.match(text, at)
    if found:
        piece = found[1]
        yield from _usable(dict.fromkeys((piece[0] if not piece[0].isalnum() else piece.rstrip(".,;:!?)"), piece)))


def _usable(anchors: Mapping[str, None]) -> Iterator[str]:
    """Yield the anchors that a sentence can quote and that have no number, which belongs to one case."""
    for anchor in anchors:
        if anchor and len(anchor) <= _MOST_ANCHOR and not re.search(r"[\d\"“”`«»‘’'\n\ue000\ue001]", anchor):
            yield anchor


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """An output or a key of a JSON output, with its declared type; `json` for a key."""

    name: str
    kind: str


def answer_parts(brief: Brief) -> list[AnswerPart]:
    """Return the parts of an answer: the outputs, and the keys of right answers in place of a JSON output."""
    kinds = dict(brief.outputs)
    found = [AnswerPart(name, kind) for name, kind in brief.outputs if kind != "json"]
    if "json" in kinds.values():
        keys = dict.fromkeys(key for case in brief.cases for key in values_of(case.gold_text, brief))
        found += [AnswerPart(key, "json") for key in keys if key not in kinds]
    return found


def label_view(brief: Brief, part: AnswerPart, cases: Sequence[Case]) -> Brief | None:
    """Return the prompt with one output or key as its labels; None if it has many values."""
    head = f"{part.name} with " if brief.is_structured else ""
    viewed = []
    for case in cases:
        gold = _label(values_of(case.gold_text, brief).get(part.name), part, head)
        if gold is None:
            continue
        answer = _label(values_of(case.answer_text, brief).get(part.name), part, head) or ""
        viewed.append(replace(case, gold=gold, answer=answer))
    values = sorted({case.gold for case in viewed if case.gold})
    few = len(values) <= _MOST_VALUES and (part.kind in ("labels", "bool") or 2 * len(values) <= len(viewed))
    if not viewed or not few or (part.kind == "json" and 2 * _count_verbatim(brief, cases, part.name) > len(viewed)):
        return None
    known = {
        rule.answer for _, rule in brief.lines if not head or f"{rule.answer.partition(' with ')[0]} with " == head
    }
    labels = tuple(sorted({*values, *known}))
    lines = tuple(line for line in brief.lines if line[1].answer in labels)
    return replace(brief, cases=tuple(viewed), labels=labels, lines=lines)


def _count_verbatim(brief: Brief, cases: Sequence[Case], name: str) -> int:
    """Count the cases whose inputs contain the right value of a key verbatim."""
    values = [(case, values_of(case.gold_text, brief).get(name)) for case in cases]
    return sum(any(str(value) in text for text in case.inputs.values()) for case, value in values if value is not None)


def _label(value: object, part: AnswerPart, head: str) -> str | None:
    """Return a value as the answer of a rule, such as `priority with high`; None if a rule cannot write it."""
    if value is None or isinstance(value, list | dict):
        return None
    text = value if isinstance(value, str) else json.dumps(value)
    if part.kind == "json" and isinstance(value, str):
        is_json = parse_json(text, _NOT_JSON) is not _NOT_JSON
        if is_json or '"' in text or len(text) > _MOST_LABEL:
            return None
    return head + text
