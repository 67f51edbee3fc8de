"""Makes the inputs of a document, and the answers that follow from its rules."""

from __future__ import annotations

import random
from dataclasses import dataclass

from . import phrasings, prompts, words
from .prompts import Task
from .rules import Rule, deciding, pattern
from .sources import Level, Source


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


class Asking:
    """Makes a document's queries."""

    def __init__(
        self, chance: random.Random, level: Level, source: Source, task: Task, rules: tuple[Rule, ...], chat: bool
    ) -> None:
        self._chance, self._level, self._source = chance, level, source
        self._task, self._rules, self._chat = task, rules, chat
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
            if kind > 0.82 - self._level.two:
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
        """The triggers that the text holds; a word that several rules have is the first one's."""
        hits: dict[tuple[int, int], tuple[int, int]] = {}
        for number, rule in enumerate(self._rules):
            for slot, trigger in enumerate(rule.triggers, 1):
                for found in pattern(trigger).finditer(text):
                    hits.setdefault(found.span(), (number, slot))
        return tuple((start + a, start + b, number, slot) for (a, b), (number, slot) in sorted(hits.items()))
