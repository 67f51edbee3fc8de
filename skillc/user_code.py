"""Python code of the user's own behind `python("module:function")`: found, loaded, and told from other code."""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
import marshal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from skillc.errors import SkillcError


def load_function(name: str, root: Path, what: str) -> Callable[..., Any]:
    """The function behind `module:function`; the program's folder is looked in first, and only while importing.

    Args:
        name: as written in the program.
        root: the program's folder.
        what: what the function is to the user, for messages: `metric`, `backend`.

    Raises:
        SkillcError: the name is not of that form, or there is no such module or function.
    """
    module_name, colon, function_name = name.partition(":")
    if not (colon and module_name and function_name):
        raise SkillcError(f"`{name}` names no function", hint='write `python("module:function")`')
    with _importable(root):
        try:
            module = importlib.import_module(module_name)
        except (Exception, SystemExit) as problem:
            raise SkillcError(
                f"the module `{module_name}` of the {what} `{name}` cannot be imported: "
                f"{type(problem).__name__}: {problem}",
                hint=f"it is looked for in `{root}` and among the installed packages",
            ) from problem
    function = getattr(module, function_name, None)
    if not callable(function):
        raise SkillcError(f"the module `{module_name}` has no function `{function_name}`")
    found: Callable[..., Any] = function
    return found


def source_digest(name: str, function: Callable[..., Any], root: Path) -> str:
    """Sha256 of the source file of a function, and of the files in the program's folder that it imports.

    For a function of a package that carries `.skill` files, also of the files of that package that it imports.

    A function that was written into no file counts by its compiled code.
    """
    digest = hashlib.sha256(name.encode())
    files = _files(name, function, root.resolve())
    for file in files:
        text = file.read_bytes()
        digest.update(b"\0%d\0" % len(text) + text)
    code = getattr(inspect.unwrap(function), "__code__", None)
    if not files and code is not None:
        digest.update(marshal.dumps(code))
    return digest.hexdigest()


def _files(name: str, function: Callable[..., Any], root: Path) -> list[Path]:
    function = inspect.unwrap(function)
    try:
        found = inspect.getsourcefile(function if inspect.isroutine(function) else type(function))
    except TypeError:
        found = None
    first = Path(found).resolve() if found else None
    module = name.partition(":")[0]
    waiting = [file for file in (_file_of(root, module), first) if file is not None and file.is_file()]
    home = _home(module, root, waiting)
    files: list[Path] = []
    while waiting:
        file = waiting.pop()
        if file not in files:
            files.append(file)
            waiting += _imported(file, root) if home is None else _imported(file, home.parent, home.name)
    return sorted(files)


def _home(module: str, root: Path, files: list[Path]) -> Path | None:
    """The folder of the package that a function is part of, for one that carries `.skill` files and lies elsewhere."""
    if not files or any(file.is_relative_to(root) for file in files):
        return None
    from skillc.skill_packages import package_of

    package = package_of(module)
    folder = package.folder.resolve() if package is not None else None
    # Its name is that of the module, or imports within it would not be found by their names.
    named = folder is not None and package is not None and folder.name == package.module
    return folder if named and folder is not None and files[0].is_relative_to(folder) else None


def _imported(file: Path, root: Path, within: str | None = None) -> Iterator[Path]:
    """The files below a folder that a file imports, wherever in its text; `within` keeps to one package of it."""
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
        for module in modules:
            if module and (within is None or module.partition(".")[0] == within):
                found = _file_of(root, module)
                if found is not None:
                    yield found


def _file_of(root: Path, module: str) -> Path | None:
    if module.partition(".")[0] in sys.stdlib_module_names:
        return None
    bare = root.joinpath(*module.split("."))
    return next((path for path in (bare.with_suffix(".py"), bare / "__init__.py") if path.is_file()), None)


@contextmanager
def _importable(root: Path) -> Iterator[None]:
    """The program's folder as the first place of imports; modules of other programs with the same names step aside."""
    folder = root.resolve()
    own = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    own -= sys.stdlib_module_names | {"skillc"}
    aside = {
        name: module
        for name, module in sys.modules.items()
        if name.partition(".")[0] in own and not _lies_in(module, folder)
    }
    for name in aside:
        del sys.modules[name]
    importlib.invalidate_caches()
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        if str(folder) in sys.path:
            sys.path.remove(str(folder))
        sys.modules.update(aside)


def _lies_in(module: ModuleType, folder: Path) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and Path(file).resolve().is_relative_to(folder)
