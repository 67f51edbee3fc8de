"""How much a candidate differs from the incumbent: the quantity `change(candidate)` of a gate."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from skillc.document.skill import Document, Rule, Section, tokens
from skillc.tokens import count_tokens, split_tokens


def change(incumbent: Document, candidate: Document) -> Fraction:
    """Tokens inserted plus deleted, divided by max(tokens(incumbent), sum of section limits) (ENGINE section 3).

    Rules are matched by id, then by equal text; a changed one counts the tokens that a shortest edit script inserts
    and deletes, a new or a missing one all of its own. Moving a rule costs nothing; a topic that comes or goes counts
    its words. Other sections and `about` count by shortest edit script.
    """
    old = {section.name: section for section in incumbent.sections}
    new = {section.name: section for section in candidate.sections}
    trained = {name for name, section in (*old.items(), *new.items()) if section.mode == "trainable"}
    moved = _text_change(incumbent.about, candidate.about)
    moved += _rules_change(incumbent.rules, candidate.rules)
    for name in dict.fromkeys((*old, *new)):
        if name not in trained:
            moved += _text_change(_text(old.get(name)), _text(new.get(name)))
        moved += _topic_change(old.get(name), new.get(name))
    return Fraction(moved, base_of_change(incumbent))


def base_of_change(incumbent: Document) -> int:
    """The tokens that `change` is a share of: max(tokens(incumbent), sum of section limits), at least 1."""
    return max(tokens(incumbent), sum(section.limit or 0 for section in incumbent.sections), 1)


def _text(section: Section | None) -> str:
    return section.text if section else ""


def _rules_change(old: tuple[Rule, ...], new: tuple[Rule, ...]) -> int:
    before = {rule.id: rule.text for rule in old}
    after = {rule.id: rule.text for rule in new}
    both = before.keys() & after.keys()
    moved = sum(_text_change(before[i], after[i]) for i in both)
    gone = Counter(rule.text for rule in old if rule.id not in both)
    born = Counter(rule.text for rule in new if rule.id not in both)
    alone = ((gone - born) + (born - gone)).items()
    return moved + sum(count_tokens(text) * times for text, times in alone)


def _topic_change(old: Section | None, new: Section | None) -> int:
    before = {rule.topic for rule in old.rules if rule.topic} if old else set()
    after = {rule.topic for rule in new.rules if rule.topic} if new else set()
    return sum(count_tokens(topic) for topic in before ^ after)


def _text_change(old: str, new: str) -> int:
    if old == new:
        return 0
    before, after = split_tokens(old), split_tokens(new)
    return len(before) + len(after) - 2 * common_tokens(before, after)


def common_tokens(a: list[str], b: list[str]) -> int:
    """Length of the longest common subsequence, bit-parallel (Hyyrö 2004, "Bit-parallel LCS-length computation")."""
    places: dict[str, int] = {}
    for i, token in enumerate(a):
        places[token] = places.get(token, 0) | 1 << i
    mask = (1 << len(a)) - 1
    row = mask
    for token in b:
        hits = row & places.get(token, 0)
        row = ((row + hits) | (row - hits)) & mask
    return len(a) - row.bit_count()
