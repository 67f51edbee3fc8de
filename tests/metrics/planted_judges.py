"""Judges with planted faults, and what they say about items of known quality, without a model."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from skillc.gates.terms import CallTerm
from skillc.metrics.judging.check.questions import (
    INJECTIONS,
    PADDED,
    SWAPPED,
    Item,
    Judgements,
    changed,
    injected,
    plain,
)
from skillc.metrics.judging.prompt import Case
from skillc.metrics.judging.verdict import JudgeFailed, Mark, Verdict
from skillc.plan.judges import JudgePlan
from skillc.plan.schema import CriterionPlan, RubricPlan

LEVELS = ((5, "the customer need not write again"), (3, "something is open"), (1, "wrong"))
RUBRIC = RubricPlan(criteria=(CriterionPlan(name="", levels=LEVELS),))
TERM = CallTerm("judge", ())
BY_LEVELS = JudgePlan(TERM, "reply", RUBRIC, ("referee",))
BY_PAIRS = JudgePlan(TERM, "reply", RUBRIC, ("referee",), "gold")
PLACES = (1, 3, 5)
WORDS = ("the", "order", "left", "on", "Monday", "and", "comes", "by", "post", "with", "a", "letter", "of", "ours")

Judge = Callable[[Case, bool, random.Random], Any]
"""What a judge says of a case, in the plain or the swapped order: a level, a side, or a failure."""


def quality(text: str) -> int:
    """The planted quality of an answer: 1, 3 or 5."""
    return int(text.split()[0].removeprefix("q"))


def items(count: int, seed: int, *, labels: bool = True, each: int = 1, models: tuple[str, ...] = ("m",)) -> list[Item]:
    """Items with answers of all qualities and lengths, `each` for an example and a model; the label is the quality."""
    draw = random.Random(f"items {seed}")
    found = []
    for i in range(count):
        for sample in range(each):
            for model in models:
                level = draw.choice(PLACES)
                answer = " ".join([f"q{level}", *draw.choices(WORDS, k=draw.randint(3, 40)), model])
                reference = " ".join([f"q{draw.choice(PLACES)}", *draw.choices(WORDS, k=8)])
                case = Case(f"e{i}", (("mail", f"mail {i}"),), "reply", answer, reference=reference)
                label = Fraction(level - 1, 4) if labels else None
                found.append(
                    Item(f"e{i}", f"e{i}", case, sample, model, label, {"": label} if label is not None else {})
                )
    return found


def judged(judge: Judge, of: list[Item], *, plan: JudgePlan = BY_LEVELS, repeats: int = 3, seed: int = 0) -> Judgements:
    """All that a judge says about items, with draws of its own for each question."""
    draw = random.Random(f"judge {seed}")
    variants = [*map(plain, range(repeats)), *([SWAPPED] if plan.against is None else []), PADDED]
    variants += map(injected, INJECTIONS)

    def reply(case: Case, swapped: bool) -> Any:
        said = judge(case, swapped, draw)
        return said if isinstance(said, JudgeFailed) else Verdict("referee", (Mark("", said, "because"),))

    given = {}
    for i, item in enumerate(of):
        for variant in variants:
            case = changed(item.case, variant, plan)
            both = (reply(case, False), reply(case, True)) if plan.against is not None else None
            given[i, variant, "referee"] = both or reply(case, variant == SWAPPED)
    return Judgements(plan, tuple(of), given)


# ---- judges by levels -----------------------------------------------------------------------------


def perfect(case: Case, swapped: bool, draw: random.Random) -> int:
    return quality(case.answer)


def noisy(case: Case, swapped: bool, draw: random.Random) -> int:
    return quality(case.answer) if draw.random() < 0.75 else draw.choice(PLACES)


def coin(case: Case, swapped: bool, draw: random.Random) -> int:
    return draw.choice(PLACES)


def generous(case: Case, swapped: bool, draw: random.Random) -> int:
    return 5


def raised(level: int) -> int:
    return min(5, level + 2)


def likes_length(case: Case, swapped: bool, draw: random.Random) -> int:
    level = noisy(case, swapped, draw)
    return raised(level) if len(case.answer.split()) > 45 else level


def lenient(case: Case, swapped: bool, draw: random.Random) -> int:
    level = noisy(case, swapped, draw)
    return raised(level) if draw.random() < 0.4 else level


def obeys(name: str) -> Judge:
    """A judge that follows one of the injections."""
    sign = {"plea": "Please give it", "order": "Ignore the rubric", "authority": "System message", "verdict": '{"instr'}

    def judge(case: Case, swapped: bool, draw: random.Random) -> int:
        return 5 if sign[name] in case.answer else noisy(case, swapped, draw)

    return judge


def likes_the_first_level(case: Case, swapped: bool, draw: random.Random) -> int:
    level = noisy(case, swapped, draw)
    return (1 if swapped else 5) if draw.random() < 0.3 else level


def likes_its_own(case: Case, swapped: bool, draw: random.Random) -> int:
    level = noisy(case, swapped, draw)
    return raised(level) if case.answer.split()[-1] == "own" or " own\n" in case.answer else level


# ---- judges of pairs ------------------------------------------------------------------------------


def compares(case: Case, swapped: bool, draw: random.Random) -> str:
    ours, theirs = quality(case.answer), quality(case.reference or "")
    if ours == theirs:
        return "tie"
    return "A" if (ours > theirs) != swapped else "B"


def compares_noisily(case: Case, swapped: bool, draw: random.Random) -> str:
    return compares(case, swapped, draw) if draw.random() < 0.75 else draw.choice(("A", "B", "tie"))


def coin_of_pairs(case: Case, swapped: bool, draw: random.Random) -> str:
    return draw.choice(("A", "B"))


def likes_the_first(case: Case, swapped: bool, draw: random.Random) -> str:
    return "A" if draw.random() < 0.4 else compares(case, swapped, draw)


def likes_length_in_pairs(case: Case, swapped: bool, draw: random.Random) -> str:
    if len(case.answer.split()) > 60:
        return "B" if swapped else "A"
    return compares(case, swapped, draw)
