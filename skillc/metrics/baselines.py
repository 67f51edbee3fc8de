"""Baselines without a model: the most frequent label, and naive Bayes over the words of the inputs."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction

from pydantic import JsonValue

from skillc.data.dataset import Dataset
from skillc.metrics.meter import Meter
from skillc.outcomes import MICRO, Example, Scored, measured_mean
from skillc.plan.schema import Plan, TaskPlan

_WORD = re.compile(r"[^\W_]+")


def baseline_predictions(task: TaskPlan, dataset: Dataset, examples: Sequence[Example]) -> dict[str, tuple[str, ...]]:
    """Return the predictions of `most frequent label` and `keywords`, learned on train, in the examples' order.

    There are none without examples or right answers, or unless the task has exactly one output and it has labels.
    """
    if len(task.outputs) != 1 or task.outputs[0].type.kind != "labels" or not examples:
        return {}
    output = task.outputs[0]
    labels = output.type.labels
    counts = Counter(label for example in dataset.train for label in _answers(example, output.name))
    if not counts:
        return {}
    # Ties go to the label declared first.
    majority = max(labels, key=lambda label: counts[label])
    keywords = _Keywords(dataset.train, output.name, labels)
    return {
        "most frequent label": (majority,) * len(examples),
        "keywords": tuple(keywords.predict(example) for example in examples),
    }


def baseline_means(plan: Plan, dataset: Dataset, examples: Sequence[Example], meter: Meter) -> dict[str, Fraction]:
    """Return the goal's mean of each baseline on the examples; none if the goal reads more than an answer."""
    if meter.reads_trajectory:
        return {}
    means = {}
    for name, predictions in baseline_predictions(plan.task, dataset, examples).items():
        cells = [
            meter.goal(example, {plan.task.outputs[0].name: answer})
            for example, answer in zip(examples, predictions, strict=True)
        ]
        found = measured_mean(cell.value if isinstance(cell, Scored) else None for cell in cells)
        if found.mean is not None:
            means[name] = found.mean
    return means


def _answers(example: Example, output: str) -> list[str]:
    gold = example.gold.get(output)
    return [label for label in (gold if isinstance(gold, list) else [gold]) if isinstance(label, str)]


def _words(example: Example) -> list[str]:
    """Return the distinct words of the inputs, in alphabetical order."""
    return sorted({word for value in example.inputs.values() for word in _WORD.findall(_flat(value).casefold())})


def _flat(value: JsonValue) -> str:
    if isinstance(value, list):
        return " ".join(map(_flat, value))
    if isinstance(value, dict):
        return " ".join(_flat(part) for part in value.values())
    return value if isinstance(value, str) else str(value)


class _Keywords:
    """Multinomial naive Bayes over the distinct words of an example, with add-one smoothing.

    Scores a label by log P(label) + sum of log P(word | label) (Manning, Raghavan and Schütze 2008, section 13.2).
    Logarithms are integers in millionths, so that sums are exact. Words not seen in train are ignored.
    """

    def __init__(self, train: Sequence[Example], output: str, labels: Sequence[str]) -> None:
        examples: Counter[str] = Counter()
        words: dict[str, Counter[str]] = defaultdict(Counter)
        for example in train:
            for label in _answers(example, output):
                examples[label] += 1
                words[label].update(_words(example))
        self._labels = tuple(label for label in labels if examples[label]) or tuple(labels)
        vocabulary = {word for counts in words.values() for word in counts}
        self._prior = {label: _log(examples[label] + 1) for label in self._labels}
        self._none = {label: -_log(words[label].total() + len(vocabulary)) for label in self._labels}
        self._words: dict[str, Mapping[str, int]] = {word: {} for word in vocabulary}
        for word in vocabulary:
            self._words[word] = {label: _log(words[label][word] + 1) for label in self._labels if words[label][word]}

    def predict(self, example: Example) -> str:
        """Return the most likely label; of equal ones the first declared."""
        known = [self._words[word] for word in _words(example) if word in self._words]

        def score(label: str) -> int:
            return self._prior[label] + len(known) * self._none[label] + sum(word.get(label, 0) for word in known)

        return max(self._labels, key=score)


def _log(count: int) -> int:
    return round(math.log(max(count, 1)) * MICRO)
