"""The digest of what a model's folder holds. A file that was hashed once is hashed again only when it changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from skillc.errors import SkillcError
from skillc.files import write_whole

_THREADS = 8
# Neither is read by a server.
_IGNORED = frozenset({".md", ".txt", ".png", ".jpg", ".gitattributes"})
_KEPT = frozenset({"merges.txt", "vocab.txt"})


def folder_digest(folder: Path, memory: Path | None) -> str:
    """Hex sha256 over names and contents of the files right in a folder, which is where a server looks.

    Args:
        folder: weights, tokenizer, chat template and configuration.
        memory: the file that remembers digests by path, size and time of change; None remembers nothing.

    Raises:
        SkillcError: it cannot be read.
    """
    try:
        files = sorted(path for path in folder.iterdir() if path.is_file() and _counts(path))
        return _digest(zip([path.name for path in files], _digests(files, memory), strict=True))
    except OSError as problem:
        raise SkillcError(f"the model's folder `{folder}` cannot be read: {problem.strerror}") from problem


def file_digest(file: Path, memory: Path | None) -> str:
    """Hex sha256 of one file.

    Raises:
        SkillcError: it cannot be read.
    """
    try:
        return _digests([file], memory)[0]
    except OSError as problem:
        raise SkillcError(f"`{file}` cannot be read: {problem.strerror}") from problem


def _counts(path: Path) -> bool:
    return not path.name.startswith(".") and (path.suffix not in _IGNORED or path.name in _KEPT)


def _digest(parts: Iterable[tuple[str, str]]) -> str:
    return hashlib.sha256(json.dumps(list(parts)).encode()).hexdigest()


def _digests(files: list[Path], memory: Path | None) -> list[str]:
    known = _remembered(memory)
    stamps = {str(path.resolve()): _stamp(path) for path in files}
    stale = [path for path, stamp in stamps.items() if known.get(path, ["", 0, 0])[1:] != stamp]
    if stale:
        with ThreadPoolExecutor(_THREADS) as pool:
            for path, made in zip(stale, pool.map(_sha256, stale), strict=True):
                known[path] = [made, *stamps[path]]
        _remember(memory, known)
    return [str(known[str(path.resolve())][0]) for path in files]


def _stamp(path: Path) -> list[str | int]:
    about = path.stat()
    return [about.st_size, about.st_mtime_ns]


def _sha256(path: str) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _remembered(memory: Path | None) -> dict[str, list[str | int]]:
    try:
        known = json.loads(memory.read_text(encoding="utf-8")) if memory else {}
    except (OSError, ValueError):
        return {}
    whole = isinstance(known, dict) and all(isinstance(each, list) and len(each) == 3 for each in known.values())
    return known if whole else {}


def _remember(memory: Path | None, known: dict[str, list[str | int]]) -> None:
    if memory is None:
        return
    try:
        memory.parent.mkdir(parents=True, exist_ok=True)
        write_whole(memory, json.dumps(known, indent=1, sort_keys=True))
    except OSError:
        # It is hashed again the next time.
        return
