"""A rewritten section as edits. Rules that do not change keep their ids, for history, rejected edits and merging."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from skillc.dataclass import dataclass
from skillc.document.edits import (
    START,
    Add,
    Delete,
    Edit,
    Move,
    Replace,
    apply_edits,
    check_limit,
    plain_id,
    trainable_section,
)
from skillc.document.markdown import Mark, Refusal, mark_of, rule_text, same_words, topic_text
from skillc.document.skill import Document, Rule, Section


@dataclass(frozen=True, slots=True)
class WantedRule:
    """A rule of the rewritten section.

    Attributes:
        text: "" keeps the text of the old rule.
        topic: the sub-heading; "" for none, None keeps that of the old rule.
        rule: id of the old rule that this one keeps or replaces; None for a new rule, or one with an old text.
        rationale: why, for a new text.
        mark: None takes it from the text, then from the old rule.
    """

    text: str = ""
    topic: str | None = None
    rule: str | None = None
    rationale: str = ""
    mark: Mark | None = None


def edits_to(document: Document, name: str, wanted: Sequence[WantedRule]) -> tuple[Edit, ...] | Refusal:
    """Return the edits that turn a trainable section into the wanted rules, in their order and under their topics.

    A rule is kept if its text does not change or its id is named. A text that an earlier rule or another section
    already has is left out. Every edit succeeds on the document, and the section then has the wanted rules.

    Returns:
        The edits, none if nothing changes; or why it is impossible: the section is frozen, over its limit or empty, a
        text is no rule, an id is unknown.
    """
    try:
        section = trainable_section(document, name)
        if section.is_script:
            return _edits_to_script(document, section, wanted)
        target = _target(document, section, wanted)
        if not target:
            raise Refusal(f"section `{section.name}` would be empty")
        check_limit(replace(section, rules=tuple(target)))
    except Refusal as refusal:
        return refusal
    return _edits(document, section, target)


def _edits_to_script(document: Document, section: Section, wanted: Sequence[WantedRule]) -> tuple[Edit, ...] | Refusal:
    if len(wanted) != 1 or not section.rules:
        raise Refusal(f"section `{section.name}` is the script `{section.file}`: give its whole text as one rule")
    (want,), (rule,) = wanted, section.rules
    if not want.text:
        return ()
    edit = Replace(rule.id, want.text, want.rationale)
    (result,) = apply_edits(document, [edit]).results
    if result.applied or result.repeats:
        return (edit,) if result.applied else ()
    return Refusal(result.message)


# ---- the target -----------------------------------------------------------------------------------


def _target(document: Document, section: Section, wanted: Sequence[WantedRule]) -> list[Rule]:
    """Return the wanted rules in reading order; a new one has no id."""
    old = {rule.id: rule for rule in section.rules}
    by_words = {same_words(rule.text): rule.id for rule in section.rules}
    seen = {same_words(rule.text) for rule in document.rules if rule.id not in old}
    topics = {same_words(rule.topic): rule.topic for rule in section.rules if rule.topic}
    cleaned: list[tuple[str, str | None, str | None, str, Mark | None]] = []
    for want in wanted:
        known = _named(section, old, want)
        mark = mark_of(want.text) if want.mark is None else want.mark
        like = mark if mark is not None else known.mark if known else "-"
        text = rule_text(want.text or (known.text if known else ""), like)
        topic = topic_text(known.topic if known and want.topic is None else want.topic)
        if same_words(text) in seen:
            continue
        seen.add(same_words(text))
        spelled = topics.setdefault(same_words(topic), topic) if topic else None
        cleaned.append((text, spelled, known.id if known else None, want.rationale, mark))
    # Texts are matched before ids: two rules that swap their texts are two rules that move.
    taken = {by_words[same_words(text)] for text, *_ in cleaned if same_words(text) in by_words}
    rules: list[Rule] = []
    for text, topic, claimed, rationale, mark in cleaned:
        own = by_words.get(same_words(text))
        if own is None and claimed is not None and claimed not in taken:
            own = claimed
            taken.add(claimed)
        before = old.get(own or "")
        why = before.rationale if before and before.text == text else rationale or (before.rationale if before else "")
        rules.append(Rule(own or "", text, topic, why, mark if mark is not None else before.mark if before else "-"))
    return list(Section(section.name, "trainable", rules=tuple(rules)).rules) if rules else []


def _named(section: Section, old: dict[str, Rule], want: WantedRule) -> Rule | None:
    """Return the old rule that a wanted one names. An unknown id is refused only if there is no text."""
    name = plain_id(want.rule or "")
    if name not in old and not want.text.strip():
        raise Refusal(f"there is no rule `{want.rule or ''}` in section `{section.name}`")
    return old.get(name)


# ---- the edits ------------------------------------------------------------------------------------


class _Walk:
    """The document after the edits so far."""

    def __init__(self, document: Document, section: str) -> None:
        self.edits: list[Edit] = []
        self._document = document
        self._section = section

    @property
    def rules(self) -> tuple[Rule, ...]:
        section = self._document.section(self._section)
        return section.rules if section else ()

    def do(self, *edits: Edit) -> bool:
        """Apply edits together, or none if one is refused."""
        applied = apply_edits(self._document, edits)
        if not all(result.applied for result in applied.results):
            return False
        self._document = applied.document
        self.edits += edits
        return True


def _edits(document: Document, section: Section, target: Sequence[Rule]) -> tuple[Edit, ...]:
    """Return the edits: deletions, then new texts, those that shrink first, then moves and additions from the top."""
    walk = _Walk(document, section.name)
    kept = {rule.id: rule for rule in target if rule.id}
    for rule in section.rules:
        if rule.id not in kept:
            walk.do(Delete(rule.id, "the rewrite leaves it out"))
    changed = [rule for rule in section.rules if rule.id in kept and _words(kept[rule.id]) != _words(rule)]
    changed.sort(key=lambda rule: len(kept[rule.id].text) - len(rule.text))
    for rule in changed:
        want = kept[rule.id]
        walk.do(Replace(rule.id, want.text, want.rationale, None if want.mark == rule.mark else want.mark))
    for at, rule in enumerate(target):
        if not _placed(walk, section.name, target, at, rule):
            _add_rest(walk, section.name, target, at)
            break
    return tuple(walk.edits)


def _as_wanted(rules: Sequence[Rule], target: Sequence[Rule], count: int) -> bool:
    """Return whether the first rules are those of the target."""
    return [(*_words(r), r.topic) for r in rules[:count]] == [(*_words(r), r.topic) for r in target[:count]]


def _words(rule: Rule) -> tuple[str, Mark]:
    return rule.text, rule.mark


def _placed(walk: _Walk, section: str, target: Sequence[Rule], at: int, want: Rule) -> bool:
    """Put the rule of one place there, after all before it are in place; return False if no move can."""
    rules = walk.rules
    if _as_wanted(rules, target, at + 1):
        return True
    if at == 0:
        keeps_topic = any(rule.id == want.id and rule.topic == want.topic for rule in rules)
        moved = (not want.id or keeps_topic) and walk.do(_put(section, want, START))
    elif target[at - 1].topic == want.topic:
        moved = walk.do(_put(section, want, rules[at - 1].id))
    else:
        moved = _put_first_of_topic(walk, section, want, rules[at].id if at < len(rules) else None)
    return moved and _as_wanted(walk.rules, target, at + 1)


def _put(section: str, want: Rule, after: str | None) -> Edit:
    if want.id:
        return Move(want.id, after)
    return Add(section, want.text, want.topic, want.rationale, after, None if want.mark == "-" else want.mark)


def _put_first_of_topic(walk: _Walk, section: str, want: Rule, head: str | None) -> bool:
    """Put a rule first in its topic: no edit inserts before the first rule, so that one moves behind the new first."""
    if head is None or next(rule.topic for rule in walk.rules if rule.id == head) != want.topic:
        return not want.id and walk.do(_put(section, want, None))
    here = next((rule for rule in walk.rules if rule.id == want.id), None)
    if (here is None or here.topic != want.topic) and not walk.do(_put(section, want, head)):
        return False
    own = next((rule.id for rule in walk.rules if rule.text == want.text), None)
    return own is not None and own != head and walk.do(*_before(walk, head, own))


def _before(walk: _Walk, head: str, own: str) -> tuple[Edit, ...]:
    """Return the moves that put the rule `own` in front of the head of its topic."""
    order = [rule.id for rule in walk.rules]
    closer = () if order.index(own) == order.index(head) + 1 else (Move(own, head),)
    return (*closer, Move(head, own))


def _add_rest(walk: _Walk, section: str, target: Sequence[Rule], at: int) -> None:
    """Delete and add again all rules from one place on, in their order."""
    placed = {rule.text for rule in target[:at]}
    for rule in walk.rules:
        if rule.text not in placed:
            walk.do(Delete(rule.id, "the rewrite puts it elsewhere"))
    for rule in target[at:]:
        walk.do(_put(section, replace(rule, id=""), None))
