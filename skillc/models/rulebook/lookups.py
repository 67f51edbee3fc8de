"""Lookups: rulebook searches the batch for the signs of its rules, and gives up what right cases speak against."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skillc.models.rulebook.briefs import Brief, attributes_of, plain, value_of
from skillc.models.rulebook.edits import Edit
from skillc.models.rulebook.induce import PURE
from skillc.models.rulebook.reading import texts
from skillc.models.rulebook.sentences import Group, normal, read_sentence
from skillc.models.rulebook.wording import Seen, evidence_text, ordered_signs, read_evidence, rule_text

_FOUND = re.compile(r"<found>\n(.*?)\n</found>", re.DOTALL)
_HIT = re.compile(r"<hit ([^>]*)>(.*?)</hit>", re.DOTALL)
_GOLD = re.compile(r"<gold>(.*?)</gold>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Answered:
    """A search that was answered: its text, and the right answers of the cases with a full score that hold it."""

    text: str
    right: tuple[str, ...]


def answered_lookups(messages: Sequence[Mapping[str, object]], brief: Brief) -> list[Answered]:
    """What was searched for so far in a conversation, and what was found."""
    found = [m[1] for text in texts(messages, "user")[1:] if (m := _FOUND.search(text))]
    asked = [query for text in texts(messages, "assistant") if (query := _query(text)) is not None]
    return [Answered(query, _right(body, brief)) for query, body in zip(asked, found, strict=False)]


def _query(text: str) -> str | None:
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return None
    lookup = value.get("lookup") if isinstance(value, Mapping) else None
    return str(lookup.get("text", "")) if isinstance(lookup, Mapping) else None


def _right(body: str, brief: Brief) -> tuple[str, ...]:
    answers = []
    for attributes, text in _HIT.findall(body):
        gold = _GOLD.search(text)
        if attributes_of(attributes).get("score") == "1" and gold:
            answers.append(value_of(plain(gold[1]), brief.labels, ()) or "")
    return tuple(answers)


def with_lookups(brief: Brief, messages: Sequence[Mapping[str, object]], reply: dict[str, object]) -> dict[str, object]:
    """The reply to a reflection: a search for the first sign not looked up yet, or what is left of the edits."""
    most = int(brief.request.get("lookups", "0"))
    done = answered_lookups(messages, brief)
    looked_up = {normal(each.text) for each in done}
    given = reply.get("edits")
    checked = [_checked(brief, edit, done) for edit in given] if isinstance(given, list) else []
    edits = [edit for edit in checked if edit is not None]
    open_ = [sign for edit in edits for sign in _signs(brief, edit) if sign not in looked_up]
    if open_ and len(done) < most:
        return {"lookup": {"op": "search", "text": open_[0].strip()}}
    return {**reply, "edits": edits}


def _signs(brief: Brief, edit: Mapping[str, object]) -> tuple[str, ...]:
    """The signs of a new rule that is a plain list of them."""
    group = _group(brief, edit)
    return group.triggers if group is not None else ()


def _group(brief: Brief, edit: Mapping[str, object]) -> Group | None:
    rule = read_sentence(str(edit.get("text", "")), brief.inputs)
    if edit.get("op") != "add" or rule is None or len(rule.groups) != 1 or rule.groups[0].negated:
        return None
    return rule.groups[0]


def _checked(brief: Brief, edit: Edit, done: Sequence[Answered]) -> Edit | None:
    """The edit without the signs that right cases of other answers hold too often; None where no sign is left."""
    group, rule = _group(brief, edit), read_sentence(str(edit.get("text", "")), brief.inputs)
    if group is None or rule is None:
        return edit
    seen = read_evidence(str(edit.get("rationale", "")))
    against = {normal(each.text): sum(answer != rule.answer for answer in each.right) for each in done}
    counts = {sign: seen.get(sign, Seen(1, 1)) + Seen(0, against.get(sign, 0)) for sign in group.triggers}
    kept = [sign for sign in group.triggers if counts[sign].own >= PURE * counts[sign].total]
    if len(kept) == len(group.triggers):
        return edit
    if not kept:
        return None
    text = rule_text(group.field or brief.inputs[0], ordered_signs(kept, counts), rule.answer)
    return {**edit, "text": text, "rationale": evidence_text({**seen, **counts})}
