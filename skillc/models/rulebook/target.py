"""rulebook as a target: it follows the rules that it can read in the skill, and guesses by a weak prior elsewhere.

The prior, in full. A label: the first in declared order whose own words occur in the inputs, else one drawn by lot; the
lot is the number of letters and digits in the inputs, so that it is always the same and knows nothing. A bool: False. A
number: the first number in the inputs, else 0. A list: empty. A text: the capitalised phrase that occurs most often in
the longest input and not in the others, else that input's first sentence.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from skillc.models.rulebook.reading import Output, PromptFormat, read_form, read_inputs, texts, write_answer
from skillc.models.rulebook.sentences import FUNCTION_WORDS, Rule, decide, fired, normal, read_rules, reads_majority
from skillc.models.rulebook.taking import Take, number_of, read_takes, taken

_CAPITALISED = re.compile(r"\b[A-Z][\w'’-]*(?:\s+(?:(?:of|the|de|van|von)\s+)?[A-Z][\w'’-]*)*")
_NUMBERS = ("int", "float", "optional[int]", "optional[float]")
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
# The name of a form, and a number of words.
Format = tuple[str, int]
_COUNTS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_FORMAT_LINE = re.compile(
    r"^(?:always\s+|please\s+)?(?:answer|reply|respond|write|give|keep|use|copy)\b", re.IGNORECASE
)
_MARKER = re.compile(r"\s*(?:[-*+•]\s+|\d{1,3}[.)]\s+)*")
_REASONING = ("reasoning", "rationale", "thought")


@dataclass(frozen=True, slots=True)
class Skill:
    """The parts of a skill's text that rulebook understands."""

    rules: tuple[Rule, ...]
    formats: tuple[Format, ...]
    majority: bool
    takes: tuple[Take, ...] = ()


@lru_cache(maxsize=256)
def read_skill(text: str, fields: tuple[str, ...]) -> Skill:
    """The rules in reading order, how they are counted, and the formats that are asked for without a condition."""
    rules = read_rules(text, fields)
    lines = [_MARKER.sub("", line, count=1).strip() for line in text.splitlines()]
    formats = [
        (name, _COUNTS.get(found[1].lower()) or int(found[1]) if name == "words" else 0)
        for line in lines
        if _FORMAT_LINE.match(line)
        for pattern, name in _FORMATS
        if (found := pattern.search(line))
    ]
    return Skill(rules, tuple(formats), reads_majority(text), read_takes(text, fields))


def deciding_rule(
    skill: Skill, inputs: Mapping[str, str], labels: Sequence[str], reserved: Sequence[str] = ()
) -> Rule | None:
    """The rule that decides among those whose answer is one of the labels, None where there is none.

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

    rules = [rule for rule in skill.rules if fits(rule)]
    at = decide(rules, inputs, majority=skill.majority)
    return None if at is None else rules[at]


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
        value = _value(output, skill, inputs, normals, reserved, form)
        values[output.name] = wrong_label(value, output.labels, noise, seed, messages, sample)
    return write_answer(form, values)


def _reasoning(skill: Skill, inputs: Mapping[str, str], form: PromptFormat) -> str:
    labels = form.outputs[-1].labels
    rule = deciding_rule(skill, inputs, labels)
    if rule is None:
        return "No rule applies, so this is a guess."
    if rule.default:
        return f"No other rule applies, so the default holds: {rule.answer}."
    return f"The text has {', '.join(f'`{t.strip()}`' for t in fired(rule, inputs))}, so the answer is {rule.answer}."


def _value(
    output: Output,
    skill: Skill,
    inputs: Mapping[str, str],
    normals: Mapping[str, str],
    reserved: Sequence[str],
    form: PromptFormat,
) -> str:
    if output.labels:
        rule = deciding_rule(_about(skill, output.name, form), normals, output.labels, reserved)
        if rule is not None:
            return label_of(rule.answer, output.labels) or output.labels[0]
        return "False" if output.type == "bool" else prior_label(normals, output.labels)
    kind = output.type.lower()
    found = _taken(skill, output.name, inputs)
    if kind.startswith("list"):
        return json.dumps([_item(text, kind) for text in found], ensure_ascii=False)
    if _is_json(output):
        return json.dumps(_object(skill, inputs, normals, form), ensure_ascii=False)
    rule = deciding_rule(_about(skill, output.name, form), normals, (), reserved)
    text = rule.answer if rule and (not rule.default or not found) else (found[0] if found else None)
    if kind in _NUMBERS:
        number = number_of(text if text is not None else " ".join(inputs.values())) or 0.0
        return str(int(number)) if number == int(number) else str(int(number) if "int" in kind else number)
    return formatted(guess_text(inputs) if text is None else text, skill.formats)


def _is_json(output: Output) -> bool:
    return output.type.lower().removeprefix("optional[").startswith("dict")


def _about(skill: Skill, name: str, form: PromptFormat) -> Skill:
    """The skill with the rules for one output, `answer priority with high`, and those that name no other output."""
    rules = []
    others, keys = {named(other.name) for other in form.outputs}, any(map(_is_json, form.outputs))
    for rule in skill.rules:
        head, joined, value = rule.answer.partition(" with ")
        if joined and named(head) == named(name):
            rules.append(replace(rule, answer=value))
        elif not joined or not (keys or named(head) in others):
            rules.append(rule)
    return replace(skill, rules=tuple(rules))


def _object(
    skill: Skill, inputs: Mapping[str, str], normals: Mapping[str, str], form: PromptFormat
) -> dict[str, object]:
    """The keys that rules and sentences name, each with its value."""
    heads = [rule.answer.partition(" with ")[0] for rule in skill.rules if " with " in rule.answer]
    keys = dict.fromkeys([*(take.name for take in skill.takes), *heads])
    values: dict[str, object] = {}
    for key in keys:
        if named(key) in {named(output.name) for output in form.outputs}:
            continue
        own = [rule for rule in skill.rules if rule.answer.startswith(f"{key} with ")]
        at = decide(own, normals, majority=skill.majority)
        takes = [take for take in skill.takes if take.name == key]
        take, found = next(((take, texts) for take in takes if (texts := taken(take, inputs))), (None, []))
        if at is not None and (not own[at].default or take is None):
            values[key] = _plain(own[at].answer.partition(" with ")[2])
        elif take is not None:
            one = _number_or_text(found[0]) if take.kind == "number" else found[0]
            values[key] = found if take.ordinal == "every" else one
    return values


def _taken(skill: Skill, name: str, inputs: Mapping[str, str]) -> list[str]:
    """The texts copied by the first sentence for an output that finds any."""
    takes = (take for take in skill.takes if named(take.name) == named(name))
    return next((found for take in takes if (found := taken(take, inputs))), [])


def _item(text: str, kind: str) -> object:
    return _number_or_text(text) if "int" in kind or "float" in kind else text


def _number_or_text(text: str) -> object:
    number = number_of(text)
    return text if number is None else int(number) if number == int(number) else number


def _plain(text: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def named(name: str) -> str:
    """A name as names are compared: case and underscores make no difference."""
    return name.casefold().replace("_", " ").strip()


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


def formatted(text: str, formats: Sequence[Format]) -> str:
    """The text in the forms that a skill asks for."""
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


_SCALE = 1 << 64


def draw(seed: int, messages: Sequence[Mapping[str, object]], sample: object, purpose: str) -> float:
    """A number in [0, 1), decided by sha256 of the seed, the messages, the sample and what it is for."""
    text = json.dumps(
        [seed, sample, purpose, [dict(m) for m in messages]], sort_keys=True, ensure_ascii=True, default=str
    )
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) / _SCALE


def wrong_label(
    label: str, labels: Sequence[str], share: float, seed: int, messages: Sequence[Mapping[str, object]], sample: object
) -> str:
    """The label, or with probability `share` one of the others."""
    others = [other for other in labels if other != label]
    if share <= 0 or not others or draw(seed, messages, sample, "whether") >= share:
        return label
    return others[int(draw(seed, messages, sample, "which") * len(others))]
