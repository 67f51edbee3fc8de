"""A model's files on this machine: a folder of one's own, or what the Hugging Face hub's cache holds."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_KINDS = (".safetensors", ".bin", ".pt", ".gguf")
_NOT_WEIGHTS = ("optimizer", "scheduler", "training_args", "rng_state", "tokenizer")


@dataclass(frozen=True, slots=True)
class Files:
    """A model's folder.

    Attributes:
        config: the values of its `config.json`.
        size: bytes of its weights; None where there are none.
    """

    folder: Path
    config: Mapping[str, Any]
    size: int | None


def files_of(
    model: str, root: Path, environ: Mapping[str, str] = os.environ, revision: str | None = None
) -> Files | None:
    """The files of a model, None where it is not on this machine.

    Args:
        model: a folder, seen from `root`, or a name on the hub.
        root: the program's folder.
        environ: where the hub's cache is named.
        revision: branch or commit of a model on the hub; None is `main`.
    """
    for folder in (root / Path(model).expanduser(), *_snapshots(model, environ, revision or "main")):
        if (folder / "config.json").is_file():
            return Files(folder, _config(folder), _size(folder))
    return None


def hub_cache(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder in which the hub's own library keeps models."""
    if environ.get("HF_HUB_CACHE"):
        return Path(environ["HF_HUB_CACHE"])
    home = environ.get("HF_HOME") or Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "huggingface"
    return Path(home) / "hub"


def is_folder_name(model: str) -> bool:
    """Whether a name can only mean a folder: the hub's names have one slash and begin with no dot or slash."""
    return model.startswith((".", "/", "~")) or model.count("/") != 1


def is_offline(environ: Mapping[str, str]) -> bool:
    """Whether the hub's own library may not open a connection."""
    value = environ.get("HF_HUB_OFFLINE") or environ.get("TRANSFORMERS_OFFLINE") or ""
    return value.upper() in ("1", "ON", "YES", "TRUE")


def _snapshots(model: str, environ: Mapping[str, str], revision: str) -> list[Path]:
    """The copy of a model in the hub's cache that a server loads: the one of its branch or commit."""
    home = hub_cache(environ) / f"models--{model.replace('/', '--')}"
    try:
        commit = (home / "refs" / revision).read_text(encoding="utf-8").strip()
    except OSError:
        commit = revision
    return [home / "snapshots" / commit]


def _config(folder: Path) -> Mapping[str, Any]:
    try:
        data = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _size(folder: Path) -> int | None:
    """Bytes of the weights, of one format where they are there in several, as vLLM loads them."""
    for kind in _KINDS:
        found = [file for file in folder.glob(f"*{kind}") if not file.name.startswith(_NOT_WEIGHTS)]
        if found:
            return sum(file.stat().st_size for file in found)
    return None
