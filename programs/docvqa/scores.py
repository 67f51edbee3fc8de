"""Variants of ANLS, of which the language has the definition."""

from __future__ import annotations

from typing import Any

from skillc.metrics.questions import edit_distance, folded, similarity

_RIGHT = 0.999


def challenge(example: dict[str, Any], prediction: dict[str, Any]) -> float:
    """ANLS as the script of the DocVQA challenge computes it.

    It differs from the definition in two ways: a similarity of exactly one half counts, and the distance of the texts
    with single spaces is divided by the length of the texts as they are.
    """
    answer = str(prediction["answer"] or "")
    return max(_near(answer, gold) for gold in _golds(example))


def _near(answer: str, gold: str) -> float:
    longest = max(len(answer), len(gold))
    near = 1 - edit_distance(folded(answer), folded(gold)) / longest if longest else 1.0
    return near if near >= 0.5 else 0.0


def hard(example: dict[str, Any], prediction: dict[str, Any]) -> bool:
    """SkillOpt's hard score: whether ANLS is at least 0.999, which is equality apart from case and white space."""
    answer = folded(str(prediction["answer"] or ""))
    return any(float(similarity(answer, folded(gold))) >= _RIGHT for gold in _golds(example))


def _golds(example: dict[str, Any]) -> list[str]:
    gold = example["gold"]["answer"]
    return [str(each) for each in (gold if isinstance(gold, list) else [gold])]
