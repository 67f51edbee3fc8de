"""What a model does with skills that it has not seen: `python -m local_model.making.evaluate MODEL`.

Words, labels, phrasings and filler are the evaluation's own (`kept` words, `evaluation/`). Each condition is a number
of documents with one input each; the whole reply has to be right, to the letter. Greedy, through transformers.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from . import phrasings, prompts, words
from .asking import Asking
from .documents import draw_rules, draw_task
from .rules import Rule, deciding
from .sources import Level, Source, training_source
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


@dataclass(frozen=True, slots=True)
class Condition:
    """One way to test.

    Attributes:
        target: the least share that is right, where the issue of this model names one.
        most: it is a share that must not be passed.
        hits: how many rules hold on the input.
        change: `wrong` gives the deciding rule another label, `absent` leaves it out and still asks for its label.
        kind: all rules are of this kind.
    """

    name: str
    level: Level
    target: float | None = None
    most: bool = False
    hits: int = 1
    change: str = ""
    kind: str = "any"
    default: bool = False
    source: str = "new"
    chat: bool = True


def _level(rules: int, few: int, many: int, labels: int = 4, **more: Any) -> Level:
    return Level(
        (rules, rules), (few, many), (labels, labels), odd=0, strange=0, phrases=0, sentences=2, queries=1, **more
    )


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
    Condition("plain prompts", _level(8, 1, 2), chat=False),
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
    """The kept words that stand in no template, of the training or of the evaluation."""
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
    """One document with one input."""
    chance = random.Random(f"{seed}:{condition.name}:{number}")
    source = source_of(condition.source)
    task = draw_task(chance, condition.level, source)
    while True:
        drawn = [rule for rule in draw_rules(chance, condition.level, source, task.labels) if rule.kind != "default"]
        if condition.kind != "any" and min(len(rule.triggers) for rule in drawn) < 2:
            continue
        rules = [replace(rule, kind=condition.kind) for rule in drawn]
        if condition.default:
            rules.append(Rule("default", (), chance.choice(task.labels)))
        asking = Asking(chance, condition.level, source, task, tuple(rules), condition.chat)
        hit = chance.sample(range(len(drawn)), condition.hits)
        text = asking.text([sign for at in hit for sign in asking.signs(rules[at])], "")
        decides = deciding(rules, text)
        if condition.hits == 2 and len({rules[at].label for at in hit}) < 2:
            continue
        if decides == (min(hit) if hit else len(rules) - 1):
            break
    label = rules[decides].label
    if condition.change == "wrong":
        label = chance.choice([each for each in task.labels if each != label])
        rules[decides] = replace(rules[decides], label=label)
    elif condition.change == "absent":
        del rules[decides]
    skill, _ = prompts.places(Writer(chance, source, task, strange=False).skill(rules))
    system, user = (
        (prompts.chat_system, prompts.chat_user) if condition.chat else (prompts.plain_system, prompts.plain_user)
    )
    reply = "".join((prompts.chat_reply if condition.chat else prompts.plain_reply)(task, label))
    return Case(
        [{"role": "system", "content": system(task, skill)}, {"role": "user", "content": user(task, text)}], reply
    )


class Model:
    """A model in a folder, asked through transformers."""

    def __init__(self, folder: Path, *, batch: int = 16) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.batch = batch

    @torch.inference_mode()
    def replies(self, cases: Sequence[Case]) -> list[str]:
        """The greedy reply to each case."""
        texts = [
            self.tokenizer.apply_chat_template(c.messages, tokenize=False, add_generation_prompt=True) for c in cases
        ]
        order = sorted(range(len(cases)), key=lambda at: len(texts[at]))
        found = [""] * len(cases)
        for start in range(0, len(order), self.batch):
            part = order[start : start + self.batch]
            given = self.tokenizer(
                [texts[at] for at in part], return_tensors="pt", padding=True, add_special_tokens=False
            )
            given.pop("token_type_ids", None)
            made = self.model.generate(**given, max_new_tokens=24, do_sample=False)
            said = self.tokenizer.batch_decode(made[:, given["input_ids"].shape[1] :], skip_special_tokens=True)
            for at, text in zip(part, said, strict=True):
                found[at] = text
        return found


def same(said: str, wanted: str) -> bool:
    """Whether a reply is the wanted one, but for spaces at the ends of lines, which DSPy strips as well."""
    return [line.strip() for line in said.strip().splitlines()] == [
        line.strip() for line in wanted.strip().splitlines()
    ]


def interval(right: int, n: int) -> tuple[float, float]:
    """Wilson's interval of 95 %."""
    z, share = 1.96, right / n
    middle, width = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return (middle - width) / (1 + z * z / n), (middle + width) / (1 + z * z / n)


def evaluate(model: Model, conditions: Sequence[Condition], n: int, seed: int) -> list[dict[str, Any]]:
    """Share right of each condition, printed as it is measured."""
    rows = []
    for condition in conditions:
        began = time.monotonic()
        cases = [case(condition, number, seed) for number in range(n)]
        right = sum(same(said, each.reply) for said, each in zip(model.replies(cases), cases, strict=True))
        low, high = interval(right, n)
        met = condition.target is None or (
            right / n <= condition.target if condition.most else right / n >= condition.target
        )
        rows.append(
            {
                "condition": condition.name,
                "right": right / n,
                "n": n,
                "low": low,
                "high": high,
                "target": condition.target,
            }
        )
        aim = (
            ""
            if condition.target is None
            else f"  target {'at most' if condition.most else 'at least'} {condition.target:.2f}"
        )
        print(
            f"{condition.name:42} {right / n:.3f}  ({low:.3f} to {high:.3f}){aim}{'' if met else '  missed'}"
            f"  {time.monotonic() - began:.0f} s",
            flush=True,
        )
    return rows


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="test a model on skills that it has not seen")
    parser.add_argument("model", type=Path)
    parser.add_argument("--n", type=int, default=400, help="documents a condition")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="conditions whose name holds this")
    parser.add_argument("--json", type=Path, help="write the figures there")
    given = parser.parse_args()
    chosen = [condition for condition in CONDITIONS if given.only in condition.name]
    rows = evaluate(Model(given.model), chosen, given.n, given.seed)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
