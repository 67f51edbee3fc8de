"""Other ways to write rules than one sentence each: arrows, tables, headings, several rules in a sentence."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from . import lists, phrasings, prompts
from .lists import BARE, Style
from .rules import Rule
from .sources import Source

Form = Literal["list", "arrows", "table", "headings", "series"]
SLOTS = 32  # places that one rule may have: its label is 0, its triggers come after


def grouped(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Return the rules in the order in which headings show them: by label, defaults last."""
    plain = [rule for rule in rules if rule.kind != "default"]
    order = list(dict.fromkeys(rule.label for rule in plain))
    defaults = [rule for rule in rules if rule.kind == "default"]
    return (*sorted(plain, key=lambda rule: order.index(rule.label)), *defaults)


class Forms:
    """Writes the rules of one document in one of these forms."""

    def __init__(self, chance: random.Random, source: Source, values: dict[str, str]) -> None:
        self._chance, self._source, self._values = chance, source, values
        self._style = lists.style(chance)

    def blocks(self, form: Form, rules: Sequence[Rule]) -> list[str]:
        """Write all rules; marked places give the labels (slot 0) and triggers of each."""
        written: dict[str, Callable[[Sequence[Rule]], list[str]]] = {
            "arrows": self._arrows,
            "table": self._table,
            "headings": self._headings,
            "series": self._series,
        }
        return written[form](rules)

    def noun(self, number: int, rule: Rule, style: Style) -> str:
        """Write a rule's condition as a noun."""
        marked = [prompts.mark(number * SLOTS + slot, each) for slot, each in enumerate(rule.triggers, 1)]
        style = replace(style, opener="")
        left, right = style.trigger
        values = dict(self._values)
        if rule.kind == "both":
            values |= {"A": f"{left}{marked[0]}{right}", "B": f"{left}{marked[1]}{right}"}
        elif rule.kind == "except":
            values |= {"T": style.triggers(marked[:-1]), "B": f"{left}{marked[-1]}{right}"}
        elif rule.kind != "default":
            values["T"] = style.triggers(marked)
        template = self._chance.choice(self._source.rules[f"noun_{rule.kind}"])
        return phrasings.fill(phrasings.expand(template, self._chance), values)

    def _label(self, number: int, rule: Rule, style: Style) -> str:
        return style.answer(prompts.mark(number * SLOTS, rule.label))

    def _pick(self, name: str) -> str:
        return phrasings.expand(self._chance.choice(self._source.rules[name]), self._chance)

    def _bare(self) -> Style:
        """Return a style without quotes."""
        every, last = self._chance.choice(((", ", ", "), (", ", " or "), (" / ", " / ")))
        return Style(BARE, BARE, every, last, "")

    def _arrows(self, rules: Sequence[Rule]) -> list[str]:
        style, template = self._bare(), self._pick("arrow")
        bullet = self._chance.choice(("- ", "- ", "", "* "))
        lines = []
        for number, rule in enumerate(rules):
            values = {"C": self.noun(number, rule, style), "L": self._label(number, rule, style)}
            lines.append(bullet + phrasings.fill(template, values))
        return ["\n".join(lines)]

    def _table(self, rules: Sequence[Rule]) -> list[str]:
        style = self._bare() if self._chance.random() < 0.6 else self._style
        titles = [phrasings.fill(title.strip(), self._values) for title in self._pick("columns").split("|")]
        turned = self._chance.random() < 0.3
        rows = [titles, ["---", "---"]]
        rows += [[self.noun(n, rule, style), self._label(n, rule, style)] for n, rule in enumerate(rules)]
        return ["\n".join(f"| {b} | {a} |" if turned else f"| {a} | {b} |" for a, b in rows)]

    def _headings(self, rules: Sequence[Rule]) -> list[str]:
        """Write each label once, above its rules, which have to be `grouped`."""
        style = self._bare() if self._chance.random() < 0.5 else self._style
        head, item, between = self._chance.choice(
            (
                ("## {}", "- ", "\n"),
                ("## {}", "", "\n\n"),
                ("### {}", "- ", "\n\n"),
                ("**{}**", "- ", "\n"),
                ("{}:", "- ", "\n"),
            )
        )
        blocks: list[str] = []
        for number, rule in enumerate(rules):
            line = item + self.noun(number, rule, style)
            if number and rules[number - 1].label == rule.label:
                blocks[-1] += f"\n{line}"
            else:
                blocks.append(head.format(prompts.mark(number * SLOTS, rule.label)) + between + line)
        return blocks

    def _series(self, rules: Sequence[Rule]) -> list[str]:
        """Write two to four rules a sentence; a default has its own."""
        style = self._bare() if self._chance.random() < 0.4 else self._style
        start, each, between, before_last, end = (part.strip() for part in self._pick("series").split("|"))
        sentences: list[str] = []
        rest = [(number, rule) for number, rule in enumerate(rules) if rule.kind != "default"]
        while rest:
            take = self._chance.randint(2, 4)
            part, rest = rest[:take], rest[take:]
            said = []
            for number, rule in part:
                values = {"C": self.noun(number, rule, style), "L": self._label(number, rule, style)}
                said.append(phrasings.fill(each, values))
            text = f"{between} ".join(said[:-1]) + f"{between} {before_last} {said[-1]}" if len(said) > 1 else said[0]
            sentences.append(f"{start} {text}{end}".strip())
        for number, rule in enumerate(rules):
            if rule.kind == "default":
                sentences.append(
                    phrasings.fill(self._pick("default"), self._values | {"L": self._label(number, rule, style)})
                )
        return [self._chance.choice((" ", "\n")).join(sentences)]
