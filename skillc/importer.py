"""`import skillc.importer`, and programs import like modules: `from programs import tickets`.

`programs/tickets.skill` becomes a module with `program` (a DSPy module), `skill` (the document) and `plan`. It is found
where Python would find `programs/tickets.py`, and after it: a Python module of that name wins.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from skillc.artifacts.loading import SUFFIX, LoadedProgram, load_program, module_of
from skillc.errors import SkillcError


class SkillFinder(MetaPathFinder):
    """Finds programs on a package's path, or on `sys.path`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of `fullname` where a program of that name lies on the path."""
        name = fullname.rpartition(".")[2] + SUFFIX
        for folder in sys.path if path is None else path:
            file = Path(folder or ".") / name
            if file.is_file():
                spec = ModuleSpec(fullname, SkillLoader(file), origin=str(file))
                spec.has_location = True
                return spec
        return None


class SkillLoader(Loader):
    """Fills a module from a program. The DSPy module is built when it is first asked for."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def exec_module(self, module: ModuleType) -> None:
        """Resolves the program.

        Raises:
            ImportError: the program has errors.
        """
        try:
            loaded = load_program(self._file)
        except SkillcError as problem:
            raise ImportError(str(problem), name=module.__name__, path=str(self._file)) from problem
        namespace: dict[str, Any] = module.__dict__
        namespace["plan"] = loaded.plan
        namespace["skill"] = loaded.skill
        namespace["__getattr__"] = _late(module, loaded)


def _late(module: ModuleType, loaded: LoadedProgram) -> Any:
    def attribute(name: str) -> Any:
        if name != "program":
            raise AttributeError(f"module `{module.__name__}` has no attribute `{name}`")
        module.__dict__["program"] = module_of(loaded)
        return module.__dict__["program"]

    return attribute


def install() -> None:
    """Puts the finder behind Python's own, once."""
    if not any(isinstance(finder, SkillFinder) for finder in sys.meta_path):
        sys.meta_path.append(SkillFinder())


install()
