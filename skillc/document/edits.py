"""Edits on rules: `add`, `replace`, `delete`, `move`, by id, in trainable sections.

Only rules of trainable sections have ids, so no edit can name anything else. An edit is applied completely or refused
with a reason. The one rule of a script can only be replaced, as a whole or in one place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any

from skillc.dataclass import dataclass
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
from skillc.document.tool_lines import name_problem
from skillc.fences import describe_unclosed
from skillc.text import listed, shown

START = "start"
_SCRIPT_CHARACTERS = 200_000
_WHOLE_BLOCK = re.compile(r"\s*(`{3,})[^\n`]*\n(.*\n)\1[ \t]*\n?\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Add:
    """Add a rule at the end of its topic, behind the rule `after`, or first of all (`after="start"`).

    Without a topic the rule takes that of the rule `after`. A text that begins with `1. ` is a step of a numbered list,
    as is one between two steps; `mark` overrides both.
    """

    section: str
    text: str
    topic: str | None = None
    rationale: str = ""
    after: str | None = None
    mark: Mark | None = None


@dataclass(frozen=True, slots=True)
class Replace:
    """Replace the text of a rule. The rule keeps its id, topic and place, its rationale if none is given, and its mark
    if neither `mark` nor the text has one.

    In a script, `old` is the part that the text replaces; empty for the whole script.
    """

    rule: str
    text: str
    rationale: str = ""
    mark: Mark | None = None
    old: str = ""


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a rule."""

    rule: str
    rationale: str = ""


@dataclass(frozen=True, slots=True)
class Move:
    """Move a rule behind the rule `after`, whose section and topic it takes, or to the start (`after="start"`) or the
    end (`after=None`) of its section, where it keeps its topic.
    """

    rule: str
    after: str | None = None
    rationale: str = ""


Edit = Add | Replace | Delete | Move
_KINDS: dict[str, type[Edit]] = {"add": Add, "replace": Replace, "delete": Delete, "move": Move}


@dataclass(frozen=True, slots=True)
class EditResult:
    """The result of one edit.

    Attributes:
        message: `added 3fa2c1 to rules`, or why the edit was refused.
        rule: the rule that it changed.
        repeats: whether it was refused because the document already has it.
    """

    applied: bool
    message: str
    rule: str | None = None
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class EditedDocument:
    """A document after edits, and the result of each of them, in order."""

    document: Document
    results: tuple[EditResult, ...]


_Outcome = tuple[Document, str, str]
"""The document after an edit, the id of the changed rule, and the message."""


def apply_edits(document: Document, edits: Sequence[Edit]) -> EditedDocument:
    """Apply edits in order, each to the result of those before it. Never raises; refused edits change nothing."""
    deleted: set[str] = set()
    results: list[EditResult] = []
    for edit in edits:
        try:
            after, rule, message = _apply(document, edit, deleted)
            _check_limits(document, after)
        except Refusal as refusal:
            results.append(EditResult(False, refusal.reason, repeats=refusal.repeats))
            continue
        document = after
        if isinstance(edit, Delete):
            deleted.add(rule)
        results.append(EditResult(True, message, rule))
    return EditedDocument(document, tuple(results))


def _apply(document: Document, edit: Edit, deleted: set[str]) -> _Outcome:
    if isinstance(edit, Add):
        return _add(document, edit, deleted)
    section, rule = _find(document, edit.rule, deleted)
    if section.is_script:
        return _edit_script(document, edit, section, rule)
    if isinstance(edit, Replace):
        return _replace(document, edit, section, rule)
    if isinstance(edit, Delete):
        after = document.with_section(_without(section, rule))
        return after, rule.id, f"deleted {rule.id} from {section.name}"
    return _move(document, edit, section, rule, deleted)


def _edit_script(document: Document, edit: Replace | Delete | Move, section: Section, rule: Rule) -> _Outcome:
    if not isinstance(edit, Replace):
        raise Refusal(f"rule `{rule.id}` is the script `{section.file}`, which can only be replaced")
    new = replace(rule, text=_new_script_text(rule, edit.text, edit.old), rationale=edit.rationale or rule.rationale)
    after = document.with_section(replace(section, rules=(new,)))
    return after, rule.id, f"{'changed' if edit.old else 'replaced'} {rule.id} in {section.name}"


def _new_script_text(rule: Rule, text: str, old: str = "") -> str:
    """Return a script with `text` in place of `old`, which must occur once, or as a whole if `old` is empty.

    A whole text in a code block is taken out of it, and ends with a newline if the present one does.
    """
    if old:
        first, last = rule.text.find(old), rule.text.rfind(old)
        if first < 0 or first != last:
            where = "does not occur in it" if first < 0 else "occurs in more than one place"
            raise Refusal(f"script `{rule.id}`: the text to replace, {shown(old, 80)}, {where}; it must occur once")
        after = rule.text[:first] + text + rule.text[first + len(old) :]
    else:
        block = _WHOLE_BLOCK.fullmatch(text)
        after = block[2] if block is not None else text
        after += "\n" if rule.text.endswith("\n") and not after.endswith("\n") else ""
    if after == rule.text:
        raise Refusal(f"script `{rule.id}` has this text already", repeats=True)
    if not after.strip():
        raise Refusal(f"script `{rule.id}` would be empty")
    hidden = hidden_character(after)
    if hidden and not hidden_character(rule.text):
        raise Refusal(hidden)
    if len(after) > _SCRIPT_CHARACTERS:
        raise Refusal(f"the script would be longer than {_SCRIPT_CHARACTERS:,} characters")
    return after


def _add(document: Document, edit: Add, deleted: set[str]) -> _Outcome:
    section = trainable_section(document, edit.section)
    if section.is_script:
        ids = listed(rule.id for rule in section.rules)
        raise Refusal(f"section `{section.name}` is the script `{section.file}`: replace {ids}")
    topic = _known_topic(section, topic_text(edit.topic))
    text = rule_text(edit.text, edit.mark if edit.mark is not None else "-")
    _check_new(document, text)
    anchor = None
    if edit.after not in (None, "", START):
        home, anchor = _find(document, edit.after or "", deleted)
        if home.name != section.name:
            raise Refusal(f"rule `{anchor.id}` stands in section `{home.name}`, not in `{section.name}`")
        topic = topic if topic is not None else anchor.topic
    mark = mark_of(edit.text) if edit.mark is None else edit.mark
    if mark is None:
        mark = "1." if anchor and anchor.topic == topic and _between_steps(section.rules, anchor) else "-"
    rule = Rule(new_id(section.name, text, document.ids), text, topic, edit.rationale, mark)
    message = f"added {rule.id} to {section.name}"
    if anchor and anchor.topic != topic:
        message += f", at the end of its topic: {anchor.id} stands under another one"
    rules = _inserted(section.rules, rule, anchor, first=edit.after == START)
    return document.with_section(replace(section, rules=rules)), rule.id, message


def _replace(document: Document, edit: Replace, section: Section, rule: Rule) -> _Outcome:
    if edit.old:
        raise Refusal(f"rule `{rule.id}` is no script, so `text` replaces it as a whole, without `old`")
    mark = edit.mark if edit.mark is not None else mark_of(edit.text) or rule.mark
    text = rule_text(edit.text, mark)
    if (text, mark) == (rule.text, rule.mark):
        raise Refusal(f"rule `{rule.id}` has this text already", repeats=True)
    _check_new(document, text, instead_of=rule)
    new = replace(rule, text=text, rationale=edit.rationale or rule.rationale, mark=mark)
    rules = tuple(new if r.id == rule.id else r for r in section.rules)
    return document.with_section(replace(section, rules=rules)), rule.id, f"replaced {rule.id} in {section.name}"


def _move(document: Document, edit: Move, section: Section, rule: Rule, deleted: set[str]) -> _Outcome:
    to, anchor, moved = section, None, rule
    if edit.after not in (None, "", START):
        to, anchor = _find(document, edit.after or "", deleted)
        if anchor.id == rule.id:
            raise Refusal(f"rule `{rule.id}` cannot stand behind itself")
        if to.is_script:
            raise Refusal(f"rule `{anchor.id}` is the script `{to.file}`, where no rule can be")
        moved = replace(rule, topic=anchor.topic)
    without = document.with_section(_without(section, rule))
    home = without.section(to.name) or to
    rules = _inserted(home.rules, moved, anchor, first=edit.after == START)
    after = without.with_section(replace(home, rules=rules))
    if after == document:
        raise Refusal(f"rule `{rule.id}` stands there already", repeats=True)
    where = f"behind {anchor.id}" if anchor else "to the start" if edit.after == START else "to the end"
    return after, rule.id, f"moved {rule.id} {where} in {to.name}"


# ---- shared by the edits --------------------------------------------------------------------------


def _find(document: Document, id: str, deleted: set[str]) -> tuple[Section, Rule]:  # noqa: A002
    """Return a rule and its section."""
    name = plain_id(id)
    rule, section = document.rule(name), document.section_of(name)
    if rule and section:
        return section, rule
    if name in deleted:
        raise Refusal(f"rule `{name}` was deleted by an edit before this one")
    raise Refusal(f"there is no rule `{id}`")


def plain_id(text: str) -> str:
    """Return the id in a text such as `[3FA2C1]`."""
    return text.strip().strip("[]#` ").lower()


def trainable_section(document: Document, name: str) -> Section:
    """Return the trainable section of a name.

    Raises:
        Refusal: it does not exist or may not be edited.
    """
    section = document.section(name.strip())
    if section is None:
        trainable = listed(s.name for s in document.sections if s.mode == "trainable")
        raise Refusal(f"there is no section `{name}`; trainable is {trainable or 'none'}")
    if section.mode == "slow":
        raise Refusal(f"section `{section.name}` is slow: it is rewritten at the end of an epoch, not edited")
    if section.mode == "frozen":
        raise Refusal(f"section `{section.name}` is frozen")
    return section


def _known_topic(section: Section, topic: str | None) -> str | None:
    """Return a topic in the spelling that the section already has for it."""
    if topic is None:
        return None
    known = (rule.topic for rule in section.rules if rule.topic and same_words(rule.topic) == same_words(topic))
    return next(known, topic)


def _check_new(document: Document, text: str, *, instead_of: Rule | None = None) -> None:
    """Refuse a text that another rule already has."""
    words = same_words(text)
    twin = next((rule for rule in document.rules if same_words(rule.text) == words), None)
    if twin and (instead_of is None or twin.id != instead_of.id):
        raise Refusal(f"rule `{twin.id}` says the same", repeats=True)


def _inserted(rules: tuple[Rule, ...], rule: Rule, anchor: Rule | None, *, first: bool) -> tuple[Rule, ...]:
    """Insert a rule; the section then groups its rules by topic."""
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


def _check_limits(before: Document, after: Document) -> None:
    """Refuse a section that grows over its limit, or gives a tool a wrong name. One over its limit may shrink."""
    for old, new in zip(before.sections, after.sections, strict=True):
        if old is new:
            continue
        if new.renames is not None and (problem := name_problem(new, new.renames)) is not None:
            raise Refusal(problem)
        if new.characters is not None:
            size = len(new.body)
            if not new.rules:
                raise Refusal(f"section `{new.name}` would be empty")
            if size > new.characters and size > len(old.body):
                raise Refusal(f"section `{new.name}` would have {size} characters, its limit is {new.characters}")
        if new.limit is not None and new.tokens > old.tokens:
            check_limit(new)


def check_limit(section: Section) -> None:
    """Check the tokens of a section.

    Raises:
        Refusal: it has more than its limit.
    """
    if section.limit is not None and section.tokens > section.limit:
        raise Refusal(f"section `{section.name}` would have {section.tokens} tokens, its limit is {section.limit}")


# ---- rewriting ------------------------------------------------------------------------------------


def rewrite(document: Document, section: str, text: str) -> EditedDocument:
    """Replace the whole text of a trainable or slow section.

    In a trainable section rules whose words do not change keep their id and rationale, and rules with the same words
    become one. In a slow section headings become `###`, and an empty text empties it. Refused as edits are.
    """
    old = document.section(section.strip())
    try:
        if old is None:
            raise Refusal(f"there is no section `{section}`")
        new = _rewritten(document, old, text)
        after = document.with_section(new)
        if after == document:
            raise Refusal(f"section `{new.name}` has this text already", repeats=True)
        _check_limits(document, after)
    except Refusal as refusal:
        return EditedDocument(document, (EditResult(False, refusal.reason, repeats=refusal.repeats),))
    return EditedDocument(after, (EditResult(True, f"rewrote {new.name}"),))


def _rewritten(document: Document, old: Section, text: str) -> Section:
    if old.mode == "frozen":
        raise Refusal(f"section `{old.name}` is frozen")
    if old.is_script:
        (rule,) = old.rules
        return replace(old, rules=(replace(rule, text=_new_script_text(rule, text)),))
    reason = hidden_character(text) or describe_unclosed(text)
    if reason:
        raise Refusal(reason)
    if old.mode == "slow":
        return replace(old, text=below_section(text))
    known = {same_words(rule.text): rule for rule in old.rules}
    seen = {same_words(rule.text) for s in document.sections if s.name != old.name for rule in s.rules}
    taken = set(document.ids)
    rules: list[Rule] = []
    for block in blocks_of(text):
        clean, topic = rule_text(block.text, block.mark), topic_text(block.topic)
        words = same_words(clean)
        if words in seen:
            continue
        seen.add(words)
        rule = known.get(words) or Rule(new_id(old.name, clean, taken), clean)
        taken.add(rule.id)
        rules.append(replace(rule, text=clean, topic=topic, mark=block.mark))
    if not rules:
        raise Refusal("the text holds no rule")
    return replace(old, rules=tuple(rules))


def edit_to_json(edit: Edit) -> dict[str, Any]:
    """Return an edit as plain values: `op` and its fields, `mark` and `old` if it has one."""
    op = next(name for name, kind in _KINDS.items() if isinstance(edit, kind))
    left_out = {("mark", None), ("old", "")}
    return {"op": op, **{name: value for name, value in asdict(edit).items() if (name, value) not in left_out}}


def edit_from_json(value: Mapping[str, Any]) -> Edit | None:
    """Read the values of `edit_to_json`; further keys are ignored. None for values that are no edit."""
    kind = _KINDS.get(str(value.get("op")))
    if kind is None:
        return None
    names = {each.name for each in fields(kind)}
    try:
        edit: Edit = kind(**{name: each for name, each in value.items() if name in names})
    except TypeError:
        return None
    return edit
