"""Skill documents with rules at random, and tasks whose answers follow from the rules and from nothing else.

Triggers and labels are drawn anew for each document, so no word has a meaning to learn: what helps is to read the
rules.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from . import prompts
from .asking import Asking, Query
from .forms import Form, grouped
from .prompts import Task
from .rules import Rule
from .sources import LABELS, Level, Source, training_word, written_label
from .writing import SLOTS, Writer


@dataclass(frozen=True, slots=True)
class Document:
    """One skill and its queries; `places` has start and end of each rule's label (slot 0) and triggers (from 1 on)."""

    task: Task
    system: str
    rules: tuple[Rule, ...]
    places: dict[tuple[int, int], tuple[int, int]]
    queries: tuple[Query, ...]


def document(chance: random.Random, level: Level, source: Source) -> Document:
    """One document with its queries."""
    if level.written and chance.random() < level.written:
        word = partial(training_word, pieces=level.pieces)
        source = replace(source, label=partial(written_label, chance.choice(LABELS), word))
    task = draw_task(chance, level, source)
    bare = bool(level.bare) and chance.random() < level.bare
    rules = () if bare else draw_rules(chance, level, source, task.labels)
    form: Form = "list"
    if rules and level.forms and chance.random() < level.forms:
        form = chance.choice(("arrows", "table", "headings", "series", "series"))
        # The nouns of the forms know these kinds, and a heading stands for any of its words.
        kinds = ("any", "default") if form == "headings" else ("any", "both", "except", "default")
        rules = tuple(rule if rule.kind in kinds else replace(rule, kind="any") for rule in rules)
        rules = grouped(rules) if form == "headings" else rules
    skill = Writer(chance, source, task, strange=chance.random() < level.strange).skill(rules, form)
    if bare and chance.random() < 0.5:
        skill = ""
    in_chat = chance.random() < 0.85
    if in_chat and level.pages and chance.random() < level.pages:
        written = prompts.page_system(task, skill, chance.choice(prompts.LEADS))
    else:
        written = (prompts.chat_system if in_chat else prompts.plain_system)(task, skill)
    system, found = prompts.places(written)
    places = {divmod(number, SLOTS): place for number, place in found.items()}
    if form == "headings":
        heads = {rule.label: places[number, 0] for number, rule in enumerate(rules) if (number, 0) in places}
        places |= {(number, 0): heads[rule.label] for number, rule in enumerate(rules)}
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
    """Rules in order; the default, if any, is mostly last."""
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
    if chance.random() < 0.5:
        at = len(rules) if chance.random() < 0.85 else chance.randint(0, len(rules))
        rules.insert(at, Rule("default", (), chance.choice(list(labels))))
    return tuple(rules)
