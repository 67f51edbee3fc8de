"""LiveMathematicianBench's own format: monthly files `qa_202511_final.json`, each a list of questions with choices.

The choices are shuffled as SkillOpt does it, by a hash of seed and id, as the files may have the right one in the same
place. SkillOpt draws anew for each batch; here an item has the same order throughout.
"""

from __future__ import annotations

import hashlib
import random
import re
from pathlib import Path
from typing import Any

from programs.frame.splits import identity, read_items
from skillc.errors import SkillcError
from skillc.json_values import JsonObject

SIZES = (35, 17, 125)
FILES = ()
LABELS = "ABCDEFG"
SEED = 42


def items(source: Path) -> list[JsonObject]:
    """Read one monthly file, or all of a folder; the id of an item is `month:number`."""
    files = sorted(source.rglob("qa_*_final.json")) if source.is_dir() else [source]
    if not files:
        raise SkillcError(f"`{source}` has no file `qa_MONTH_final.json`")
    found = []
    for path in files:
        named = re.search(r"qa_(\d+)_final", path.name)
        for number, item in enumerate(read_items(path), 1):
            month = str(item.get("month") or (named[1] if named else "")).strip()
            own = item.get("no", number)
            found.append({**item, "month": month, "id": f"{month}:{own}" if month else str(own)})
    return found


def row(item: JsonObject, folder: Path) -> JsonObject | None:
    """Return the question with shuffled choices, and the label of the right one; None for an id alone.

    Raises:
        SkillcError: there is no right choice.
    """
    asked = item.get("mcq")
    given: JsonObject = asked if isinstance(asked, dict) else item
    if not given.get("question"):
        return None
    choices = _choices(given.get("choices"))
    label, text = _right(given.get("correct_choice"), choices)
    if label not in choices:
        if not label or not text:
            raise SkillcError(f"item `{identity(item)}` names no right choice")
        # Some files leave the right choice out of the list.
        choices = dict(sorted({**choices, label: text}.items()))
    order = list(choices)
    random.Random(_seed(identity(item))).shuffle(order)
    kinds = item.get("theorem_type")
    return {
        "id": identity(item),
        "month": str(item.get("month") or ""),
        "kind": str((kinds[0] if kinds else "") if isinstance(kinds, list) else kinds or ""),
        "question": given["question"],
        "choices": "\n".join(f"{new}. {choices[old]}" for new, old in zip(LABELS, order, strict=False)),
        "answer": LABELS[order.index(label)],
    }


def _choices(given: Any) -> dict[str, str]:
    """Return the text of each choice by its label."""
    if isinstance(given, dict):
        pairs = [(str(label), str(text)) for label, text in sorted(given.items())]
    else:
        pairs = []
        for own, each in zip(LABELS, given if isinstance(given, list) else (), strict=False):
            texts = each if isinstance(each, dict) else {"text": each}
            pairs.append((str(texts.get("label") or own), str(texts.get("text") or texts.get("content") or "")))
    return {_label(label): text.strip() for label, text in pairs if text.strip()}


def _right(given: Any, choices: dict[str, str]) -> tuple[str, str]:
    """Return label and text of the right choice."""
    if isinstance(given, dict):
        label = _label(str(given.get("label") or ""))
        return label, str(given.get("text") or choices.get(label, "")).strip()
    label = _label(str(given or ""))
    return label, choices.get(label, "")


def _label(text: str) -> str:
    return text.strip().upper().rstrip(".):")


def _seed(identity: str) -> int:
    return int(hashlib.sha256(f"{SEED}:{identity}".encode()).hexdigest()[:16], 16)
