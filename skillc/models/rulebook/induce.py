"""Induce rules from cases: which words are signs of which answer, the sentences of rules, and their evidence."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from skillc.dataclass import dataclass
from skillc.models.rulebook.briefs import Brief, Case, SkillRule
from skillc.models.rulebook.sentences import (
    NO_SIGNS,
    DecisionRule,
    decide,
    needs_quotes,
    normal,
    read_sentence,
    words,
)

MAJORITY = "Where several rules apply, choose the answer with the most signs."
ENOUGH = 2  # cases that make a word a sign
PURE = 0.6  # minimum share of a sign's cases that have the rule's answer
_AGAINST = 1.5  # weight of a case with another answer
_REPEATED = 3  # words seen once that a case shares with an earlier one before both count as the same case
_MOST_QUOTED = 4
_MOST_SEEN, _MOST_ONCE = 60, 40
_BARE = re.compile(r"[^\W_](?:[\w /&+-]*[^\W_])?")
_SEEN = re.compile(r'"([^"]+)" (\d+)(?: of (\d+))?')
_ONCE = re.compile(r"(?:^|; )once: ([^;]+)")

Key = tuple[str, str]
"""A field and an answer: the subject of one rule."""


@dataclass(frozen=True, slots=True)
class SignCount:
    """Cases with a sign: `own` of `total` have the answer of the rule."""

    own: int = 0
    total: int = 0

    def __add__(self, other: SignCount) -> SignCount:
        return SignCount(self.own + other.own, self.total + other.total)


Evidence = Mapping[str, SignCount]


def rule_text(field: str, signs: Sequence[str], label: str, unless: Sequence[str] = ()) -> str:
    """Write a rule as a sentence: any of `signs`, and none of `unless`."""
    text = f"If the {field.replace('_', ' ')} mentions {_listed(signs)}"
    if unless:
        text += f", unless it mentions {_listed(unless)}"
    return f"{text}, answer {_quoted(label)}."


def default_text(label: str) -> str:
    """Write the sentence for cases that no rule applies to."""
    return f"Otherwise, answer {_quoted(label)}."


def _listed(signs: Sequence[str]) -> str:
    """Join signs: `"a", "b" or "c"`; a long list has no quotes, which cost as many tokens as the words."""
    long = len(signs) > _MOST_QUOTED
    stripped = [sign.strip() for sign in signs]
    marks = [word if long and not needs_quotes(word) else f'"{word}"' for word in stripped]
    lead = "one of " if long else ""
    return marks[0] if len(marks) == 1 else f"{lead}{', '.join(marks[:-1])} or {marks[-1]}"


def _quoted(label: str) -> str:
    return label if _BARE.fullmatch(label) else f'"{label}"'


def evidence_text(evidence: Evidence) -> str:
    """Write evidence as a rationale, the most frequent signs first: `seen: "a" 3 of 4, "b" 2; once: april, marek`."""
    counts = []
    for sign in [sign for sign in ordered_signs(evidence, evidence) if evidence[sign].own > 1][:_MOST_SEEN]:
        own, total = evidence[sign].own, evidence[sign].total
        counts.append(f'"{sign.strip()}" {own}' + (f" of {total}" if total > own else ""))
    once = [sign.strip() for sign in evidence if evidence[sign].total == 1][:_MOST_ONCE]
    parts = [f"seen: {', '.join(counts)}"] if counts else []
    return "; ".join([*parts, *([f"once: {', '.join(once)}"] if once else [])])


def read_evidence(text: str) -> dict[str, SignCount]:
    """Read the evidence in a rationale that `evidence_text` wrote; empty for any other."""
    head = text.split("; not where:")[0]
    found = _SEEN.findall(head) if "seen:" in head else []
    seen = {normal(sign): SignCount(int(own), int(total or own)) for sign, own, total in found}
    once = _ONCE.search(head)
    for sign in once[1].split(", ") if once else ():
        seen.setdefault(normal(sign), SignCount(1, 1))
    return seen


def ordered_signs(signs: Iterable[str], evidence: Evidence) -> list[str]:
    """Sort unique signs by the number of cases of the rule's own answer, the most frequent first."""
    return sorted(set(signs), key=lambda sign: (-evidence.get(sign, SignCount()).own, sign))


def read_sign_rule(brief: Brief, text: str) -> tuple[Key, tuple[str, ...]] | None:
    """Read the key and the signs of a sentence that is a plain list of signs; None for any other."""
    return _sign_rule(brief, read_sentence(text, brief.inputs))


def _sign_rule(brief: Brief, rule: DecisionRule | None) -> tuple[Key, tuple[str, ...]] | None:
    clause = rule.clauses[0] if rule is not None and len(rule.clauses) == 1 else None
    if rule is None or clause is None or clause.negated or clause.kind != "mentions":
        return None
    return (clause.field or brief.inputs[0], rule.answer), clause.triggers


@dataclass(frozen=True, slots=True)
class SignTable:
    """The skill's rules that are plain lists of signs.

    Attributes:
        rules: the first rule of each field and answer.
        signs: by rule id.
        evidence: by field and answer. A sign without evidence was written by another author and counts as enough.
        structured: whether an answer has several parts; then it begins with the name of its part.
    """

    rules: Mapping[Key, SkillRule]
    signs: Mapping[str, tuple[str, ...]]
    evidence: Mapping[Key, Evidence]
    structured: bool

    def part(self, label: str) -> str:
        """Return the part of an answer that a label is about: `priority` for `priority with high`."""
        return label.partition(" with ")[0] if self.structured else ""

    def known(self, key: Key, sign: str) -> SignCount:
        """Return the evidence on a sign; if its rule has none, the cases of rival rules count against it."""
        own = self.evidence.get(key, {}).get(sign)
        if own is not None:
            return own
        subject = key[0], self.part(key[1])
        rivals = (seen for other, seen in self.evidence.items() if (other[0], self.part(other[1])) == subject)
        return SignCount(0, sum(seen[sign].own for seen in rivals if sign in seen))


def sign_table(brief: Brief) -> SignTable:
    """Collect the skill's lists of signs."""
    rules: dict[Key, SkillRule] = {}
    signs: dict[str, tuple[str, ...]] = {}
    evidence: dict[Key, dict[str, SignCount]] = {}
    for rule in brief.rules:
        found = _sign_rule(brief, rule.read)
        if found is None:
            continue
        key, signs[rule.id] = found
        noted = read_evidence(rule.why)
        merged = evidence.setdefault(key, {})
        rules.setdefault(key, rule)
        for sign in (*signs[rule.id], *noted):
            count = noted.get(sign, SignCount(ENOUGH, ENOUGH))
            merged[sign] = max(merged.get(sign, SignCount()), count, key=lambda each: each.total)
    return SignTable(rules, signs, evidence, brief.is_structured)


def deciding_line(brief: Brief, case: Case) -> tuple[str, DecisionRule] | None:
    """Return the line of the skill that decides a case; None if none does."""
    at = decide([rule for _, rule in brief.lines], case.normal_inputs(), majority=brief.majority)
    return None if at is None else brief.lines[at]


@dataclass(frozen=True, slots=True)
class Observation:
    """Cases of one answer, with the number of them that contain each sign of a field.

    `cures` are tags or ids of those that are wrong now; empty for right cases.
    """

    key: Key
    counts: Mapping[str, int]
    cures: tuple[str, ...] = ()


def observe(table: SignTable, cases: Sequence[Case], *, failed: bool) -> list[Observation]:
    """Return one observation for each case and field. A case that was probably counted before is not counted again."""
    observations = []
    for case in cases:
        for field, text in case.inputs.items():
            key = (field, case.gold or "")
            signs = [f" {word} " for word in dict.fromkeys(words(text)) if _can_be_sign(word)]
            once = {sign for sign in signs if table.evidence.get(key, {}).get(sign) == SignCount(1, 1)}
            again = once if len(once) >= _REPEATED else set()
            counts = {sign: 1 for sign in signs if sign not in again}
            observations.append(Observation(key, counts, (case.tag,) if failed else ()))
    return observations


def _can_be_sign(word: str) -> bool:
    return len(word) > 1 and word not in NO_SIGNS and not any(c.isdigit() for c in word)


def gather(table: SignTable, observations: Sequence[Observation]) -> dict[Key, dict[str, SignCount]]:
    """Add up the evidence on every sign of every answer, from the skill's rules and the observations."""
    own: dict[Key, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    total: dict[tuple[str, str, str], int] = defaultdict(int)
    for each in observations:
        for sign, count in each.counts.items():
            own[each.key][sign] += count
            total[each.key[0], table.part(each.key[1]), sign] += count
    found: dict[Key, dict[str, SignCount]] = {}
    for key in dict.fromkeys((*table.evidence, *own)):
        signs = dict.fromkeys((*own.get(key, ()), *table.evidence.get(key, ())))
        new, subject = own.get(key, {}), (key[0], table.part(key[1]))
        found[key] = {s: table.known(key, s) + SignCount(new.get(s, 0), total[*subject, s]) for s in signs}
    return found


def best_signs(evidence: Evidence, most: int) -> list[str]:
    """Return the best signs: enough cases, mostly of this answer; cases of others weigh more than its own."""
    good = [s for s, seen in evidence.items() if seen.own >= ENOUGH and seen.own >= PURE * seen.total]
    good.sort(key=lambda s: (_AGAINST * (evidence[s].total - evidence[s].own) - evidence[s].own, -len(s), s))
    return good[:most]
