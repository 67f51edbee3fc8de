"""Rules from cases: which words are signs of which answer, how rules are worded, and the evidence noted beside them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from skillc.models.rulebook.briefs import Brief, Case, SkillRule
from skillc.models.rulebook.sentences import NO_SIGNS, Rule, decide, needs_quotes, normal, words

_BARE = re.compile(r"[^\W_](?:[\w /&+-]*[^\W_])?")


MOST_QUOTED = 4
MOST_SEEN = 60
MOST_ONCE = 40
MAJORITY = "Where several rules apply, choose the answer with the most signs."
_SEEN = re.compile(r'"([^"]+)" (\d+)(?: of (\d+))?')
_ONCE = re.compile(r"(?:^|; )once: ([^;]+)")


@dataclass(frozen=True, slots=True)
class Seen:
    """Cases seen with a sign: `own` of `total` had the answer of the rule."""

    own: int = 0
    total: int = 0

    def __add__(self, other: Seen) -> Seen:
        return Seen(self.own + other.own, self.total + other.total)

    @property
    def against(self) -> int:
        """Cases with another answer."""
        return self.total - self.own


Evidence = Mapping[str, Seen]


def rule_text(
    field: str, signs: Sequence[str], label: str, unless: Sequence[str] = (), also: Sequence[str] = ()
) -> str:
    """A rule as a sentence: any of `signs`, and any of `also`, and none of `unless`."""
    text = f"If the {spoken(field)} mentions {listed(signs)}"
    if also:
        text += f" and {listed(also)}"
    if unless:
        text += f", unless it mentions {listed(unless)}"
    return f"{text}, answer {quoted(label)}."


def default_text(label: str) -> str:
    """The sentence for where no rule applies."""
    return f"Otherwise, answer {quoted(label)}."


def spoken(field: str) -> str:
    """A field's name as prose."""
    return field.replace("_", " ")


def listed(signs: Sequence[str]) -> str:
    """`"a", "b" or "c"`; a long list has no quotes, which cost as many tokens as the words."""
    long = len(signs) > MOST_QUOTED
    words = [sign.strip() for sign in signs]
    marks = [word if long and not needs_quotes(word) else f'"{word}"' for word in words]
    lead = "one of " if long else ""
    return marks[0] if len(marks) == 1 else f"{lead}{', '.join(marks[:-1])} or {marks[-1]}"


def quoted(label: str) -> str:
    """A label bare where that can't be misread, else in quotes."""
    return label if _BARE.fullmatch(label) else f'"{label}"'


def evidence_text(evidence: Evidence) -> str:
    """`seen: "invoice" 3 of 4, "receipt" 2; once: april, marek`, the most seen first."""
    often = [sign for sign in ordered_signs(evidence, evidence) if evidence[sign].own > 1][:MOST_SEEN]
    once = [sign.strip() for sign in evidence if evidence[sign].total == 1][:MOST_ONCE]
    parts = [f"seen: {', '.join(_counted(sign, evidence[sign]) for sign in often)}"] if often else []
    return "; ".join([*parts, *([f"once: {', '.join(once)}"] if once else [])])


def _counted(sign: str, seen: Seen) -> str:
    among = f" of {seen.total}" if seen.against else ""
    return f'"{sign.strip()}" {seen.own}{among}'


def read_evidence(text: str) -> dict[str, Seen]:
    """The evidence in a rationale that `evidence_text` wrote; empty for any other."""
    head = text.split("; not where:")[0]
    found = _SEEN.findall(head) if "seen:" in head else []
    seen = {normal(sign): Seen(int(own), int(total or own)) for sign, own, total in found}
    once = _ONCE.search(head)
    for sign in once[1].split(", ") if once else ():
        seen.setdefault(normal(sign), Seen(1, 1))
    return seen


def ordered_signs(signs: Iterable[str], evidence: Evidence) -> list[str]:
    """Signs without repetition, those first that most cases of the rule's own answer hold."""
    return sorted(set(signs), key=lambda sign: (-evidence.get(sign, Seen()).own, sign))


ENOUGH = 2  # cases that make a word a sign
PURE = 0.6  # the least share of a sign's cases that have the rule's answer
_AGAINST = 1.5  # what a case with another answer weighs
_REPEATED = 3  # words seen once that a case shares with earlier ones before it is taken for one of them

Key = tuple[str, str]
"""A field and an answer: what one rule is about."""


@dataclass(frozen=True, slots=True)
class Book:
    """The skill's rules that are plain lists of signs.

    Attributes:
        rules: by field and answer, the first of them.
        signs: by rule id.
        evidence: by field and answer. A sign without evidence was written by another author and counts as enough.
        structured: whether an answer has several parts; then it begins with the name of its part.
    """

    rules: Mapping[Key, SkillRule]
    signs: Mapping[str, tuple[str, ...]]
    evidence: Mapping[Key, Evidence]
    structured: bool = False

    def part(self, label: str) -> str:
        """The part of an answer that a label is about: `priority` for `priority with high`."""
        return label.partition(" with ")[0] if self.structured else ""

    def known(self, key: Key, sign: str) -> Seen:
        """The evidence on a sign; where the rule has none, what other rules saw counts against it."""
        own = self.evidence.get(key, {}).get(sign)
        if own is not None:
            return own
        others = (seen[sign].own for other, seen in self.evidence.items() if sign in seen and self.rivals(key, other))
        return Seen(0, sum(others))

    def rivals(self, one: Key, other: Key) -> bool:
        """Whether two rules look at one field for one part of the answer."""
        return one[0] == other[0] and self.part(one[1]) == self.part(other[1])


def book_of(brief: Brief) -> Book:
    """Collect the skill's lists of signs."""
    rules: dict[Key, SkillRule] = {}
    signs: dict[str, tuple[str, ...]] = {}
    evidence: dict[Key, dict[str, Seen]] = {}
    for rule in brief.rules:
        group = rule.read.signs if rule.read else None
        if group is None or rule.read is None:
            continue
        key = (group.field or brief.inputs[0], rule.read.answer)
        signs[rule.id] = group.triggers
        noted = read_evidence(rule.why)
        merged = evidence.setdefault(key, {})
        rules.setdefault(key, rule)
        for sign in (*group.triggers, *noted):
            merged[sign] = max(merged.get(sign, Seen()), noted.get(sign, Seen(ENOUGH, ENOUGH)), key=lambda s: s.total)
    return Book(rules, signs, evidence, brief.is_structured)


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
    """The evidence on every sign of every answer, from the skill's rules and the items together."""
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
