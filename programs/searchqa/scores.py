"""SkillOpt's third score of SearchQA, which is not SQuAD's."""

from __future__ import annotations

from typing import Any

from skillc.metrics.primitives import normalise


def sub_em(example: dict[str, Any], prediction: dict[str, Any]) -> bool:
    """Return whether one of answer and right answer contains the other, after SQuAD's normalisation.

    An empty answer is contained in any text and counts as right in SkillOpt. Here it is wrong.
    """
    answer = normalise(str(prediction["answer"] or ""))
    golds = [normalise(str(each)) for each in _listed(example["gold"]["answer"])]
    return bool(answer) and any(gold in answer or answer in gold for gold in golds if gold)


def _listed(gold: Any) -> list[Any]:
    return gold if isinstance(gold, list) else [gold]
