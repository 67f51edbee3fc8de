"""Atomic file writes, and the folders and prompts that ship with skillc."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment

_PACKAGE = Path(__file__).resolve().parent


def write_atomically(path: Path, content: str | bytes | Iterable[str], *, mode: int | None = None) -> None:
    """Write a temporary file beside the path and move it there: a kill or a power cut never leaves half of a file.

    Args:
        path: the file; a link is replaced by a file.
        content: the whole content; a long text may come in pieces. Line ends stay as they are.
        mode: the file's permissions at any time; by default those of any new file.

    Raises:
        OSError: it cannot be written; the old file is unchanged.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        if mode is not None:
            # The content may be private, so nobody else may have the file open when it is written.
            beside.touch(0o600)
        with beside.open("wb") as file:
            if mode is not None:
                beside.chmod(mode)
            pieces = [content] if isinstance(content, str | bytes) else content
            file.writelines(piece.encode() if isinstance(piece, str) else piece for piece in pieces)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def shipped_folder(name: str) -> Path:
    """Return the folder `grammar` or `stdlib`: in the package of a wheel, beside the package in a checkout.

    Raises:
        FileNotFoundError: the installation is damaged.
    """
    for parent in (_PACKAGE, _PACKAGE.parent):
        if (parent / name).is_dir():
            return parent / name
    raise FileNotFoundError(f"the folder `{name}` is missing from this installation of skillc; install it again")


@cache
def templates(folder: Path) -> Environment:
    """Return the jinja2 templates of a folder of prompts."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
