"""Skill documents with rules at random, and tasks whose answers follow from the rules and from nothing else.

Triggers and labels are drawn anew for each document, so no word has a meaning to learn: what helps is to read the
rules.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import prompts
from .asking import Asking, Query
from .prompts import Task
from .rules import Rule
from .sources import Level, Source
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
    task = draw_task(chance, level, source)
    bare = bool(level.bare) and chance.random() < level.bare
    rules = () if bare else draw_rules(chance, level, source, task.labels)
    skill = Writer(chance, source, task, strange=chance.random() < level.strange).skill(rules)
    if bare and chance.random() < 0.5:
        skill = ""
    in_chat = chance.random() < 0.85
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
    if chance.random() < 0.5:
        at = len(rules) if chance.random() < 0.85 else chance.randint(0, len(rules))
        rules.insert(at, Rule("default", (), chance.choice(list(labels))))
    return tuple(rules)
