"""Atomic file writes: a kill, a full disk or a power cut never leaves half of a file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def write_whole(path: Path, content: str | bytes | Iterable[str], *, mode: int | None = None) -> None:
    """Write a file beside its place and move it there in one step.

    Args:
        path: the file; a link is replaced by a file.
        content: the whole content; a long text may come in pieces. Line ends stay as they are.
        mode: the file's permissions; by default those of any new file.

    Raises:
        OSError: it cannot be written; the old file is unchanged.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with beside.open("wb") as file:
            pieces = [content] if isinstance(content, str | bytes) else content
            file.writelines(piece.encode() if isinstance(piece, str) else piece for piece in pieces)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            beside.chmod(mode)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
