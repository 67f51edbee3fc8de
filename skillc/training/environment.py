"""Find the Python that has TRL and peft, usually in a separate virtual environment: skillc never imports torch."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from skillc.processes import interpreters
from skillc.processes.interpreters import output_of

VARIABLE = "SKILLC_TRAIN_PYTHON"
ENVIRONMENT = ".venv-train"
RUNNER = Path(__file__).with_name("runner.py")

_FIND = "import importlib.util as u; print('found' if u.find_spec('trl') and u.find_spec('peft') else '')"
_VERSIONS = """
import importlib.metadata as m
print(*(f"{name}=={m.version(name)}" for name in ("trl", "peft", "transformers", "torch")))
"""


def find_trainer(root: Path, environ: Mapping[str, str] | None = None) -> Path:
    """Return the interpreter that trains, found as `interpreters.find_interpreter` describes.

    Raises:
        SkillcError: none has TRL and peft; the hint has the commands that install them.
    """
    home = root.resolve() / ENVIRONMENT
    install = f'{home / "bin" / "pip"} install "skillc[train]"'
    hint = f"create one: `python3 -m venv {home} && {install}`; or set its path: `export {VARIABLE}=.../bin/python`"
    wanted = interpreters.Wanted("TRL", _has_trl, ENVIRONMENT, VARIABLE)
    return interpreters.find_interpreter(wanted, None, f"`{VARIABLE}`", root, hint, environ)


def versions(python: Path) -> dict[str, str]:
    """Return the versions of TRL, peft, transformers and torch."""
    return dict(each.split("==", 1) for each in output_of(str(python), _VERSIONS).split())


def _has_trl(python: Path) -> bool:
    if str(python) == sys.executable:
        return find_spec("trl") is not None and find_spec("peft") is not None
    return output_of(str(python), _FIND) == "found"
