"""Household games of ALFWorld: `rollout = environment("alfworld") { ... }`.

`games.py` makes games from seeds, and `engine.py` plays them and the official ones with ALFWorld's engine. Both run in
the interpreter that has the engine, usually in a separate environment, without skillc. This file finds it.
"""

from __future__ import annotations

from pathlib import Path

from skillc.processes import interpreters

VARIABLE = "SKILLC_ALFWORLD_PYTHON"
ENVIRONMENT = ".venv-alfworld"
ENGINE = Path(__file__).with_name("engine.py")
LOCK = Path(__file__).with_name("alfworld.txt")
"""The packages of the engine, pinned: to be installed with `--no-deps`."""

_FIND = "import importlib.util as u; print('found' if all(u.find_spec(n) for n in ('alfworld', 'textworld')) else '')"


def find_interpreter(declared: str | None, root: Path) -> Path:
    """Return the interpreter of the engine, found as `interpreters.find_interpreter` describes.

    Raises:
        SkillcError: none has the engine; the hint is how to install it.
    """
    home = root.resolve() / ENVIRONMENT
    hint = (
        f"create one with Python 3.11 or 3.12: `python3 -m venv {home} && {home / 'bin' / 'pip'} install --no-deps "
        f"-r {LOCK}`; or set its path: `export {VARIABLE}=.../bin/python`"
    )

    def has_engine(python: Path) -> bool:
        return interpreters.output_of(str(python), _FIND) == "found"

    wanted = interpreters.Wanted("ALFWorld's engine", has_engine, ENVIRONMENT, VARIABLE)
    return interpreters.find_interpreter(wanted, declared, "`python`", root, hint)
