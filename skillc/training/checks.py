"""Check files and settings of a training before anything is spent. Errors stop it, warnings are printed."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from skillc.data.split import marked, quoted
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.export.manifest import read_manifest
from skillc.outcomes import Example
from skillc.text import counted

Kind = Literal["sft", "dpo"]

FEWEST: Mapping[Kind, int] = {"sft": 10, "dpo": 10}
"""Fewer rows are refused: with batches of 8 that is a step or two an epoch, which trains noise."""
FEW: Mapping[Kind, int] = {"sft": 50, "dpo": 20}
"""Fewer rows are a warning: providers of fine-tuning report clear gains from 50 to 100 SFT examples on; DPO needs less
where it only corrects what SFT taught."""
USUAL_RATES: Mapping[Kind, tuple[float, float]] = {"sft": (1e-4, 5e-4), "dpo": (5e-6, 5e-5)}
"""The usual learning rates of LoRA. SFT with LoRA takes about ten times that of full fine-tuning (Schulman et al. 2025,
"LoRA Without Regret"); DPO about a tenth of SFT's, since its loss pushes logits apart without bound."""
FACTOR = 10.0
"""A rate that is lower or higher than the usual ones by more than this factor is refused."""
_SIDES: Mapping[Kind, tuple[str, ...]] = {"sft": ("completion",), "dpo": ("chosen", "rejected")}
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json")
# LoRA's gradients, Adam's two moments and checkpoints are small beside the weights; activations are extra.
_MEMORY_FACTOR = 1.5
_DISK = 2 * 1024**3


@dataclass(frozen=True, slots=True)
class TrainingFile:
    """A file of rows that was checked.

    Attributes:
        manifest: the sources of its rows; None for a file that skillc did not export.
        sha256: of the file.
        warnings: a sentence each.
    """

    kind: Kind
    path: Path
    rows: tuple[Mapping[str, Any], ...]
    manifest: Mapping[str, Any] | None
    sha256: str
    warnings: tuple[str, ...] = ()


def read_training_file(
    path: Path, kind: Kind, test: Sequence[Example], withdrawn: frozenset[str] = frozenset()
) -> TrainingFile:
    """Read and check the rows of a training file.

    Args:
        path: JSON lines in TRL's conversational layout.
        kind: the layout.
        test: examples of the program's test split, none of which may be trained on.
        withdrawn: keys of sessions, none of which may be either.

    Raises:
        SkillcError: it cannot be read, a row has another layout or an empty answer, there are too few rows, or a test
            example or a withdrawn session is among them.
    """
    rows, sha256 = _rows(path, kind)
    warnings: list[str] = []
    if len(rows) < FEWEST[kind]:
        raise SkillcError(
            f"`{path}` has {counted(len(rows), 'row')}, and fewer than {FEWEST[kind]} train noise",
            hint="export more: compile with more examples, or lower `--threshold`",
        )
    if len(rows) < FEW[kind]:
        warnings.append(f"{counted(len(rows), 'row')} in `{path.name}` is few; below {FEW[kind]} a gain is unlikely")
    warnings += _duplicates(rows, kind, path.name)
    manifest = read_manifest(path)
    _refuse_leaks(rows, manifest, path, test)
    gone = sorted(withdrawn.intersection((manifest or {}).get("sessions", ())))
    if gone:
        raise SkillcError(
            f"`{path}` has {counted(len(gone), 'session')} that a person withdrew: `{gone[0]}`",
            hint=f"export it again: `skillc export {kind} --from-sessions`",
        )
    if manifest is None:
        warnings.append(f"`{path.name}` has no manifest; test examples in it are found only by their text")
    elif manifest.get("kind") != kind:
        raise SkillcError(f"`{path}` was exported as {manifest.get('kind')}, not as {kind}", hint=f"use `--{kind}`")
    else:
        warnings += manifest.get("warnings", ())
    return TrainingFile(kind, path, tuple(rows), manifest, sha256, tuple(warnings))


def _rows(path: Path, kind: Kind) -> tuple[list[Mapping[str, Any]], str]:
    import hashlib

    try:
        content = path.read_bytes()
        text = content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise SkillcError(f"`{path}` cannot be read: {problem}", hint=f"write it: `skillc export {kind}`") from problem
    rows: list[Mapping[str, Any]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as problem:
            raise SkillcError(
                f"`{path}`, line {number}: not JSON: {problem}", hint="one JSON object a line"
            ) from problem
        problem_of_row = _row_problem(row, kind)
        if problem_of_row:
            raise SkillcError(f"`{path}`, line {number}: {problem_of_row}", hint=_LAYOUT[kind])
        rows.append(row)
    if len({"messages" in row for row in rows}) > 1:
        raise SkillcError(f"`{path}` mixes rows with `messages` and with `completion`", hint="write two files")
    return rows, hashlib.sha256(content).hexdigest()


_LAYOUT: Mapping[Kind, str] = {
    "sft": 'a row is {"prompt": [messages], "completion": [messages]} or {"messages": [messages]}',
    "dpo": 'a row is {"prompt": [messages], "chosen": [messages], "rejected": [messages]}',
}


def _row_problem(row: object, kind: Kind) -> str | None:
    if not isinstance(row, dict):
        return "not an object"
    sides = ("messages",) if kind == "sft" and "messages" in row else ("prompt", *_SIDES[kind])
    for side in sides:
        messages = row.get(side)
        if not isinstance(messages, list) or not messages:
            return f"`{side}` is missing or empty"
        if not all(isinstance(each, dict) and isinstance(each.get("role"), str) for each in messages):
            return f"`{side}` is not a list of messages"
        if side == "prompt":
            continue
        spoken = [each for each in messages if each["role"] == "assistant"]
        if not any(str(each.get("content") or "").strip() or each.get("tool_calls") for each in spoken):
            return f"`{side}` has no answer of the assistant"
    if kind == "dpo" and row["chosen"] == row["rejected"]:
        return "`chosen` and `rejected` are the same"
    return None


def _duplicates(rows: Iterable[Mapping[str, Any]], kind: Kind, name: str) -> list[str]:
    whole, answers = Counter[str](), dict[str, set[str]]()
    for row in rows:
        whole[json.dumps(row, sort_keys=True)] += 1
        if "prompt" in row:
            sides = [row[side] for side in _SIDES[kind]]
            answers.setdefault(json.dumps(row["prompt"], sort_keys=True), set()).add(json.dumps(sides))
    repeated = sum(number - 1 for number in whole.values())
    several = sum(len(each) > 1 for each in answers.values())
    found = []
    if repeated:
        found.append(f"{counted(repeated, 'row')} of `{name}` repeats another one, and counts twice")
    if several and kind == "sft":
        found.append(f"{counted(several, 'prompt')} of `{name}` has more than one completion")
    return found


def _refuse_leaks(
    rows: Sequence[Mapping[str, Any]], manifest: Mapping[str, Any] | None, path: Path, test: Sequence[Example]
) -> None:
    """Refuse rows of test examples: by the manifest, and by the text of inputs."""
    known = manifest or {}
    leaked = set(marked(test, str(known.get("used", "")), str(known.get("used_inputs", ""))))
    users = "\n\0".join(
        str(each.get("content") or "")
        for row in rows
        for each in (*row.get("prompt", ()), *row.get("messages", ()), *row.get("completion", ()))
        if each["role"] == "user"
    )
    leaked.update(quoted(test, users))
    if leaked:
        some = ", ".join(f"`{each}`" for each in sorted(leaked)[:3])
        raise SkillcError(
            f"`{path}` has {counted(len(leaked), 'example')} of the program's test split: {some}",
            hint="export it again with this program's data and split, or remove these rows",
        )


def check_rate(rate: float, kind: Kind) -> str | None:
    """Return a warning about an unusual learning rate, None for a usual one.

    Raises:
        SkillcError: it is not a positive number, or far outside.
    """
    low, high = USUAL_RATES[kind]
    option = "--learning-rate" if kind == "sft" else "--dpo-learning-rate"
    usual = f"LoRA's usual rates for {kind.upper()} are {low:g} to {high:g}"
    if not (math.isfinite(rate) and rate > 0) or not low / FACTOR <= rate <= high * FACTOR:
        raise SkillcError(
            f"`{option} {rate:g}` is out of range: {usual}", hint=f"use `{option} {math.sqrt(low * high):.1g}`"
        )
    return None if low <= rate <= high else f"`{option} {rate:g}` is unusual: {usual}"


def check_base(folder: Path) -> int:
    """Check that a folder has all files of a base model, and return the bytes of its weights.

    Raises:
        SkillcError: a file is missing.
    """
    hint = "`--base` is the folder of a model in the layout of Hugging Face"
    if not folder.is_dir():
        raise SkillcError(f"the base model `{folder}` is not a folder", hint=hint)
    missing = [name for name in ("config.json", "tokenizer_config.json") if not (folder / name).is_file()]
    if not any((folder / name).is_file() for name in _TOKENIZERS):
        missing.append("tokenizer.json")
    weights = next((folder / name for name in _WEIGHTS if (folder / name).is_file()), None)
    if weights is None:
        missing.append("model.safetensors")
    if missing or weights is None:
        raise SkillcError(f"the base model `{folder}` lacks {', '.join(f'`{each}`' for each in missing)}", hint=hint)
    parts = [weights]
    if weights.name.endswith(".index.json"):
        try:
            index = json.loads(weights.read_text(encoding="utf-8"))
            parts = [folder / name for name in sorted(set(index["weight_map"].values()))]
        except (ValueError, KeyError, AttributeError) as problem:
            raise SkillcError(f"`{weights}` cannot be read: {problem}", hint="download the model again") from problem
    gone = [part.name for part in parts if not part.is_file()]
    if gone:
        raise SkillcError(f"the base model `{folder}` lacks {', '.join(f'`{each}`' for each in gone)}", hint=hint)
    return sum(part.stat().st_size for part in parts)


def check_room(weights: int, home: Path, *, gpu: bool) -> None:
    """Check that memory holds the weights, and the disk the checkpoints.

    Args:
        weights: bytes of the base model on disk.
        home: where checkpoints are written.
        gpu: whether the weights go to a GPU, whose memory the timed step measures.

    Raises:
        SkillcError: one of them is too small.
    """
    free = available_memory()
    # On a CPU weights of 16 bits are trained with 32.
    need = int(weights * 2 * _MEMORY_FACTOR)
    if not gpu and free is not None and need > free:
        raise SkillcError(
            f"training needs about {need / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free",
            hint="use a smaller base model, or a machine with a GPU",
        )
    place = next(each for each in (home, *home.parents) if each.is_dir())
    left = shutil.disk_usage(place).free
    need = max(_DISK, weights // 4)
    if left < need:
        raise SkillcError(
            f"checkpoints need about {need / 1e9:.1f} GB of disk, and `{place}` has {left / 1e9:.1f} GB",
            hint="free some, or write `--out` elsewhere",
        )


def available_memory() -> int | None:
    """Return the free memory in bytes, None where the system does not report it."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)
