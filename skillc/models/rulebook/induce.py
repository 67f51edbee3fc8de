"""How rulebook makes rules from cases: which words speak for a label.

It knows no subject. Its prior is a list of English function words, and that a name in mid-sentence is seldom a sign.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from skillc.models.rulebook.briefs import Brief, Case, SkillRule
from skillc.models.rulebook.function_words import FUNCTION_WORDS
from skillc.models.rulebook.sentences import Group, Rule, applies, normal
from skillc.models.rulebook.wording import read_evidence

_TOKEN = re.compile(r"[^\W_]+|[.!?:;\n]")
_NAME_PENALTY = 0.6
_PHRASE_PENALTY = 0.5
_OTHERS = 2.0
_CLAIM = 1.5
_LEAST_VALUE = 0.5
SIGNS_A_CASE = 4


@dataclass(frozen=True, slots=True, order=True)
class Sign:
    """A trigger in a field: normal text with a space on both sides."""

    field: str
    trigger: str


@dataclass(frozen=True, slots=True)
class Claim:
    """What is known for a label at a place in the skill: the rule at `index` has shown `sign` to mean `label`."""

    index: int
    label: str
    count: int


@dataclass(frozen=True, slots=True)
class Book:
    """The skill's rules as lists of signs, where they have that form.

    Attributes:
        index: place of each rule, by id.
        signs: by rule id, for rules of one positive group of mentions in one field, with no exceptions.
        claims: by sign.
        seen: evidence by rule id.
    """

    index: Mapping[str, int]
    signs: Mapping[str, tuple[Sign, ...]]
    claims: Mapping[Sign, tuple[Claim, ...]]
    seen: Mapping[str, Counter[str]]

    def against(self, sign: Sign, label: str, index: int) -> int:
        """Evidence for other labels that a rule with this sign, put at `index`, would override."""
        return sum(c.count for c in self.claims.get(sign, ()) if c.label != label and c.index >= index)

    def known(self, sign: Sign, label: str) -> int:
        """Evidence that the skill holds for a sign to mean a label."""
        return sum(c.count for c in self.claims.get(sign, ()) if c.label == label)


def book_of(brief: Brief) -> Book:
    """What the skill holds."""
    index = {rule.id: i for i, rule in enumerate(brief.rules)}
    seen = {rule.id: read_evidence(rule.why) for rule in brief.rules}
    signs: dict[str, tuple[Sign, ...]] = {}
    claims: dict[Sign, list[Claim]] = defaultdict(list)
    for rule in brief.rules:
        group = _list_group(rule)
        if group is None or rule.read is None:
            continue
        field = group.field or brief.inputs[0]
        signs[rule.id] = tuple(Sign(field, trigger) for trigger in group.triggers)
        for sign in signs[rule.id]:
            claims[sign].append(Claim(index[rule.id], rule.read.answer, max(1, seen[rule.id][sign.trigger])))
    return Book(index, signs, {sign: tuple(found) for sign, found in claims.items()}, seen)


def _list_group(rule: SkillRule) -> Group | None:
    read = rule.read
    if read is None or len(read.groups) != 1 or read.groups[0].negated or read.groups[0].kind != "mentions":
        return None
    return read.groups[0]


def signs_of(inputs: Mapping[str, str]) -> dict[Sign, float]:
    """The signs in the inputs, each with a prior weight: function words and digits are none, names weigh less."""
    found: dict[Sign, float] = {}
    for field, text in inputs.items():
        shouting = text.upper() == text
        starts, before = True, ""
        for token in _TOKEN.findall(text):
            if not token[0].isalnum():
                starts, before = True, ""
                continue
            word = token.lower()
            plain = not any(c.isdigit() for c in word)
            content = word not in FUNCTION_WORDS and plain and len(word) > 1
            weight = min(len(word), 8) / 8
            if not shouting and not starts and token[0].isupper():
                weight -= _NAME_PENALTY
            if content:
                _keep(found, Sign(field, f" {word} "), weight)
            if before and plain and (content or before not in FUNCTION_WORDS):
                _keep(found, Sign(field, f" {before} {word} "), (weight if content else 0.3) - _PHRASE_PENALTY)
            starts, before = False, word if plain else ""
    return found


def _keep(found: dict[Sign, float], sign: Sign, weight: float) -> None:
    found[sign] = max(weight, found.get(sign, weight))


def normals(case: Case) -> dict[str, str]:
    """The inputs of a case as normal texts."""
    return {name: normal(value) for name, value in case.inputs.items()}


def deciding(lines: Sequence[tuple[str, Rule]], inputs: Mapping[str, str]) -> tuple[str, Rule] | None:
    """The line that decides: the first rule that applies, else the first default, else None."""
    default = None
    for line in lines:
        if line[1].default:
            default = default or line
        elif applies(line[1], inputs):
            return line
    return default


def tally(cases: Iterable[Case]) -> dict[str, Counter[Sign]]:
    """How many cases of each right answer hold each sign."""
    counts: dict[str, Counter[Sign]] = defaultdict(Counter)
    for case in cases:
        if case.gold is not None:
            counts[case.gold].update(signs_of(case.inputs).keys())
    return dict(counts)


def best_signs(case: Case, counts: Mapping[str, Counter[Sign]], book: Book, index: int) -> list[Sign]:
    """The signs in a case that speak most for its right answer, for a rule that shall stand at `index`.

    A sign's value is the other cases of the same answer that hold it, less twice those of other answers, less what the
    rules that it would override know for other answers, plus its prior weight. A phrase is left out where one of its
    words was taken.
    """
    label = case.gold or ""

    def value(sign: Sign, weight: float) -> float:
        others = sum(counts[other][sign] for other in counts if other != label)
        return counts[label][sign] - 1 - _OTHERS * others - _CLAIM * book.against(sign, label, index) + weight

    ranked = sorted((-value(sign, weight), sign) for sign, weight in signs_of(case.inputs).items())
    chosen: list[Sign] = []
    for worth, sign in ranked:
        if len(chosen) == SIGNS_A_CASE or -worth <= _LEAST_VALUE:
            break
        if not any(other.trigger in sign.trigger for other in chosen):
            chosen.append(sign)
    return chosen
