"""rulebook as a target: it follows the rules that it can read in the skill, and guesses by a weak prior elsewhere.

The prior, in full. A label: the first in declared order whose own words occur in the inputs, else one drawn by lot; the
lot is the number of letters and digits in the inputs, so that it is always the same and knows nothing. A bool: False. A
number: the first number in the inputs, else 0. A list: empty. A text: the capitalised phrase that occurs most often in
the longest input and not in the others, else that input's first sentence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from skillc.models.rulebook.function_words import FUNCTION_WORDS
from skillc.models.rulebook.noise import wrong_label
from skillc.models.rulebook.reading import Form, Output, read_form, read_inputs, texts, write_answer
from skillc.models.rulebook.sentences import Rule, applies, fired, normal, read_rules

_CAPITALISED = re.compile(r"\b[A-Z][\w'’-]*(?:\s+(?:(?:of|the|de|van|von)\s+)?[A-Z][\w'’-]*)*")
_NUMBER = re.compile(r"-?\d+(?:[.,]\d+)*")
_FORMATS = (
    (re.compile(r"\b(?:lower[ -]?case|small letters)\b", re.IGNORECASE), "lower"),
    (re.compile(r"\b(?:upper[ -]?case|capital letters|capitals)\b", re.IGNORECASE), "upper"),
    (re.compile(r"\b(?:only|just) the number\b|\bnumber only\b", re.IGNORECASE), "number"),
    (re.compile(r"\bwithout (?:a |the )?(?:full stop|period)\b|\bno (?:full stop|period)\b", re.IGNORECASE), "no_stop"),
    (re.compile(r"\bwithout (?:a |the |an )?article\b", re.IGNORECASE), "no_article"),
    (
        re.compile(r"\b(?:at most|no more than|up to) (\d+|one|two|three|four|five|six) words?\b", re.IGNORECASE),
        "words",
    ),
)
_COUNTS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_FORMAT_LINE = re.compile(
    r"^(?:always\s+|please\s+)?(?:answer|reply|respond|write|give|keep|use|copy)\b", re.IGNORECASE
)
_MARKER = re.compile(r"\s*(?:[-*+•]\s+|\d{1,3}[.)]\s+)*")
_REASONING = ("reasoning", "rationale", "thought")


@dataclass(frozen=True, slots=True)
class Skill:
    """What rulebook understands of a skill's text."""

    rules: tuple[Rule, ...]
    default: Rule | None
    formats: tuple[tuple[str, int], ...]


@lru_cache(maxsize=256)
def read_skill(text: str, fields: tuple[str, ...]) -> Skill:
    """The rules in reading order, the first default, and the formats that are asked for without a condition."""
    rules = read_rules(text, fields)
    default = next((rule for rule in rules if rule.default), None)
    lines = [_MARKER.sub("", line, count=1).strip() for line in text.splitlines()]
    formats = [
        (name, _COUNTS.get(found[1].lower()) or int(found[1]) if name == "words" else 0)
        for line in lines
        if _FORMAT_LINE.match(line)
        for pattern, name in _FORMATS
        if (found := pattern.search(line))
    ]
    return Skill(tuple(rule for rule in rules if not rule.default), default, tuple(formats))


def deciding_rule(
    skill: Skill, inputs: Mapping[str, str], labels: Sequence[str], reserved: Sequence[str] = ()
) -> Rule | None:
    """The first rule that applies and whose answer is among the labels, else the default, else None.

    Args:
        skill: as read.
        inputs: normal texts by name.
        labels: the output's; empty where any text will do.
        reserved: labels of other outputs, which a free text does not take.
    """

    def fits(rule: Rule) -> bool:
        if reserved and not labels and label_of(rule.answer, reserved) is not None:
            return False
        return label_of(rule.answer, labels) is not None

    found = next((rule for rule in skill.rules if applies(rule, inputs) and fits(rule)), None)
    if found is None and skill.default and fits(skill.default):
        return skill.default
    return found


def label_of(answer: str, labels: Sequence[str]) -> str | None:
    """The label that an answer names, in its declared spelling; the answer itself where there are no labels."""
    if not labels:
        return answer
    if answer in labels:
        return answer
    folded = answer.casefold().strip()
    return next((label for label in labels if label.casefold() == folded), None)


def prior_label(inputs: Mapping[str, str], labels: Sequence[str]) -> str:
    """The first label whose own words occur in the inputs, else one drawn by lot."""
    for label in labels:
        if any(normal(label) in text for text in inputs.values()):
            return label
    lot = sum(len(text) - text.count(" ") for text in inputs.values())
    return labels[lot % len(labels)]


def answer_target(
    messages: Sequence[Mapping[str, object]], *, noise: float = 0.0, seed: int = 0, sample: object = 0
) -> str:
    """The reply to a program's prompt.

    Args:
        messages: as a chat model gets them.
        noise: probability of a wrong label.
        seed: of the noise.
        sample: which sample of this call it is.
    """
    form = read_form("\n\n".join(texts(messages, "system")))
    users = texts(messages, "user")
    inputs = read_inputs(form, users[-1] if users else "")
    normals = {name: normal(value) for name, value in inputs.items()}
    skill = read_skill(form.skill, form.inputs)
    values: dict[str, str] = {}
    for output in form.outputs:
        if output.name in _REASONING and not output.labels and len(form.outputs) > 1:
            values[output.name] = _reasoning(skill, normals, form)
            continue
        reserved = [label for other in form.outputs if other is not output for label in other.labels]
        value = _value(output, skill, inputs, normals, reserved)
        values[output.name] = wrong_label(value, output.labels, noise, seed, messages, sample)
    return write_answer(form, values)


def _reasoning(skill: Skill, inputs: Mapping[str, str], form: Form) -> str:
    labels = form.outputs[-1].labels
    rule = deciding_rule(skill, inputs, labels)
    if rule is None:
        return "No rule applies, so this is a guess."
    if rule.default:
        return f"No other rule applies, so the default holds: {rule.answer}."
    return f"The text has {', '.join(f'`{t.strip()}`' for t in fired(rule, inputs))}, so the answer is {rule.answer}."


def _value(
    output: Output, skill: Skill, inputs: Mapping[str, str], normals: Mapping[str, str], reserved: Sequence[str]
) -> str:
    rule = deciding_rule(skill, normals, output.labels, reserved)
    if output.labels:
        if rule is not None:
            return label_of(rule.answer, output.labels) or output.labels[0]
        return "False" if output.type == "bool" else prior_label(normals, output.labels)
    kind = output.type.lower()
    if kind in ("int", "float"):
        found = _NUMBER.search(rule.answer if rule else " ".join(inputs.values()))
        number = found[0].replace(",", "") if found else "0"
        return str(number).split(".")[0] if kind == "int" else str(number)
    if kind.startswith(("list", "dict")):
        return "[]" if kind.startswith("list") else "{}"
    return _formatted(rule.answer if rule else guess_text(inputs), skill.formats)


def guess_text(inputs: Mapping[str, str]) -> str:
    """The weak prior for a text."""
    if not inputs:
        return ""
    longest = max(inputs, key=lambda name: len(inputs[name]))
    others = normal(" ".join(value for name, value in inputs.items() if name != longest))
    phrases = (_without_function_words(phrase) for phrase in _CAPITALISED.findall(inputs[longest]))
    counts = Counter(phrase for phrase in phrases if phrase and normal(phrase) not in others)
    if counts and len(inputs) > 1:
        return max(counts, key=lambda phrase: counts[phrase])
    sentences: list[str] = re.split(r"(?<=[.!?])\s", inputs[longest].strip(), maxsplit=1)
    return sentences[0]


def _without_function_words(phrase: str) -> str:
    """A phrase without the function words that it begins with because a sentence does."""
    words = phrase.split()
    while words and words[0].lower() in FUNCTION_WORDS:
        words.pop(0)
    return " ".join(words)


def _formatted(text: str, formats: Sequence[tuple[str, int]]) -> str:
    for name, count in formats:
        if name == "number":
            found = _NUMBER.search(text)
            text = found[0] if found else text
        elif name == "words":
            text = " ".join(text.split()[:count])
        elif name == "no_stop":
            text = text.rstrip(". ")
        elif name == "no_article":
            text = re.sub(r"^(?:the|an|a)\s+", "", text, flags=re.IGNORECASE)
        else:
            text = text.lower() if name == "lower" else text.upper()
    return text
