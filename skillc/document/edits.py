"""Edits on rules: `add`, `replace`, `delete`, `move`, by id, in trainable sections.

Only rules of trainable sections have ids, so no edit can name anything else. An edit is applied whole or refused with
a reason; it is never applied in part, elsewhere, or silently not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from skillc.document.markdown import (
    Mark,
    Refusal,
    below_section,
    blocks_of,
    hidden_character,
    mark_of,
    rule_text,
    same_words,
    topic_text,
)
from skillc.document.skill import Document, Rule, Section, new_id
from skillc.fences import describe_unclosed
from skillc.text import listed

START = "start"


@dataclass(frozen=True, slots=True)
class Add:
    """A new rule at the end of its topic, behind the rule `after`, or first of all (`after="start"`).

    Without a topic of its own a rule takes that of the rule it is put behind. A text that begins with `1. ` is a step
    of a numbered list, as is one that is put between two steps; `mark` overrules both.
    """

    section: str
    text: str
    topic: str | None = None
    rationale: str = ""
    after: str | None = None
    mark: Mark | None = None


@dataclass(frozen=True, slots=True)
class Replace:
    """A new text for a rule. It keeps its id, its topic and its place, its rationale where none is given, and its mark
    where neither `mark` nor the text has one.
    """

    rule: str
    text: str
    rationale: str = ""
    mark: Mark | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a rule."""

    rule: str
    rationale: str = ""


@dataclass(frozen=True, slots=True)
class Move:
    """A rule elsewhere: behind the rule `after`, whose section and topic it takes; first or last of its own section
    with `after="start"` and `after=None`, where it keeps its topic.
    """

    rule: str
    after: str | None = None
    rationale: str = ""


Edit = Add | Replace | Delete | Move
_KINDS: dict[str, type[Edit]] = {"add": Add, "replace": Replace, "delete": Delete, "move": Move}


@dataclass(frozen=True, slots=True)
class EditResult:
    """The result of one edit: `added 3fa2c1 to rules`, or why it was refused.

    Attributes:
        rule: the rule that it touched.
        repeats: whether it was refused because the document has it already.
    """

    applied: bool
    message: str
    rule: str | None = None
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class EditedDocument:
    """A document after edits, and one result for each of them, in order."""

    document: Document
    results: tuple[EditResult, ...]


_Outcome = tuple[Document, str, str]  # document, rule id, message


def apply_edits(document: Document, edits: Sequence[Edit]) -> EditedDocument:
    """Apply edits in order, each to what those before it left. Never raises; refused edits change nothing."""
    gone: set[str] = set()
    results: list[EditResult] = []
    for edit in edits:
        outcome = _apply(document, edit, gone)
        if isinstance(outcome, Refusal):
            results.append(EditResult(False, outcome.reason, repeats=outcome.repeats))
            continue
        document, rule, message = outcome
        if isinstance(edit, Delete):
            gone.add(rule)
        results.append(EditResult(True, message, rule))
    return EditedDocument(document, tuple(results))


def _apply(document: Document, edit: Edit, gone: set[str]) -> _Outcome | Refusal:
    if isinstance(edit, Add):
        outcome = _add(document, edit, gone)
    elif isinstance(edit, Replace):
        outcome = _replace(document, edit, gone)
    elif isinstance(edit, Delete):
        outcome = _delete(document, edit, gone)
    else:
        outcome = _move(document, edit, gone)
    if isinstance(outcome, Refusal):
        return outcome
    return _over_limit(document, outcome[0]) or outcome


def _add(document: Document, edit: Add, gone: set[str]) -> _Outcome | Refusal:
    section = trainable_section(document, edit.section)
    if isinstance(section, Refusal):
        return section
    topic = topic_text(edit.topic)
    if isinstance(topic, Refusal):
        return topic
    topic = _known_topic(section, topic)
    text = rule_text(edit.text, edit.mark if edit.mark is not None else "-")
    if isinstance(text, Refusal):
        return text
    twin = _twin(document, text)
    if twin:
        return Refusal(f"rule `{twin.id}` says the same", repeats=True)
    anchor = None if edit.after in (None, "", START) else _place(document, edit.after or "", gone)
    if isinstance(anchor, Refusal):
        return anchor
    if anchor and anchor[0].name != section.name:
        return Refusal(f"rule `{anchor[1].id}` stands in section `{anchor[0].name}`, not in `{section.name}`")
    if anchor and topic is None:
        topic = anchor[1].topic
    mark = mark_of(edit.text) if edit.mark is None else edit.mark
    if mark is None:
        mark = "1." if anchor and anchor[1].topic == topic and _between_steps(section.rules, anchor[1]) else "-"
    rule = Rule(new_id(section.name, text, document.ids), text, topic, edit.rationale, mark)
    message = f"added {rule.id} to {section.name}"
    if anchor and anchor[1].topic != topic:
        message += f", at the end of its topic: {anchor[1].id} stands under another one"
    rules = _inserted(section.rules, rule, anchor[1] if anchor else None, first=edit.after == START)
    return document.with_section(replace(section, rules=rules)), rule.id, message


def _replace(document: Document, edit: Replace, gone: set[str]) -> _Outcome | Refusal:
    place = _place(document, edit.rule, gone)
    if isinstance(place, Refusal):
        return place
    section, rule = place
    mark = edit.mark if edit.mark is not None else mark_of(edit.text) or rule.mark
    text = rule_text(edit.text, mark)
    if isinstance(text, Refusal):
        return text
    if (text, mark) == (rule.text, rule.mark):
        return Refusal(f"rule `{rule.id}` has this text already", repeats=True)
    twin = _twin(document, text)
    if twin and twin.id != rule.id:
        return Refusal(f"rule `{twin.id}` says the same", repeats=True)
    new = replace(rule, text=text, rationale=edit.rationale or rule.rationale, mark=mark)
    rules = tuple(new if r.id == rule.id else r for r in section.rules)
    return document.with_section(replace(section, rules=rules)), rule.id, f"replaced {rule.id} in {section.name}"


def _delete(document: Document, edit: Delete, gone: set[str]) -> _Outcome | Refusal:
    place = _place(document, edit.rule, gone)
    if isinstance(place, Refusal):
        return place
    section, rule = place
    return document.with_section(_without(section, rule)), rule.id, f"deleted {rule.id} from {section.name}"


def _move(document: Document, edit: Move, gone: set[str]) -> _Outcome | Refusal:
    place = _place(document, edit.rule, gone)
    if isinstance(place, Refusal):
        return place
    section, rule = place
    to, anchor = section, None
    if edit.after not in (None, "", START):
        found = _place(document, edit.after or "", gone)
        if isinstance(found, Refusal):
            return found
        to, anchor = found
        if anchor.id == rule.id:
            return Refusal(f"rule `{rule.id}` cannot stand behind itself")
    moved = replace(rule, topic=anchor.topic) if anchor else rule
    without = document.with_section(_without(section, rule))
    home = without.section(to.name) or to
    rules = _inserted(home.rules, moved, anchor, first=edit.after == START)
    after = without.with_section(replace(home, rules=rules))
    if after == document:
        return Refusal(f"rule `{rule.id}` stands there already", repeats=True)
    where = f"behind {anchor.id}" if anchor else "to the start" if edit.after == START else "to the end"
    return after, rule.id, f"moved {rule.id} {where} in {to.name}"


# ---- what the edits share -------------------------------------------------------------------------


def _place(document: Document, id: str, gone: set[str]) -> tuple[Section, Rule] | Refusal:  # noqa: A002
    name = id.strip().strip("[]#` ").lower()
    rule, section = document.rule(name), document.section_of(name)
    if rule and section:
        return section, rule
    if name in gone:
        return Refusal(f"rule `{name}` was deleted by an edit before this one")
    return Refusal(f"there is no rule `{id}`")


def trainable_section(document: Document, name: str) -> Section | Refusal:
    """Return the trainable section of a name, or why there is none that may be edited."""
    section = document.section(name.strip())
    if section is None:
        there = listed(s.name for s in document.sections if s.mode == "trainable")
        return Refusal(f"there is no section `{name}`; trainable is {there or 'none'}")
    if section.mode == "slow":
        return Refusal(f"section `{section.name}` is slow: it is rewritten at the end of an epoch, not edited")
    if section.mode == "frozen":
        return Refusal(f"section `{section.name}` is frozen")
    return section


def _known_topic(section: Section, topic: str | None) -> str | None:
    """Return the spelling that the section has for a topic already."""
    if topic is None:
        return None
    known = (rule.topic for rule in section.rules if rule.topic and same_words(rule.topic) == same_words(topic))
    return next(known, topic)


def _twin(document: Document, text: str) -> Rule | None:
    words = same_words(text)
    return next((rule for rule in document.rules if same_words(rule.text) == words), None)


def _inserted(rules: tuple[Rule, ...], rule: Rule, anchor: Rule | None, *, first: bool) -> tuple[Rule, ...]:
    """Return the rules with one more; the section then groups them by topic."""
    if first:
        return (rule, *rules)
    if anchor is None or anchor.topic != rule.topic:
        return (*rules, rule)
    at = next(i for i, r in enumerate(rules) if r.id == anchor.id) + 1
    return (*rules[:at], rule, *rules[at:])


def _between_steps(rules: tuple[Rule, ...], rule: Rule) -> bool:
    """Return whether a rule and the one behind it are steps of one numbered list."""
    at = rules.index(rule)
    return all(each.mark == "1." and each.topic == rule.topic for each in rules[at : at + 2]) and at + 1 < len(rules)


def _without(section: Section, rule: Rule) -> Section:
    return replace(section, rules=tuple(r for r in section.rules if r.id != rule.id))


def _over_limit(before: Document, after: Document) -> Refusal | None:
    """Return a section over its limit may still shrink, never grow."""
    for old, new in zip(before.sections, after.sections, strict=True):
        if old is new or new.limit is None:
            continue
        if new.tokens > new.limit and new.tokens > old.tokens:
            return Refusal(f"section `{new.name}` would have {new.tokens} tokens, its limit is {new.limit}")
    return None


# ---- rewriting ------------------------------------------------------------------------------------


def rewrite(document: Document, section: str, text: str, rationale: str = "") -> EditedDocument:
    """Return a whole new text for a trainable or slow section.

    In a trainable section rules whose words stay keep their id and rationale, the others are born anew, and those that
    say the same become one. In a slow section headings become `###`, below the section's own, and an empty text
    empties it. Refused as edits are, and whole.
    """
    old = document.section(section.strip())
    outcome = _rewritten(document, old, text, rationale) if old else Refusal(f"there is no section `{section}`")
    if isinstance(outcome, Refusal):
        return EditedDocument(document, (EditResult(False, outcome.reason),))
    after = document.with_section(outcome)
    if after == document:
        return EditedDocument(
            document, (EditResult(False, f"section `{outcome.name}` has this text already", repeats=True),)
        )
    refused = _over_limit(document, after)
    if refused:
        return EditedDocument(document, (EditResult(False, refused.reason),))
    return EditedDocument(after, (EditResult(True, f"rewrote {outcome.name}"),))


def _rewritten(document: Document, old: Section, text: str, rationale: str) -> Section | Refusal:
    if old.mode == "frozen":
        return Refusal(f"section `{old.name}` is frozen")
    reason = hidden_character(text) or describe_unclosed(text)
    if reason:
        return Refusal(reason)
    if old.mode == "slow":
        return replace(old, text=below_section(text))
    known = {same_words(rule.text): rule for rule in old.rules}
    seen = {same_words(rule.text) for s in document.sections if s.name != old.name for rule in s.rules}
    kept_ids = set(document.ids)
    rules: list[Rule] = []
    for block in blocks_of(text):
        clean, heading_text = rule_text(block.text, block.mark), topic_text(block.topic)
        if isinstance(clean, Refusal):
            return clean
        if isinstance(heading_text, Refusal):
            return heading_text
        words = same_words(clean)
        if words in seen:
            continue
        seen.add(words)
        rule = known.get(words) or Rule(new_id(old.name, clean, kept_ids), clean, None, rationale)
        kept_ids.add(rule.id)
        rules.append(replace(rule, text=clean, topic=heading_text, mark=block.mark))
    if not rules:
        return Refusal("the text holds no rule")
    return replace(old, rules=tuple(rules))


# ---- JSON -----------------------------------------------------------------------------------------


def edit_to_json(edit: Edit) -> dict[str, Any]:
    """Return an edit as plain values: `op` and its fields, `mark` where it has one."""
    op = next(name for name, kind in _KINDS.items() if isinstance(edit, kind))
    return {"op": op, **{name: value for name, value in asdict(edit).items() if name != "mark" or value is not None}}
