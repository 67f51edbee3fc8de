"""Import programs like modules: after `import skillc.importer`, `from programs import tickets` works.

`programs/tickets.skill` becomes a module with `program` (a DSPy module), `skill` (the document) and `plan`. A Python
module with the same name takes precedence.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from skillc.artifacts.loading import SUFFIX, load_program, module_of
from skillc.errors import SkillcError


class SkillFinder(MetaPathFinder):
    """Finds programs on a package's path, or on `sys.path`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a program with this name on the path."""
        name = fullname.rpartition(".")[2] + SUFFIX
        for folder in sys.path if path is None else path:
            file = Path(folder or ".") / name
            if file.is_file():
                spec = ModuleSpec(fullname, SkillLoader(file), origin=str(file))
                spec.has_location = True
                return spec
        return None


class SkillLoader(Loader):
    """Fills a module from a program. The DSPy module is built at its first use."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def exec_module(self, module: ModuleType) -> None:
        """Load the program.

        Raises:
            ImportError: the program has errors.
        """
        try:
            loaded = load_program(self._file)
        except SkillcError as problem:
            raise ImportError(str(problem), name=module.__name__, path=str(self._file)) from problem

        def attribute(name: str) -> Any:
            if name != "program":
                raise AttributeError(f"module `{module.__name__}` has no attribute `{name}`")
            module.__dict__["program"] = module_of(loaded)
            return module.__dict__["program"]

        module.__dict__.update(plan=loaded.plan, skill=loaded.skill, __getattr__=attribute)


def install() -> None:
    """Add the finder after Python's own, once."""
    if not any(isinstance(finder, SkillFinder) for finder in sys.meta_path):
        sys.meta_path.append(SkillFinder())


install()
