"""The accuracy of LiveMathematicianBench: by the label alone, or with SkillOpt's leniency."""

from __future__ import annotations

import re
from typing import Any

_CHOICE = re.compile(r"^([A-G])\. (.*?)(?=\n[A-G]\. |\Z)", re.MULTILINE | re.DOTALL)


def by_label(example: dict[str, Any], prediction: dict[str, Any]) -> tuple[bool, str]:
    """Return whether the answer is the label of the right choice, and nothing else."""
    return _told(label_of(str(prediction["answer"] or "")), example)


def lenient(example: dict[str, Any], prediction: dict[str, Any]) -> tuple[bool, str]:
    """As SkillOpt: a label, else the whole text of a choice, else a first word that is a label."""
    answer = str(prediction["answer"] or "").strip()
    choices = {label: text.strip() for label, text in _CHOICE.findall(str(example["choices"]))}
    label = label_of(answer)
    if label not in choices:
        same = [name for name, text in choices.items() if text.lower() == answer.lower()]
        first = label_of(answer.split()[0]) if answer.split() else ""
        label = same[0] if same else first if first in choices else label
    return _told(label, example)


def label_of(text: str) -> str:
    """Return a label without a dot, colon or bracket behind it."""
    return text.strip().upper().rstrip(".):")


def _told(label: str, example: dict[str, Any]) -> tuple[bool, str]:
    right = label_of(str(example["gold"]["answer"]))
    return label == right, "right" if label == right else f"the right choice is {right}, not {label[:20] or 'none'}"
