"""What a model is tested on: unseen skills, and for each kind of rule inputs on which it holds and just fails to hold.

Words, labels, phrasings and filler are the evaluation's own (`kept` words, `evaluation/`).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

from . import phrasings, prompts, words
from .asking import Asking
from .documents import draw_rules, draw_task
from .forms import Form, grouped
from .prompts import Task
from .rules import Kind, Rule, deciding
from .sources import Level, Source, training_source, written_label
from .writing import Writer

HERE = Path(__file__).resolve().parent.parent / "evaluation"
RULEBOOK = (
    "If the {N} mentions {T}, answer {L}.",
    "When the {N} contains {T}, reply with {L}.",
    "If it says {T}, choose {L}.",
    "Whenever the {N} includes {T}, classify it as {L}.",
    "If the {N} mentions one of {T}, route it to {L}.",
    "Where the {N} asks about {T}, return {L}.",
    "If the {N} has {T} → {L}",
    "If the {N} names any of the words {T}, the {O} is {L}.",
)


Unmet = Literal["", "half", "excepted", "exception alone", "present", "inside", "other input", "in the skill"]
Prompt = Literal["chat", "page", "plain"]


@dataclass(frozen=True, slots=True)
class Condition:
    """One way to test.

    Attributes:
        target: the least share that is right, where there is one.
        most: it is a share that must not be passed.
        hits: how many rules hold on the input.
        change: `wrong` gives the deciding rule another label, `absent` leaves it out and still asks for its label.
        kind: all rules are of this kind.
        prompt: as skillc sends it (`page`), as it sent it earlier (`chat`), or `plain`.
        unmet: how one rule's condition just fails to hold: `half` of two words, the word and the `excepted` one, the
            `exception alone`, a word that must not be `present`, a word `inside` a longer one, in the `other input`,
            or in another sentence `in the skill`.
        instead: what decides where the condition fails: the default or a later rule.
        section: the section of phrasings for the rules' kind, if it is not named like the kind.
        form: how the rules are written.
        labels: which labels, if not those of `labels.txt`.
        fields: how many inputs; with two, each rule names one.
    """

    name: str
    level: Level
    target: float | None = None
    most: bool = False
    hits: int = 1
    change: str = ""
    kind: Kind = "any"
    default: bool = False
    source: str = "new"
    prompt: Prompt = "page"
    unmet: Unmet = ""
    instead: Literal["default", "rule"] = "default"
    section: str = ""
    form: Form = "list"
    labels: str = ""
    fields: int = 1


def _level(rules: int, few: int, many: int, labels: int = 4, **more: Any) -> Level:
    return Level(
        (rules, rules), (few, many), (labels, labels), odd=0, strange=0, phrases=0, sentences=2, queries=1, **more
    )


def _both(name: str, **more: Any) -> Condition:
    return Condition(name, _level(6, 2, 2), kind="both", **more)


def _except(name: str, **more: Any) -> Condition:
    return Condition(name, _level(6, 2, 2), kind="except", **more)


def _fields(name: str, **more: Any) -> Condition:
    return Condition(name, _level(6, 1, 2), section="field", fields=2, **more)


CONDITIONS = (
    Condition("4 rules", _level(4, 1, 2)),
    Condition("8 rules", _level(8, 1, 2), 0.95),
    Condition("16 rules", _level(16, 1, 2), 0.85),
    Condition("8 rules of 5 triggers", _level(8, 5, 5), 0.85),
    Condition("16 rules of 5 triggers", _level(16, 5, 5)),
    Condition("a wrong rule is obeyed", _level(8, 1, 2), 0.90, change="wrong"),
    Condition("without the rule", _level(8, 1, 2), 0.25, most=True, change="absent"),
    Condition("the default, 8 rules beside it", _level(8, 1, 2), hits=0, default=True),
    Condition("two rules hold, the first wins", _level(8, 1, 2), hits=2),
    Condition("8 labels", _level(8, 1, 2, 8)),
    Condition("triggers of two words", replace(_level(8, 1, 2), phrases=1.0)),
    Condition("both words must occur", _level(6, 2, 2), kind="both"),
    Condition("an exception", _level(6, 2, 2), kind="except"),
    Condition("long inputs", replace(_level(8, 1, 2), sentences=6)),
    Condition("the rulebook's sentences, 8 rules", _level(8, 1, 3), source="rulebook"),
    Condition("the rulebook's sentences, 16 rules of 5", _level(16, 5, 5), source="rulebook"),
    Condition("phrasings of the training, new words", _level(8, 1, 2), source="trained"),
    Condition("plain prompts", _level(8, 1, 2), prompt="plain"),
    # For each kind of rule, inputs on which its condition just fails.
    _both("one of both words, the default answers", unmet="half"),
    _both("one of both words, a later rule answers", unmet="half", instead="rule"),
    _except("the excepted word occurs too, the default answers", unmet="excepted"),
    _except("the excepted word occurs too, a later rule answers", unmet="excepted", instead="rule"),
    _except("the excepted word alone, the default answers", unmet="exception alone"),
    _except("`unless`, met", section="unless", default=True),
    _except("`unless`, unmet", section="unless", unmet="excepted"),
    _except("`but not`, met", section="but_not", default=True),
    _except("`but not`, unmet", section="but_not", unmet="excepted"),
    _both("`only if` both, met", section="only_if", default=True),
    _both("`only if` both, unmet", section="only_if", unmet="half"),
    Condition("a word must be absent, met", _level(3, 1, 1), kind="without", default=True),
    Condition("a word must be absent, unmet", _level(3, 1, 1), kind="without", unmet="present"),
    Condition("a trigger inside a longer word, the default answers", _level(8, 1, 2), unmet="inside"),
    Condition("a trigger inside a longer word, a later rule answers", _level(8, 1, 2), unmet="inside", instead="rule"),
    Condition("a trigger in another sentence of the skill only", _level(8, 1, 2), unmet="in the skill"),
    _fields("two inputs, the word is in the one that is named", default=True),
    _fields("two inputs, the word is in the other one", unmet="other input"),
    # Labels and forms.
    Condition("labels with a capital", _level(8, 1, 2), labels="capital"),
    Condition("labels all in capitals", _level(8, 1, 2), labels="capitals"),
    Condition("labels of two or three words", _level(8, 1, 2), labels="words"),
    Condition("labels with digits", _level(8, 1, 2), labels="digits"),
    Condition("labels with signs, as Q&A", _level(8, 1, 2), labels="signs"),
    Condition("arrows without quotes", _level(8, 1, 3), form="arrows"),
    Condition("rules in a table", _level(8, 1, 3), form="table"),
    Condition("labels in headings only", _level(8, 1, 3), form="headings"),
    Condition("several rules in a sentence", _level(8, 1, 2), form="series"),
    # The prompt that skillc sent earlier.
    Condition("the task in one line, 8 rules", _level(8, 1, 2), prompt="chat"),
    Condition("the task in one line, the default", _level(8, 1, 2), hits=0, default=True, prompt="chat"),
)


@dataclass(frozen=True, slots=True)
class Case:
    """Messages and the reply that they ask for."""

    messages: list[dict[str, str]]
    reply: str


def kept_word(chance: random.Random) -> str:
    """A word that no training text holds."""
    return words.invented_kept(chance) if chance.random() < 0.2 else chance.choice(_usable())


@cache
def _usable() -> tuple[str, ...]:
    """The kept words that occur in no template of the training or the evaluation."""
    texts = [
        path.read_text(encoding="utf-8") for folder in (HERE, HERE.parent / "making") for path in folder.glob("*.txt")
    ]
    text = " ".join(each for each in texts if "SCOWL" not in each).lower()
    taken = set("".join(letter if letter.isalpha() else " " for letter in text).split())
    return tuple(word for word in words.evaluation() if word not in taken)


@cache
def _labels() -> tuple[str, ...]:
    return tuple((HERE / "labels.txt").read_text(encoding="utf-8").split("\n")[:-1])


@cache
def source_of(name: str) -> Source:
    """The sources: all new; the training's phrasings or the rulebook's with new words and labels."""
    new = phrasings.sections(HERE / "phrasings.txt")
    rules = new
    if name == "trained":
        rules = training_source().rules
    elif name == "rulebook":
        rules = {**rules, "any": RULEBOOK}
    return Source(
        kept_word,
        lambda chance: chance.choice(_labels()),
        rules,
        phrasings.sections(HERE / "filler.txt"),
        training_source().nouns,
    )


def case(condition: Condition, number: int, seed: int) -> Case:
    """Make one document with one input."""
    chance = random.Random(f"{seed}:{condition.name}:{number}")
    source = source_of(condition.source)
    if condition.labels:
        source = replace(source, label=partial(written_label, condition.labels, kept_word))
    if condition.section:
        source = replace(source, rules=source.rules | {condition.kind: source.rules[condition.section]})
    task = draw_task(chance, condition.level, source)
    if condition.fields == 2:
        others = [each.replace(" ", "_") for each in source.nouns["N"]]
        task = replace(task, more=(chance.choice([each for each in others if each not in (task.field, task.output)]),))
    while True:
        drawn = [rule for rule in draw_rules(chance, condition.level, source, task.labels) if rule.kind != "default"]
        if condition.kind in ("both", "except") and min(len(rule.triggers) for rule in drawn) < 2:
            continue
        made = (_unmet if condition.unmet else _met)(condition, chance, task, source, drawn)
        if made is not None:
            break
    label = made.rules[made.decides].label
    rules = list(made.rules)
    if condition.change == "wrong":
        label = chance.choice([each for each in task.labels if each != label])
        rules[made.decides] = replace(rules[made.decides], label=label)
    elif condition.change == "absent":
        del rules[made.decides]
    skill, _ = prompts.places(Writer(chance, source, task, strange=False).skill(rules, condition.form, made.aside))
    chat = condition.prompt != "plain"
    system = {"chat": prompts.chat_system, "page": prompts.page_system, "plain": prompts.plain_system}[condition.prompt]
    user = (prompts.chat_user if chat else prompts.plain_user)(task, *made.texts)
    reply = "".join((prompts.chat_reply if chat else prompts.plain_reply)(task, label))
    return Case([{"role": "system", "content": system(task, skill)}, {"role": "user", "content": user}], reply)


@dataclass(frozen=True, slots=True)
class _Made:
    """Rules, the inputs' texts, the number of the deciding rule, and a sentence of the skill beside the rules."""

    rules: tuple[Rule, ...]
    texts: tuple[str, ...]
    decides: int
    aside: str = ""


def _prepared(condition: Condition, chance: random.Random, task: Task, drawn: Sequence[Rule]) -> list[Rule]:
    """Return the drawn rules with the condition's kind, order and inputs."""
    rules = [replace(rule, kind=condition.kind) for rule in drawn]
    if condition.form == "headings":
        rules = list(grouped(rules))
    if condition.kind == "without":
        # The first rule of this kind decides nearly every input, so only the last rule is one.
        rules = [*drawn[:-1], rules[-1]]
    if condition.fields == 2:
        rules = [replace(rule, field=chance.choice((task.field, *task.more))) for rule in rules]
    return rules


def _met(
    condition: Condition, chance: random.Random, task: Task, source: Source, drawn: Sequence[Rule]
) -> _Made | None:
    """Make an input on which as many rules hold as the condition asks for; None if chance made others hold."""
    rules = _prepared(condition, chance, task, drawn)
    if condition.default:
        rules.append(Rule("default", (), chance.choice(task.labels)))
    asking = Asking(chance, condition.level, source, task, tuple(rules), condition.prompt != "plain")
    hit = [len(drawn) - 1] if condition.kind == "without" else chance.sample(range(len(drawn)), condition.hits)
    signs = [] if condition.kind == "without" else [sign for at in hit for sign in asking.signs(rules[at])]
    texts = [asking.text(signs, "")]
    if condition.fields == 2:
        texts.insert(0 if rules[hit[0]].field != task.field else 1, asking.text([], ""))
    decides = deciding(rules, "\n".join(texts), dict(zip((task.field, *task.more), texts, strict=True)))
    if condition.hits == 2 and len({rules[at].label for at in hit}) < 2:
        return None
    wanted = min(hit) if hit else len(rules) - 1
    return _Made(tuple(rules), tuple(texts), wanted) if decides == wanted else None


def _unmet(
    condition: Condition, chance: random.Random, task: Task, source: Source, drawn: Sequence[Rule]
) -> _Made | None:
    """Make an input on which one rule just fails to hold, and the default or a later rule decides."""
    later = condition.instead == "rule"
    near = chance.randrange(len(drawn) - later)
    if condition.kind == "without":
        near = len(drawn) - 1
    rules = _prepared(condition, chance, task, drawn)
    other = chance.randrange(near + 1, len(drawn)) if later else len(drawn)
    if not later:
        rules.append(Rule("default", (), chance.choice(task.labels)))
    if rules[other].label == rules[near].label:
        return None
    asking = Asking(chance, condition.level, source, task, tuple(rules), condition.prompt != "plain")
    one = chance.choice(rules[near].triggers)
    signs = [one]
    aside = ""
    if condition.unmet == "excepted":
        signs = [chance.choice(rules[near].triggers[:-1]), rules[near].triggers[-1]]
    elif condition.unmet == "exception alone":
        signs = [rules[near].triggers[-1]]
    elif condition.unmet == "inside":
        more = "".join(chance.choices("abcdefghiklmnoprstu", k=chance.randint(2, 4)))
        signs = [chance.choice((one + more, more + one))]
    elif condition.unmet == "in the skill":
        signs = []
        frame = phrasings.expand(chance.choice(source.filler["text"]), chance)
        aside = phrasings.fill(frame, {"W": one})
    texts = [asking.text([*signs, *(asking.signs(rules[other]) if later else [])], "")]
    if condition.fields == 2:
        texts.insert(1 if rules[near].field != task.field else 0, asking.text([], ""))
    decides = deciding(rules, "\n".join(texts), dict(zip((task.field, *task.more), texts, strict=True)))
    return _Made(tuple(rules), tuple(texts), other, aside) if decides == other else None
