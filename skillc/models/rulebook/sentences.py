"""The sentences that rulebook understands.

A rule is a condition and an answer: `If the ticket mentions "chargeback" or "invoice", answer billing.` A condition is
an AND of clauses, each group an OR of triggers; a group may be negated (`and not "x"`, `but does not mention "x"`,
`unless it mentions "x" or "y"`). A trigger matches whole words, in any case. Other text is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal

from skillc.dataclass import dataclass

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
# The sentences of `copying.py` name a place in an input, not an answer.
_COPYING = re.compile(
    r"\b(?:with|from|to|as)\s+the\s+(?:\w+\s+)?(?:number|word|name|line|text\s+(?:between|that)|rest\s+of)\b",
    re.IGNORECASE,
)
_JOIN = re.compile(r"\b(and|but|unless|or|not|nor)\b|,", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Clause:
    """Triggers of which one must occur or, negated, none may. `field` None is any input."""

    triggers: tuple[str, ...]
    negated: bool = False
    kind: Kind = "mentions"
    field: str | None = None


@dataclass(frozen=True, slots=True)
class DecisionRule:
    """An answer and its condition; without clauses it is a default."""

    answer: str
    clauses: tuple[Clause, ...]

    @property
    def is_default(self) -> bool:
        """Whether it applies only if no other rule does."""
        return not self.clauses


@lru_cache(maxsize=4096)
def normal(text: str) -> str:
    """Return a text as lower-case words with a space around each, so that `in` finds whole words only."""
    return f" {' '.join(words(text))} "


def words(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return _WORD.findall(text.lower())


def needs_quotes(sign: str) -> bool:
    """Whether a sign without quotes would be read as part of its sentence."""
    return bool(_VERB.search(sign) or _JOIN.search(sign) or _GRAMMAR.search(sign))


def applies(rule: DecisionRule, inputs: Mapping[str, str]) -> bool:
    """Whether a rule's condition is true for inputs as normal texts. A default's always is."""
    return all(is_true(clause, inputs) for clause in rule.clauses)


def is_true(clause: Clause, inputs: Mapping[str, str]) -> bool:
    """Whether a clause is true for inputs as normal texts."""
    one = inputs.get(clause.field) if clause.field else None
    texts = list(inputs.values()) if one is None else [one]
    return any(_in(clause.kind, trigger, text) for trigger in clause.triggers for text in texts) != clause.negated


def _in(kind: Kind, trigger: str, text: str) -> bool:
    if kind == "starts":
        return text.startswith(trigger)
    return text.endswith(trigger) if kind == "ends" else trigger in text


def fired(rule: DecisionRule, inputs: Mapping[str, str]) -> tuple[str, ...]:
    """Return the triggers of a rule's positive clauses that occur in the inputs."""
    return tuple(
        trigger
        for clause in rule.clauses
        if not clause.negated
        for trigger in clause.triggers
        if is_true(Clause((trigger,), False, clause.kind, clause.field), inputs)
    )


def reads_majority(text: str) -> bool:
    """Whether a text lets the answer with the most signs win if several rules apply."""
    return any(map(_MAJORITY.match, sentences_of(text)))


def decide(rules: Sequence[DecisionRule], inputs: Mapping[str, str], *, majority: bool = False) -> int | None:
    """Return the index of the rule that decides: the first that applies, else the first default, else None.

    With `majority` the answer whose rules have the most signs in the inputs wins; the first of equal ones.
    """
    applying = [at for at, rule in enumerate(rules) if not rule.is_default and applies(rule, inputs)]
    if not applying:
        return next((at for at, rule in enumerate(rules) if rule.is_default), None)
    if not majority:
        return applying[0]
    signs: dict[str, set[str]] = {}
    for at in applying:
        signs.setdefault(rules[at].answer.casefold(), set()).update(fired(rules[at], inputs))
    return max(applying, key=lambda at: len(signs[rules[at].answer.casefold()]))


def read_rules(text: str, fields: tuple[str, ...] = ()) -> tuple[DecisionRule, ...]:
    """Return all rules in a text, in order; `fields` are the names of the inputs, for `if the <field> mentions`."""
    found = (read_sentence(sentence, fields) for sentence in sentences_of(text))
    return tuple(rule for rule in found if rule is not None)


def sentences_of(text: str) -> Iterator[str]:
    """Split lines without their bullets into sentences, but not within quoted strings."""
    for line in text.splitlines():
        masked, strings = mask(_BULLET.sub("", line, count=1))
        yield from (_unmask(part, strings) for part in _SENTENCE_END.split(masked))


def mask(text: str) -> tuple[str, list[str]]:
    """Replace each quoted string by a private character; return the text and the strings."""
    strings: list[str] = []

    def keep(found: re.Match[str]) -> str:
        strings.append(found[0])
        return f"\ue000{len(strings) - 1}\ue001"

    return _STRINGS.sub(keep, text), strings


def _unmask(text: str, strings: list[str]) -> str:
    return re.sub("\ue000(\\d+)\ue001", lambda m: strings[int(m[1])], text)


def read_sentence(sentence: str, fields: tuple[str, ...] = ()) -> DecisionRule | None:
    """Read the rule in one sentence; None if rulebook does not understand it."""
    masked, strings = mask(sentence.strip())
    default = _DEFAULT.match(masked)
    head = default or _IF.match(masked)
    rest = masked[head.end() :] if head else ""
    actions = list(_ACTION.finditer(rest))
    if not actions:
        return None
    action = actions[-1]
    tail, exception = _split_exception(rest[action.end() :])
    answer = _answer(tail, strings)
    if not answer or _COPYING.search(tail):
        return None
    condition = "" if default else rest[: action.start()]
    clauses = () if default else read_condition(condition + exception, strings, fields)
    if clauses is None or (not default and not any(not clause.negated for clause in clauses)):
        return None
    return DecisionRule(answer, clauses)


def _split_exception(tail: str) -> tuple[str, str]:
    """Split off an exception after the answer: `answer billing, unless it mentions "refund".`"""
    found = re.search(r",?\s*\bunless\b", tail, re.IGNORECASE)
    if found is None:
        return tail, ""
    return tail[: found.start()], " " + tail[found.start() :].lstrip(", ").rstrip(". ")


def _answer(tail: str, strings: list[str]) -> str:
    text = tail.strip().rstrip(".!;, ").strip()
    quoted = re.fullmatch("\ue000(\\d+)\ue001", text)
    if quoted:
        return strings[int(quoted[1])][1:-1].strip()
    return _unmask(text, strings).strip("*_ ")


def read_condition(condition: str, strings: list[str], fields: tuple[str, ...]) -> tuple[Clause, ...] | None:
    """Read the clauses of a condition; None if rulebook does not understand a part of it."""
    verbs = list(_VERB.finditer(condition))
    if not verbs or condition[: verbs[0].start()].strip():
        return None
    clauses: list[Clause] = []
    for found, following in zip(verbs, [*verbs[1:], None], strict=True):
        objects = condition[found.end() : following.start() if following else len(condition)]
        before = condition[: found.start()].rstrip(", ").lower()
        negated = bool(found["not"]) != before.endswith("unless")
        part = _objects(objects, strings, negated, _kind(found["verb"]), _field(found["subject"], fields))
        if part is None:
            return None
        clauses += part
    return tuple(clauses)


def _kind(verb: str) -> Kind:
    verb = verb.lower()
    if verb.startswith(("start", "begin")):
        return "starts"
    return "ends" if verb.startswith("end") else "mentions"


def _field(subject: str | None, fields: tuple[str, ...]) -> str | None:
    noun = re.sub(r"^(?:the|a|its|this)\s+", "", (subject or "").strip().lower())
    return next((name for name in fields if name.lower().replace("_", " ") == noun.replace("_", " ")), None)


def _objects(text: str, strings: list[str], negated: bool, kind: Kind, field: str | None) -> list[Clause] | None:
    """Read `"a" or "b" and not "c"` as clauses; bare words are triggers verbatim."""
    clauses: list[tuple[list[str], bool]] = [([], negated)]
    at = 0
    for found in [*_JOIN.finditer(text), None]:
        piece = text[at : found.start() if found else len(text)].strip(" .:;*_")
        if piece and not _add_triggers(piece, strings, clauses[-1][0]):
            return None
        if found is None:
            break
        at = found.end()
        word = (found[1] or ",").lower()
        if word in ("and", "but") and clauses[-1][0]:
            clauses.append(([], negated))
        elif word == "unless":
            clauses.append(([], not negated))
        elif word in ("not", "nor"):
            clauses[-1:] = [clauses[-1], ([], not negated)] if clauses[-1][0] else [([], not negated)]
    return [Clause(tuple(triggers), no, kind, field) for triggers, no in clauses if triggers]


def _add_triggers(piece: str, strings: list[str], into: list[str]) -> bool:
    """Add the triggers of one piece; return False if it is too long for a trigger."""
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
