"""Writes a skill: rules in phrasings at random, among headings and items that have nothing to do with them."""

from __future__ import annotations

import random
from collections.abc import Sequence

from . import lists, phrasings, prompts
from .forms import SLOTS, Form, Forms
from .prompts import Task
from .rules import Rule
from .sources import Source

KINDS = ("any", "both", "except", "starts", "ends")  # that one document may write all alike


class Writer:
    """Writes one document."""

    def __init__(self, chance: random.Random, source: Source, task: Task, *, strange: bool) -> None:
        self._chance, self._source, self._task, self._strange = chance, source, task, strange
        self._style = lists.style(chance)
        self._same = {kind: self._template(kind) for kind in KINDS if source.rules.get(kind)}
        self._uniform = chance.random() < 0.4
        self._sense: dict[str, str] = {}
        self._noun = chance.choice((task.field.replace("_", " "), chance.choice(source.nouns["N"])))

    def skill(self, rules: Sequence[Rule], form: Form = "list", aside: str = "") -> str:
        """Write the skill's text, its places marked; `aside` is a sentence that is no rule."""
        chance, filler = self._chance, self._source.filler
        blocks = [f"# {self._sentence(chance.choice(filler['heading']))}"] if chance.random() < 0.8 else []
        if chance.random() < 0.7:
            blocks += [f"## {self._sentence(chance.choice(filler['heading']))}"] if chance.random() < 0.5 else []
            blocks.append(self._sentence(chance.choice(filler["intro"])))
        blocks += [aside] if aside else []
        if form == "list":
            blocks += self._sections([self._rule(number, rule) for number, rule in enumerate(rules)])
        else:
            values = {"N": self._noun, "O": self._task.output.replace("_", " ")}
            blocks += Forms(chance, self._source, values).blocks(form, rules)
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
        template = self._same[rule.kind] if self._uniform and rule.kind in self._same else self._template(rule.kind)
        template = phrasings.expand(template, self._chance)
        if self._strange:
            template = self._without_sense(template)
        style = self._style if self._chance.random() < 0.8 else lists.style(self._chance)
        marked = [prompts.mark(number * SLOTS + slot, self._case(each)) for slot, each in enumerate(rule.triggers, 1)]
        left, right = style.trigger
        values = {
            "L": style.answer(prompts.mark(number * SLOTS, rule.label)),
            "N": rule.field.replace("_", " ") or self._noun,
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
