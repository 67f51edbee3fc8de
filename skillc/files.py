"""Files that are replaced whole: a kill, a full disk or a power cut never leaves half of one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def write_whole(path: Path, text: str | Iterable[str], *, mode: int | None = None) -> None:
    """Writes beside the file and puts it in its place in one move; a long text may come in pieces.

    Args:
        path: the file; a link is replaced by a file.
        text: what it is to hold.
        mode: the file's permissions; by default those of any new file.

    Raises:
        OSError: it cannot be written; what stood there still stands.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with beside.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines([text] if isinstance(text, str) else text)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            beside.chmod(mode)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
