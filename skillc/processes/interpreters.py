"""Python interpreters with an optional package, usually in a virtual environment beside the program."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path


def candidates(environment: str, root: Path) -> Iterator[Path]:
    """Yield the running interpreter, and those of the environment beside the program and in the working folder."""
    yield Path(sys.executable)
    for folder in dict.fromkeys((root.resolve(), Path.cwd())):
        python = folder / environment / "bin" / "python"
        if os.access(python, os.X_OK):
            yield python


def declared_path(text: str, root: Path) -> Path:
    """Return a declared interpreter, relative to the program's folder.

    A virtual environment's `python` is a link that must not be followed: its place decides where packages are found.
    """
    path = Path(text).expanduser()
    return path if path.is_absolute() else Path(os.path.abspath(root / path))  # noqa: PTH100


@cache
def output_of(python: str, code: str) -> str:
    """Run code in an interpreter and return what it prints; nothing if that fails."""
    try:
        done = subprocess.run(
            [python, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
