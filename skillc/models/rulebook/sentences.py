"""The sentences that rulebook understands, and nothing else.

A rule is a condition and an answer: `If the ticket mentions "chargeback" or "invoice", answer billing.` A condition is
an AND of groups, each group an OR of triggers; a group may be negated (`and not "x"`, `but does not mention "x"`,
`unless it mentions "x" or "y"`). A trigger is looked for as whole words, in any case. What can't be read is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Kind = Literal["mentions", "starts", "ends"]

_WORD = re.compile(r"[^\W_]+")
_QUOTED = r"\"[^\"\n]+\"|“[^”\n]+”|`[^`\n]+`|«[^»\n]+»|‘[^’\n]+’|(?<!\w)'[^'\n]+'(?!\w)"
_STRINGS = re.compile(_QUOTED)
_BULLET = re.compile(r"\s*(?:[-*+•]\s+|\d{1,3}[.)]\s+|\[[\w-]+\]\s+|#{1,6}\s+)*")
_SENTENCE_END = re.compile(r"(?<=[.!;])\s+(?=[A-Z])")
_ACTION_WORDS = (
    r"(?:(?:always\s+)?(?:answer|reply|respond|output|return|choose|pick|say|classify|label|route|assign|use|guess)\b"
    r"(?:\s+(?:it|this|them)\b)?(?:\s+(?:with|as|to)\b)?|(?:set\s+)?the\s+[\w ]+?\s+(?:is|to)\b)"
)
_ACTION = re.compile(
    rf"(?:(?:,|:|;|\bthen\b|->|→|^)\s*(?:then\s+)?(?:please\s+)?{_ACTION_WORDS}|->|→)\s*:?\s*", re.IGNORECASE
)
_IF = re.compile(r"(?:if|when|whenever|where)\s+", re.IGNORECASE)
_DEFAULT = re.compile(
    r"(?:otherwise|by default|in all other cases|in any other case|if no(?:ne of the)? (?:other )?rules? (?:above )?"
    r"(?:applies|apply|fits|fit)|if nothing (?:else )?(?:applies|fits)|else)\b",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"(?P<subject>(?:the|a|its|this)\s+[\w ]+?|it|they)?\s*\b"
    r"(?P<not>does\s+not\s+|doesn['’]t\s+|do\s+not\s+|not\s+|never\s+)?"
    r"(?P<verb>mentions?|contains?|says?|includes?|names?|has|have|asks?\s+(?:for|about)|talks?\s+about|speaks?\s+of|"
    r"(?:starts?|begins?)\s+with|ends?\s+with)\b"
    r"(?:\s+(?:(?:any|one)\s+of\b(?:\s+the(?:se)?\b)?|the\b(?=\s+(?:words?|phrases?)\b)))?"
    r"(?:\s+(?:words?|phrases?)\b:?)?",
    re.IGNORECASE,
)
_GRAMMAR = re.compile(r"\b(?:if|when|where|then|otherwise|the|these|one|any|of|words?|phrases?)\b", re.IGNORECASE)
_MAJORITY = re.compile(
    r"(?:if|where|when|whenever)\s+(?:several|more than one|two or more|different)\b[^.]*"
    r"\b(?:rules?|answers?|labels?)\b[^.]*\bmost\s+(?:of\s+(?:its|their)\s+)?(?:signs|words|matches)\b",
    re.IGNORECASE,
)
# The sentences of `taking.py` name a place in an input, which is no answer.
_TAKING = re.compile(
    r"\b(?:with|from|to|as)\s+the\s+(?:\w+\s+)?(?:number|word|name|line|text\s+(?:between|that)|rest\s+of)\b",
    re.IGNORECASE,
)
_JOIN = re.compile(r"\b(and|but|unless|or|not|nor)\b|,", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Group:
    """Triggers of which one must occur, or, negated, none may. `field` None means any input."""

    triggers: tuple[str, ...]
    negated: bool = False
    kind: Kind = "mentions"
    field: str | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition and an answer. No groups: the default. `line` is its line in the text."""

    answer: str
    groups: tuple[Group, ...]
    line: int = 0

    @property
    def default(self) -> bool:
        """Whether it applies where no other does."""
        return not self.groups

    @property
    def signs(self) -> Group | None:
        """The signs of a rule that is nothing but a list of them."""
        one = self.groups[0] if len(self.groups) == 1 else None
        return one if one is not None and not one.negated and one.kind == "mentions" else None


@lru_cache(maxsize=4096)
def normal(text: str) -> str:
    """A text as its words: lower case, one space around each word, so that `in` finds whole words only."""
    return f" {' '.join(_WORD.findall(text.lower()))} "


def words(text: str) -> list[str]:
    """The words of a text, lower case."""
    return _WORD.findall(text.lower())


def needs_quotes(sign: str) -> bool:
    """Whether a sign without quotes would be read as part of the sentence around it."""
    return bool(_VERB.search(sign) or _JOIN.search(sign) or _GRAMMAR.search(sign))


def applies(rule: Rule, inputs: Mapping[str, str]) -> bool:
    """Whether a rule's condition holds on inputs, each of which is a normal text. A default's always does."""
    return all(holds(group, inputs) for group in rule.groups)


def holds(group: Group, inputs: Mapping[str, str]) -> bool:
    """Whether a group of a condition holds on inputs, each of which is a normal text."""
    one = inputs.get(group.field) if group.field else None
    texts = list(inputs.values()) if one is None else [one]
    return any(_in(group.kind, trigger, text) for trigger in group.triggers for text in texts) != group.negated


def _in(kind: Kind, trigger: str, text: str) -> bool:
    if kind == "starts":
        return text.startswith(trigger)
    return text.endswith(trigger) if kind == "ends" else trigger in text


def fired(rule: Rule, inputs: Mapping[str, str]) -> tuple[str, ...]:
    """The triggers of a rule's positive groups that occur in the inputs."""
    return tuple(
        trigger
        for group in rule.groups
        if not group.negated
        for trigger in group.triggers
        if holds(Group((trigger,), False, group.kind, group.field), inputs)
    )


def reads_majority(text: str) -> bool:
    """Whether a text makes the answer with the most signs win where several rules apply."""
    return any(_MAJORITY.match(sentence) for line in text.splitlines() for sentence in sentences_of(line))


def decide(rules: Sequence[Rule], inputs: Mapping[str, str], *, majority: bool = False) -> int | None:
    """The place of the rule that decides: the first that applies, else the first default, else None.

    Args:
        rules: in reading order.
        inputs: normal texts by name.
        majority: the answer whose rules have the most signs in the inputs wins, of equal ones the first.
    """
    holding = [at for at, rule in enumerate(rules) if not rule.default and applies(rule, inputs)]
    if not holding:
        return next((at for at, rule in enumerate(rules) if rule.default), None)
    if not majority:
        return holding[0]
    signs: dict[str, set[str]] = {}
    for at in holding:
        signs.setdefault(rules[at].answer.casefold(), set()).update(fired(rules[at], inputs))
    return max(holding, key=lambda at: len(signs[rules[at].answer.casefold()]))


def read_rules(text: str, fields: tuple[str, ...] = ()) -> tuple[Rule, ...]:
    """All rules in a text, in order; `fields` are the names of the inputs, for `if the <field> mentions`."""
    rules = []
    for number, line in enumerate(text.splitlines()):
        for sentence in sentences_of(line):
            rule = read_sentence(sentence, fields, number)
            if rule is not None:
                rules.append(rule)
    return tuple(rules)


def sentences_of(line: str) -> list[str]:
    """The sentences of a line without its bullet; quoted strings are not cut."""
    line = _BULLET.sub("", line, count=1)
    masked, strings = mask(line)
    return [_unmask(part, strings) for part in _SENTENCE_END.split(masked)]


def mask(text: str) -> tuple[str, list[str]]:
    """The text with each quoted string as a private character, and the strings without their quotes."""
    strings: list[str] = []

    def keep(found: re.Match[str]) -> str:
        strings.append(found[0])
        return f"\ue000{len(strings) - 1}\ue001"

    return _STRINGS.sub(keep, text), strings


def _unmask(text: str, strings: list[str]) -> str:
    return re.sub("\ue000(\\d+)\ue001", lambda m: strings[int(m[1])], text)


def read_sentence(sentence: str, fields: tuple[str, ...] = (), line: int = 0) -> Rule | None:
    """The rule in one sentence, or None where it is none that rulebook understands."""
    masked, strings = mask(sentence.strip())
    default = _DEFAULT.match(masked)
    head = default or _IF.match(masked)
    if head is None:
        return None
    rest = masked[head.end() :]
    action = None
    for action in _ACTION.finditer(rest):  # noqa: B007 - the last one is the action
        pass
    if action is None:
        return None
    tail = rest[action.end() :]
    tail, exception = _unless(tail)
    answer = _answer(tail, strings)
    if not answer or _TAKING.search(tail):
        return None
    condition = "" if default else rest[: action.start()]
    groups = () if default else read_condition(condition + exception, strings, fields)
    if groups is None or (not default and not any(not group.negated for group in groups)):
        return None
    return Rule(answer, groups, line)


def _unless(tail: str) -> tuple[str, str]:
    """An exception that follows the answer: `answer billing, unless it mentions "refund".`"""
    found = re.search(r",?\s*\bunless\b", tail, re.IGNORECASE)
    return (
        (tail, "") if found is None else (tail[: found.start()], " " + tail[found.start() :].lstrip(", ").rstrip(". "))
    )


def _answer(tail: str, strings: list[str]) -> str:
    text = tail.strip().rstrip(".!;, ").strip()
    quoted = re.fullmatch("\ue000(\\d+)\ue001", text)
    if quoted:
        return strings[int(quoted[1])][1:-1].strip()
    return _unmask(text, strings).strip("*_ ")


def read_condition(condition: str, strings: list[str], fields: tuple[str, ...]) -> tuple[Group, ...] | None:
    """The groups of a condition, or None where a part of it is not understood."""
    verbs = list(_VERB.finditer(condition))
    if not verbs or condition[: verbs[0].start()].strip():
        return None
    groups: list[Group] = []
    for found, following in zip(verbs, [*verbs[1:], None], strict=True):
        objects = condition[found.end() : following.start() if following else len(condition)]
        before = condition[: found.start()].rstrip(", ").lower()
        negated = bool(found["not"]) != before.endswith("unless")
        part = _objects(objects, strings, negated, _kind(found["verb"]), _field(found["subject"], fields))
        if part is None:
            return None
        groups += part
    return tuple(groups)


def _kind(verb: str) -> Kind:
    verb = verb.lower()
    if verb.startswith(("start", "begin")):
        return "starts"
    return "ends" if verb.startswith("end") else "mentions"


def _field(subject: str | None, fields: tuple[str, ...]) -> str | None:
    noun = re.sub(r"^(?:the|a|its|this)\s+", "", (subject or "").strip().lower())
    return next((name for name in fields if name.lower().replace("_", " ") == noun.replace("_", " ")), None)


def _objects(text: str, strings: list[str], negated: bool, kind: Kind, field: str | None) -> list[Group] | None:
    """`"a" or "b" and not "c"` as groups; bare words are taken verbatim."""
    groups: list[tuple[list[str], bool]] = [([], negated)]
    at = 0
    for found in [*_JOIN.finditer(text), None]:
        piece = text[at : found.start() if found else len(text)].strip(" .:;*_")
        if piece and not _take(piece, strings, groups[-1][0]):
            return None
        if found is None:
            break
        at = found.end()
        word = (found[1] or ",").lower()
        if word in ("and", "but") and groups[-1][0]:
            groups.append(([], negated))
        elif word == "unless":
            groups.append(([], not negated))
        elif word in ("not", "nor"):
            groups[-1:] = [groups[-1], ([], not negated)] if groups[-1][0] else [([], not negated)]
    return [Group(tuple(triggers), no, kind, field) for triggers, no in groups if triggers]


def _take(piece: str, strings: list[str], into: list[str]) -> bool:
    """Add the triggers of one piece; False where the piece is a phrase too long to be a trigger."""
    quoted = re.findall("\ue000(\\d+)\ue001", piece)
    found = [strings[int(number)][1:-1] for number in quoted] if quoted else [piece]
    if not quoted and len(piece.split()) > 3:
        return False
    into += [trigger for trigger in map(normal, found) if trigger.strip()]
    return True


_WORDS = """
a about above after again against all also am an and another any anybody anyone anything are around as at away back be
because been before behind being below between both but by can cannot could d did didn do does doesn doing don done
down during each either else even ever every few for from further get gets getting give given go goes going gone got
had has have having he her here hers him his how however i if in into is isn it its just know last least less let like
ll long made make many may me might mine more most much must my myself near need never next no nobody none nor not
nothing now of off often on once one only or other others our ours out over own per perhaps please put quite rather re
really s said same say says see seem seems shall she should since so some somebody someone something still such t take
than that the their theirs them themselves then there these they thing things this those though through time to today
together too two under until up upon us use used using ve very want wants was way we well were what when where whether
which while who whom whose why will with within without would yes yet you your yours
"""

# Greetings, days, months and numbers occur in letters about anything.
_BOILERPLATE = """
hello hi hey dear greetings thanks thank cheers regards sincerely sir madam team sorry kind kindly best
monday tuesday wednesday thursday friday saturday sunday weekend weekday
january february march april june july august september october november december
morning noon afternoon evening night midnight yesterday tomorrow tonight
second seconds minute minutes hour hours day days week weeks month months year years ago
zero three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand half dozen first third twice
"""

FUNCTION_WORDS = frozenset(_WORDS.split())
NO_SIGNS = FUNCTION_WORDS | frozenset(_BOILERPLATE.split())
