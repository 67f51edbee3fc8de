"""What tells one metric's code from another's, for the name of a run."""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

from skillc.metrics.evaluate import python_names
from skillc.metrics.python_metric import load_function
from skillc.plan.schema import Plan


def metric_sources(plan: Plan, root: Path) -> dict[str, str]:
    """Digest of the source of each metric of the user's own, by `module:function`.

    Raises:
        SkillcError: a module or a function is not there.
    """
    return {name: source_digest(name, root) for name in python_names(plan)}


def source_digest(name: str, root: Path) -> str:
    """Sha256 of the source file of a function, and of the files in the program's folder that it imports."""
    digest = hashlib.sha256(name.encode())
    for file in _files(name, root.resolve()):
        text = file.read_bytes()
        digest.update(b"\0%d\0" % len(text) + text)
    return digest.hexdigest()


def _files(name: str, root: Path) -> list[Path]:
    function = inspect.unwrap(load_function(name, root))
    try:
        found = inspect.getsourcefile(function)
    except TypeError:
        found = None
    first = Path(found).resolve() if found else None
    waiting = [file for file in (_file_of(root, name.partition(":")[0]), first) if file is not None and file.is_file()]
    files: list[Path] = []
    while waiting:
        file = waiting.pop()
        if file not in files:
            files.append(file)
            waiting += _imported(file, root)
    return sorted(files)


def _imported(file: Path, root: Path) -> Iterator[Path]:
    """The files in the program's folder that a file imports, wherever in its text."""
    if not file.is_relative_to(root):
        return
    package = file.parent.relative_to(root).parts
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*above, *([node.module] if node.module else [])])
            modules = [base, *(f"{base}.{alias.name}".lstrip(".") for alias in node.names)]
        else:
            continue
        yield from (found for module in modules if module and (found := _file_of(root, module)) is not None)


def _file_of(root: Path, module: str) -> Path | None:
    if module.partition(".")[0] in sys.stdlib_module_names:
        return None
    bare = root.joinpath(*module.split("."))
    return next((path for path in (bare.with_suffix(".py"), bare / "__init__.py") if path.is_file()), None)
