"""Find the Python interpreter that has ALFWorld's engine, usually in a separate environment."""

from __future__ import annotations

import os
from pathlib import Path

from skillc.errors import SkillcError
from skillc.processes.interpreters import candidates, declared_path, output_of

VARIABLE = "SKILLC_ALFWORLD_PYTHON"
ENVIRONMENT = ".venv-alfworld"
ENGINE = Path(__file__).with_name("engine.py")
LOCK = Path(__file__).with_name("alfworld.txt")
"""The packages of the engine, pinned: to be installed with `--no-deps`."""

_FIND = "import importlib.util as u; print('found' if all(u.find_spec(n) for n in ('alfworld', 'textworld')) else '')"


def find_interpreter(declared: str | None, root: Path) -> Path:
    """Find the interpreter of the engine: the declared one, else by the environment, else by a search.

    The search tries the running interpreter, and `.venv-alfworld` beside the program and in the working folder. A
    declared path is relative to the program's folder.

    Raises:
        SkillcError: none has the engine; the hint is how to install it.
    """
    text = declared or os.environ.get(VARIABLE)
    if text is None:
        found = next(filter(_has_engine, candidates(ENVIRONMENT, root)), None)
        if found is None:
            raise SkillcError("no interpreter with ALFWorld's engine was found", hint=_install_hint(root))
        return found
    path = declared_path(text, root)
    if not _has_engine(path):
        source = "`python`" if declared else f"`{VARIABLE}`"
        raise SkillcError(f"{source} names `{text}`, which has no engine of ALFWorld", hint=_install_hint(root))
    return path


def _has_engine(python: Path) -> bool:
    return output_of(str(python), _FIND) == "found"


def _install_hint(root: Path) -> str:
    home = root.resolve() / ENVIRONMENT
    return (
        f"create one with Python 3.11 or 3.12: `python3 -m venv {home} && {home / 'bin' / 'pip'} install --no-deps "
        f"-r {LOCK}`; or set its path: `export {VARIABLE}=.../bin/python`"
    )
