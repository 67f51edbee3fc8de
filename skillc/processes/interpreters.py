"""Python interpreters with an optional package, usually in a virtual environment beside the program."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from skillc.dataclass import dataclass
from skillc.errors import SkillcError


@dataclass(frozen=True, slots=True)
class Wanted:
    """A package that the interpreter must have.

    Attributes:
        name: of the package, for messages.
        has: returns whether an interpreter has it.
        environment: the usual folder of its virtual environment, beside the program or in the working folder.
        variable: the environment variable that can name an interpreter.
    """

    name: str
    has: Callable[[Path], bool]
    environment: str
    variable: str


def find_interpreter(
    wanted: Wanted, declared: str | None, setting: str, root: Path, hint: str, environ: Mapping[str, str] | None = None
) -> Path:
    """Return the declared interpreter, else that of the environment variable, else the first with the package.

    The search tries the running interpreter, and the usual virtual environments.

    Args:
        wanted: the package.
        declared: a path, relative to the program's folder.
        setting: where it is declared, for messages.
        root: the program's folder.
        hint: how to install the package.
        environ: by default that of this process.

    Raises:
        SkillcError: none has the package, or the declared one does not run or lacks it.
    """
    text = declared or (os.environ if environ is None else environ).get(wanted.variable)
    if not text:
        places = dict.fromkeys((root.resolve(), Path.cwd()))
        pythons = [place / wanted.environment / "bin" / "python" for place in places]
        candidates = [Path(sys.executable), *(python for python in pythons if os.access(python, os.X_OK))]
        found = next(filter(wanted.has, candidates), None)
        if found is None:
            raise SkillcError(f"no interpreter with {wanted.name} was found", hint=hint)
        return found
    path = declared_path(text, root)
    source = setting if declared else f"`{wanted.variable}`"
    if not os.access(path, os.X_OK) or path.is_dir():
        raise SkillcError(f"{source} names `{text}`, and `{path}` is not an interpreter", hint=hint)
    if not wanted.has(path):
        raise SkillcError(f"{source} names `{path}`, which has no {wanted.name}", hint=hint)
    return path


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
