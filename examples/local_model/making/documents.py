"""Skill documents with rules at random, and tasks whose answers follow from the rules and from nothing else.

Triggers and labels are drawn anew for each document, so no word has a meaning to learn: what helps is to read the
rules.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from . import lists, phrasings, prompts, words
from .prompts import Task
from .rules import Rule, deciding, pattern

HERE = Path(__file__).resolve().parent
SLOTS = 32  # places that one rule may have: its label is 0, its triggers come after
KINDS = ("any", "both", "except", "starts", "ends")  # of rules but defaults


@dataclass(frozen=True, slots=True)
class Level:
    """How hard documents are.

    Attributes:
        rules, triggers, labels: fewest and most.
        odd: the share of rules that are not of the kind `any`.
        strange: the share of documents whose phrasings are made of words without sense.
        sentences: the most sentences of an input.
        phrases: the share of triggers of two words.
        queries: inputs a document.
        phrasings: how many of each kind are used, from the first on; 0 for all.
    """

    rules: tuple[int, int] = (1, 16)
    triggers: tuple[int, int] = (1, 5)
    labels: tuple[int, int] = (2, 8)
    odd: float = 0.1
    strange: float = 0.2
    sentences: int = 3
    phrases: float = 0.1
    queries: int = 12
    phrasings: int = 0


@dataclass(frozen=True, slots=True)
class Query:
    """One input and its answer.

    Attributes:
        user: the user message; before, label, after: the reply.
        text: start and end of the input in the message.
        hits: (start, end, rule, trigger) of the triggers in the message, counted from 0 and 1.
        rule: the rule that decides; None where none does and the answer was drawn by lot.
    """

    user: str
    before: str
    label: str
    after: str
    text: tuple[int, int]
    hits: tuple[tuple[int, int, int, int], ...]
    rule: int | None


@dataclass(frozen=True, slots=True)
class Document:
    """One skill and its queries; `places` has start and end of each rule's label (slot 0) and triggers (from 1 on)."""

    task: Task
    system: str
    rules: tuple[Rule, ...]
    places: dict[tuple[int, int], tuple[int, int]]
    queries: tuple[Query, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """Where words, phrasings and filler come from; the evaluation has its own.

    Attributes:
        word, label: draw one.
        rules, filler, nouns: sections of templates.
    """

    word: Callable[[random.Random], str]
    label: Callable[[random.Random], str]
    rules: dict[str, tuple[str, ...]]
    filler: dict[str, tuple[str, ...]]
    nouns: dict[str, tuple[str, ...]]


def training_word(chance: random.Random) -> str:
    """A trigger or a word of a text."""
    return words.invented(chance) if chance.random() < 0.3 else chance.choice(words.training())


def training_label(chance: random.Random) -> str:
    """A label: mostly one word, at times with a hyphen, an underscore, a capital or a second word."""
    one = training_word(chance)
    kind = chance.random()
    if kind < 0.72:
        return one
    if kind < 0.88:
        return one + chance.choice("--__ /") + training_word(chance)
    if kind < 0.94:
        return one.capitalize()
    return chance.choice(
        (one[:2], one[:2].upper(), f"{one[0].upper()}{chance.randint(1, 9)}", f"{one}{chance.randint(0, 99)}")
    )


@cache
def training_source(most: int = 0) -> Source:
    """What the training draws from; of each kind of phrasing the first so many, 0 for all."""
    every = phrasings.sections(HERE / "phrasings.txt")
    return Source(
        training_word,
        training_label,
        {kind: lines[: most or None] for kind, lines in every.items()},
        phrasings.sections(HERE / "filler.txt"),
        phrasings.sections(HERE / "nouns.txt"),
    )


def document(chance: random.Random, level: Level, source: Source, *, chat: bool | None = None) -> Document:
    """One document with its queries."""
    task = draw_task(chance, level, source)
    rules = draw_rules(chance, level, source, task.labels)
    skill = Writer(chance, source, task, strange=chance.random() < level.strange).skill(rules)
    in_chat = chance.random() < 0.85 if chat is None else chat
    system, found = prompts.places((prompts.chat_system if in_chat else prompts.plain_system)(task, skill))
    places = {divmod(number, SLOTS): place for number, place in found.items()}
    asked = Asking(chance, level, source, task, rules, in_chat)
    return Document(task, system, rules, places, tuple(asked.query() for _ in range(level.queries)))


def draw_task(chance: random.Random, level: Level, source: Source) -> Task:
    """Names and labels."""
    labels: list[str] = []
    while len(labels) < chance.randint(*level.labels) or len(labels) < 2:
        label = source.label(chance)
        if label.lower() not in (each.lower() for each in labels):
            labels.append(label)
    field = chance.choice(source.nouns["N"]).replace(" ", "_")
    output = chance.choice([each for each in source.nouns["O"] if each != field]).replace(" ", "_")
    about = chance.choice(source.nouns["about"]) if chance.random() < 0.5 else ""
    return Task(field, output, about, tuple(labels))


def draw_rules(chance: random.Random, level: Level, source: Source, labels: Sequence[str]) -> tuple[Rule, ...]:
    """Rules in their order; the default, if there is one, at the end, seldom elsewhere."""
    rules: list[Rule] = []
    used: list[str] = []
    taken = {part for label in labels for part in label.lower().replace("_", "-").split("-")}

    def trigger() -> str:
        if used and chance.random() < 0.03:
            return chance.choice(used)
        while True:
            word = source.word(chance)
            if chance.random() < level.phrases:
                word += " " + source.word(chance)
            if word not in used and word not in taken:
                used.append(word)
                return word

    for _ in range(chance.randint(*level.rules)):
        kind: Any = "any"
        if chance.random() < level.odd:
            kind = chance.choice(("both", "both", "except", "except", "starts", "ends"))
        few, many = level.triggers
        count = {"both": 2, "except": max(2, min(3, many))}.get(kind) or chance.randint(few, many)
        triggers = tuple(dict.fromkeys(trigger() for _ in range(count)))
        if kind in ("both", "except") and len(triggers) < 2:
            kind = "any"
        rules.append(Rule(kind, triggers, chance.choice(list(labels))))
    if chance.random() < 0.4:
        at = len(rules) if chance.random() < 0.85 else chance.randint(0, len(rules))
        rules.insert(at, Rule("default", (), chance.choice(list(labels))))
    return tuple(rules)


class Writer:
    """Writes one document."""

    def __init__(self, chance: random.Random, source: Source, task: Task, *, strange: bool) -> None:
        self._chance, self._source, self._task, self._strange = chance, source, task, strange
        self._style = lists.style(chance)
        self._same = {kind: self._template(kind) for kind in KINDS if source.rules.get(kind)}
        self._uniform = chance.random() < 0.4
        self._sense: dict[str, str] = {}
        self._noun = chance.choice((task.field.replace("_", " "), chance.choice(source.nouns["N"])))

    def skill(self, rules: Sequence[Rule]) -> str:
        """The skill's text, its places marked."""
        chance, filler = self._chance, self._source.filler
        blocks = [f"# {self._sentence(chance.choice(filler['heading']))}"] if chance.random() < 0.8 else []
        if chance.random() < 0.7:
            blocks += [f"## {self._sentence(chance.choice(filler['heading']))}"] if chance.random() < 0.5 else []
            blocks.append(self._sentence(chance.choice(filler["intro"])))
        blocks += self._sections([self._rule(number, rule) for number, rule in enumerate(rules)])
        if chance.random() < 0.2:
            blocks.append(self._sentence(chance.choice(filler["item"])))
        return "\n\n".join(blocks)

    def _sections(self, lines: list[str]) -> list[str]:
        chance, filler = self._chance, self._source.filler
        spread = chance.choice((0.0, 0.0, 0.1, 0.3))
        items: list[str] = []
        for line in lines:
            while chance.random() < spread:
                items.append(self._sentence(chance.choice(filler["item"])))
            items.append(line)
        if chance.random() < 0.25:
            items.insert(0, chance.choice(self._source.rules["first"]))
        bullet = chance.choice(["- ", "- ", "- ", "- ", "* ", "{}. ", "{}) ", "", "• "])
        between = "\n\n" if bullet == "" and chance.random() < 0.5 else "\n"
        blocks: list[str] = []
        rest = items
        while rest:
            take = len(rest) if chance.random() < 0.5 else chance.randint(1, len(rest))
            if blocks or chance.random() < 0.7:
                blocks.append(f"{chance.choice(('##', '###'))} {self._sentence(chance.choice(filler['heading']))}")
            part, rest = rest[:take], rest[take:]
            blocks.append(between.join(f"{bullet.format(number)}{item}" for number, item in enumerate(part, 1)))
        return blocks

    def _template(self, kind: str) -> str:
        return self._chance.choice(self._source.rules[kind])

    def _rule(self, number: int, rule: Rule) -> str:
        template = self._same[rule.kind] if self._uniform and rule.kind != "default" else self._template(rule.kind)
        template = phrasings.expand(template, self._chance)
        if self._strange:
            template = self._without_sense(template)
        style = self._style if self._chance.random() < 0.8 else lists.style(self._chance)
        marked = [prompts.mark(number * SLOTS + slot, self._case(each)) for slot, each in enumerate(rule.triggers, 1)]
        left, right = style.trigger
        values = {
            "L": style.answer(prompts.mark(number * SLOTS, rule.label)),
            "N": self._noun,
            "O": self._task.output.replace("_", " "),
        }
        if rule.kind == "both":
            values |= {"A": f"{left}{marked[0]}{right}", "B": f"{left}{marked[1]}{right}"}
        elif rule.kind == "except":
            values |= {"T": style.triggers(marked[:-1]), "B": f"{left}{marked[-1]}{right}"}
        elif rule.kind != "default":
            values["T"] = style.triggers(marked)
        return phrasings.fill(template, values)

    def _case(self, trigger: str) -> str:
        return trigger.capitalize() if self._chance.random() < 0.04 else trigger

    def _sentence(self, template: str) -> str:
        values = {"N": self._noun, "O": self._task.output.replace("_", " ")}
        return phrasings.fill(phrasings.expand(template, self._chance), values)

    def _without_sense(self, template: str) -> str:
        """Each word of a template replaced by any word, the same one for most of the document."""

        def other(word: str) -> str:
            if not word.isalpha():
                return word
            if word not in self._sense or self._chance.random() < 0.1:
                self._sense[word] = self._source.word(self._chance)
            return self._sense[word]

        return " ".join(other(word) for word in template.split(" "))


class Asking:
    """Makes a document's queries."""

    def __init__(
        self, chance: random.Random, level: Level, source: Source, task: Task, rules: tuple[Rule, ...], chat: bool
    ) -> None:
        self._chance, self._level, self._source, self._task, self._rules, self._chat = (
            chance,
            level,
            source,
            task,
            rules,
            chat,
        )
        self._common = tuple(sorted(words.FUNCTION))

    def query(self) -> Query:
        """One query: mostly one rule holds, at times two, none, or half of one."""
        chance = self._chance
        rules = [rule for rule in self._rules if rule.kind != "default"]
        kind = chance.random()
        signs: list[str] = []
        if kind < 0.82 and rules:
            rule = chance.choice(rules)
            signs = self.signs(rule)
            if kind > 0.62:
                signs += self.signs(chance.choice(rules))
        elif kind < 0.9 and rules:
            rule = chance.choice(rules)
            signs = [part for part in chance.choice(rule.triggers).split()[:1] if " " in " ".join(rule.triggers)]
            if rule.kind in ("both", "except"):
                signs = list(rule.triggers[-1:])
        elif kind < 0.93:
            signs = [chance.choice(self._task.labels)]
        edge = next(
            (rule.kind for rule in rules if rule.kind in ("starts", "ends") and set(rule.triggers) & set(signs)), ""
        )
        text = self.text(signs, edge)
        number = deciding(self._rules, text)
        label = self._rules[number].label if number is not None else chance.choice(self._task.labels)
        message = (prompts.chat_user if self._chat else prompts.plain_user)(self._task, text)
        start = message.index(text)
        before, label, after = (prompts.chat_reply if self._chat else prompts.plain_reply)(self._task, label)
        return Query(message, before, label, after, (start, start + len(text)), self._hits(text, start), number)

    def signs(self, rule: Rule) -> list[str]:
        """Triggers that make a rule hold."""
        if rule.kind == "both":
            return list(rule.triggers)
        if rule.kind == "except":
            return [self._chance.choice(rule.triggers[:-1])]
        return [self._chance.choice(rule.triggers)]

    def text(self, signs: list[str], edge: str) -> str:
        """Sentences of which each of the first holds one sign, in any order; an edge puts the first sign there."""
        chance = self._chance
        count = max(len(signs), chance.randint(1, self._level.sentences))
        sentences = [self._phrase(sign) for sign in signs] + [self._phrase(None) for _ in range(count - len(signs))]
        chance.shuffle(sentences)
        text = chance.choice((" ", " ", "\n", "\n\n")).join(sentences)
        if edge and chance.random() < 0.6:
            text = f"{signs[0]} {text}" if edge == "starts" else f"{text.rstrip('.!?')} {signs[0]}"
        return text

    def _phrase(self, sign: str | None) -> str:
        chance = self._chance
        if chance.random() < 0.45:
            sign = sign or self._source.word(chance)
            frame = phrasings.expand(chance.choice(self._source.filler["text"]), chance)
            return phrasings.fill(frame, {"W": self._written(sign)})
        length = chance.randint(2, 12)
        bag = [
            chance.choice(self._common) if chance.random() < 0.4 else self._source.word(chance) for _ in range(length)
        ]
        if sign:
            bag.insert(chance.randint(0, len(bag)), self._written(sign))
        if chance.random() < 0.3:
            bag[0] = bag[0][:1].upper() + bag[0][1:]
        return " ".join(bag) + chance.choice(("", "", ".", ".", "!", "?"))

    def _written(self, sign: str) -> str:
        return sign[:1].upper() + sign[1:] if self._chance.random() < 0.08 else sign

    def _hits(self, text: str, start: int) -> tuple[tuple[int, int, int, int], ...]:
        """The triggers of `any` rules that the text holds, a word that several rules have as the first one's."""
        hits: dict[tuple[int, int], tuple[int, int]] = {}
        for number, rule in enumerate(self._rules):
            for slot, trigger in enumerate(rule.triggers, 1):
                for found in pattern(trigger).finditer(text):
                    hits.setdefault(found.span(), (number, slot))
        return tuple((start + a, start + b, number, slot) for (a, b), (number, slot) in sorted(hits.items()))
