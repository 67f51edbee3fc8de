"""How the rulebook makes rules of cases: which words are signs of which answer.

It knows no subject. Its prior is a list of English words that are signs of nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skillc.models.rulebook.briefs import Brief, Case, SkillRule
from skillc.models.rulebook.function_words import NO_SIGNS
from skillc.models.rulebook.sentences import Group, Rule, decide, normal, words
from skillc.models.rulebook.wording import Evidence, Seen, read_evidence

ENOUGH = 2  # cases that make a word a sign
PURE = 0.6  # the least share of a sign's cases that have the rule's answer
_AGAINST = 1.5  # what a case with another answer weighs
_REPEATED = 3  # words seen once that a case shares with earlier ones before it is taken for one of them

Key = tuple[str, str]
"""A field and an answer: what one rule is about."""


@dataclass(frozen=True, slots=True)
class Book:
    """What the skill's rules that are plain lists of signs hold.

    Attributes:
        rules: by field and answer, the first of them.
        signs: by rule id.
        evidence: by field and answer. A sign without evidence was written by somebody else and counts as enough.
        structured: whether an answer has several parts; then it begins with the name of its part.
    """

    rules: Mapping[Key, SkillRule]
    signs: Mapping[str, tuple[str, ...]]
    evidence: Mapping[Key, Evidence]
    structured: bool = False

    def part(self, label: str) -> str:
        """What part of an answer a label is about: `priority` for `priority with high`."""
        return label.partition(" with ")[0] if self.structured else ""

    def known(self, key: Key, sign: str) -> Seen:
        """What is known of a sign; where the rule holds nothing, what other rules saw counts against it."""
        own = self.evidence.get(key, {}).get(sign)
        if own is not None:
            return own
        others = (seen[sign].own for other, seen in self.evidence.items() if sign in seen and self.rivals(key, other))
        return Seen(0, sum(others))

    def rivals(self, one: Key, other: Key) -> bool:
        """Whether two rules look at one field for one part of the answer."""
        return one[0] == other[0] and self.part(one[1]) == self.part(other[1])


def book_of(brief: Brief) -> Book:
    """What the skill holds."""
    rules: dict[Key, SkillRule] = {}
    signs: dict[str, tuple[str, ...]] = {}
    evidence: dict[Key, dict[str, Seen]] = {}
    for rule in brief.rules:
        group = list_group(rule)
        if group is None or rule.read is None:
            continue
        key = (group.field or brief.inputs[0], rule.read.answer)
        signs[rule.id] = group.triggers
        noted = read_evidence(rule.why)
        merged = evidence.setdefault(key, {})
        rules.setdefault(key, rule)
        for sign in (*group.triggers, *noted):
            merged[sign] = max(merged.get(sign, Seen()), noted.get(sign, Seen(ENOUGH, ENOUGH)), key=lambda s: s.total)
    structured = len(brief.outputs) > 1 or any(kind == "json" for _, kind in brief.outputs)
    return Book(rules, signs, evidence, structured)


def list_group(rule: SkillRule) -> Group | None:
    """The signs of a rule that is nothing but a list of them."""
    read = rule.read
    if read is None or len(read.groups) != 1 or read.groups[0].negated or read.groups[0].kind != "mentions":
        return None
    return read.groups[0]


def is_sign(word: str) -> bool:
    """Whether a word may be a sign: no function word, no boilerplate, no number, no single letter."""
    return len(word) > 1 and word not in NO_SIGNS and not any(c.isdigit() for c in word)


def signs_of(text: str) -> list[str]:
    """The signs in a text, each once, as normal texts."""
    return [f" {word} " for word in dict.fromkeys(words(text)) if is_sign(word)]


def normals(case: Case) -> dict[str, str]:
    """The inputs of a case as normal texts."""
    return {name: normal(value) for name, value in case.inputs.items()}


def deciding(brief: Brief, case: Case) -> tuple[str, Rule] | None:
    """The line of the skill that decides a case, None where none does."""
    at = decide([rule for _, rule in brief.lines], normals(case), majority=brief.majority)
    return None if at is None else brief.lines[at]


@dataclass(frozen=True, slots=True)
class Item:
    """Cases of one answer: how many of them hold each sign of a field.

    Attributes:
        cures: tags or ids of those that are wrong now; empty for cases that are right.
    """

    key: Key
    counts: Mapping[str, int]
    cures: tuple[str, ...] = ()


def items_of(book: Book, cases: Sequence[Case], *, failed: bool) -> list[Item]:
    """One item for each case and field. A word that is likely known from the very same case is not counted again."""
    items = []
    for case in cases:
        for field, text in case.inputs.items():
            key = (field, case.gold or "")
            signs = signs_of(text)
            once = {sign for sign in signs if book.evidence.get(key, {}).get(sign) == Seen(1, 1)}
            again = once if len(once) >= _REPEATED else set()
            items.append(Item(key, {s: 1 for s in signs if s not in again}, (case.tag,) if failed else ()))
    return items


def gathered(book: Book, items: Sequence[Item]) -> dict[Key, dict[str, Seen]]:
    """What is known of every sign of every answer, by the skill's rules and the items together."""
    own: dict[Key, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    total: dict[tuple[str, str, str], int] = defaultdict(int)
    for item in items:
        for sign, count in item.counts.items():
            own[item.key][sign] += count
            total[item.key[0], book.part(item.key[1]), sign] += count
    found: dict[Key, dict[str, Seen]] = {}
    for key in dict.fromkeys((*book.evidence, *own)):
        signs = dict.fromkeys((*own.get(key, ()), *book.evidence.get(key, ())))
        new = own.get(key, {})
        found[key] = {s: book.known(key, s) + Seen(new.get(s, 0), total[key[0], book.part(key[1]), s]) for s in signs}
    return found


def chosen_signs(evidence: Evidence, most: int) -> list[str]:
    """The best signs by evidence: enough cases, mostly of this answer; cases of others weigh more than its own."""
    good = [s for s, seen in evidence.items() if seen.own >= ENOUGH and seen.own >= PURE * seen.total]
    good.sort(key=lambda s: (_AGAINST * evidence[s].against - evidence[s].own, -len(s), s))
    return good[:most]


def single_signs(evidence: Evidence, among: Sequence[str], most: int) -> list[str]:
    """Signs that a single case shows and no case of another answer, the longest words first."""
    alone = [s for s in dict.fromkeys(among) if evidence[s] == Seen(1, 1)]
    return sorted(alone, key=lambda s: (-len(s), s))[:most]
