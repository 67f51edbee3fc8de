"""The user's Python code behind `python("module:function")`: load it, describe its errors, and compute its digest."""

from __future__ import annotations

import ast
import asyncio
import contextvars
import hashlib
import importlib
import inspect
import marshal
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from skillc.errors import SkillcError
from skillc.text import cut


def load_function(name: str, root: Path, what: str) -> Callable[..., Any]:
    """Import the function `module:function`. The program's folder is first in `sys.path` while importing.

    Args:
        name: as written in the program.
        root: the program's folder.
        what: its kind for messages: `metric`, `backend`.

    Raises:
        SkillcError: the name has another form, or the module or function does not exist.
    """
    module_name, colon, function_name = name.partition(":")
    if not (colon and module_name and function_name):
        raise SkillcError(f"`{name}` is not a function's name", hint='write `python("module:function")`')
    with _importable(root):
        try:
            module = importlib.import_module(module_name)
        except BaseException as problem:
            if not raised_by_user_code(problem):
                raise
            reason = describe_exception(problem, root)
            raise SkillcError(
                f"the module `{module_name}` of the {what} `{name}` cannot be imported: {reason}",
                hint=f"searched `{root}` and the installed packages",
            ) from problem
    function = getattr(module, function_name, None)
    if not callable(function):
        raise SkillcError(f"the module `{module_name}` has no function `{function_name}`")
    found: Callable[..., Any] = function
    return found


_LONGEST = 300
_OWN_PACKAGE = str(Path(__file__).parent)


def raised_by_user_code(problem: BaseException) -> bool:
    """Return whether the user's code raised an exception, rather than Ctrl-C while it ran.

    With Python's default handler the two look alike, and a `KeyboardInterrupt` counts as Ctrl-C.
    """
    if not isinstance(problem, KeyboardInterrupt):
        return True
    frames = traceback.extract_tb(problem.__traceback__)
    ours = bool(frames) and frames[-1].filename.startswith(_OWN_PACKAGE)
    return not ours and signal.getsignal(signal.SIGINT) is not signal.default_int_handler


def describe_exception(
    problem: BaseException, root: Path | None = None, function: Callable[..., Any] | None = None
) -> str:
    """Describe an exception of the user's code on one line: name, message and place.

    Args:
        problem: the exception.
        root: the program's folder; None for the folder of the function.
        function: the called function; None while a module is imported.
    """
    try:
        words = cut(str(problem), _LONGEST)
    except Exception:
        words = ""
    name, place = type(problem).__name__, _raised_at(problem, root, function)
    return (f"{name}: {words}" if words else name) + (f", at `{place}`" if place else "")


async def call_function(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call a coroutine function on this loop, another function on a thread.

    Raises:
        ThreadExit: it raised what is no `Exception` on its thread.
    """
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
        return await function(*arguments, **named)
    returned = await _on_thread(partial(function, *arguments, **named))
    return await returned if inspect.isawaitable(returned) else returned


async def _on_thread(function: Callable[[], Any]) -> Any:
    """Call on a new thread, so that a hanging function blocks neither other calls nor the end of the process."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: tuple[Any, BaseException | None]) -> None:
        if not outcome.done():
            outcome.set_result(result)

    def work() -> None:
        try:
            result: tuple[Any, BaseException | None] = (context.run(function), None)
        except BaseException as problem:
            result = (None, problem)
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, result)

    threading.Thread(target=work, name="skillc function", daemon=True).start()
    returned, problem = await outcome
    if problem is not None and not isinstance(problem, Exception):
        # Raised here, it would end the event loop, or be read as a cancelled task.
        raise ThreadExit(problem)
    if problem is not None:
        raise problem
    return returned


class ThreadExit(Exception):  # noqa: N818
    """A function on a thread raised an exception that is no `Exception`, as `sys.exit` does."""

    def __init__(self, problem: BaseException) -> None:
        super().__init__(str(problem))
        self.problem = problem


def defined_at(function: Callable[..., Any], root: Path | None = None) -> str | None:
    """Return file and line of a function's definition, None for built-in functions."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return _location(code.co_filename, code.co_firstlineno, root) if code is not None else None


def _raised_at(problem: BaseException, root: Path | None, function: Callable[..., Any] | None) -> str | None:
    """Return file and line of the innermost frame in the user's code, else of the innermost frame outside skillc."""
    code = getattr(inspect.unwrap(function), "__code__", None) if function is not None else None
    file = code.co_filename if code is not None else None
    folder = root.resolve() if root is not None else Path(file).resolve().parent if file is not None else None
    if isinstance(problem, SyntaxError) and problem.filename and problem.lineno:
        return _location(problem.filename, problem.lineno, folder)
    frames = [each for each in traceback.extract_tb(problem.__traceback__) if not each.filename.startswith("<frozen")]
    own = [each for each in frames if each.filename == file or _is_own(each.filename, folder)]
    outside = [each for each in frames if not each.filename.startswith(_OWN_PACKAGE)]
    frame = next(reversed(own or outside), None)
    return _location(frame.filename, frame.lineno or 0, folder) if frame is not None else None


def _is_own(file: str, folder: Path | None) -> bool:
    if folder is None:
        return False
    path = Path(file).resolve()
    return path.is_relative_to(folder) and "site-packages" not in path.relative_to(folder).parts


def _location(file: str, line: int, root: Path | None) -> str:
    path = Path(file).resolve()
    folder = root.resolve() if root is not None else None
    name = path.relative_to(folder).as_posix() if folder is not None and path.is_relative_to(folder) else path.name
    return f"{name}:{line}"


def source_digest(name: str, function: Callable[..., Any], root: Path) -> str:
    """Return the sha256 of a function's source file and of the files in the program's folder that it imports.

    For a function of a package with `.skill` files, these are the files of that package. A function without a source
    file counts by its compiled code.
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
    """Return the folder of a function's package, if it has `.skill` files and is outside the program's folder."""
    if not files or any(file.is_relative_to(root) for file in files):
        return None
    from skillc.language.skill_packages import package_of

    package = package_of(module)
    if package is None:
        return None
    folder = package.folder.resolve()
    # Imports within the package are found only if the folder has the module's name.
    return folder if folder.name == package.module and files[0].is_relative_to(folder) else None


def _imported(file: Path, root: Path, within: str | None = None) -> Iterator[Path]:
    """Yield the files below a folder that a file imports, anywhere in its text; only those of the package `within`."""
    if not file.is_relative_to(root):
        return
    package = file.parent.relative_to(root).parts
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return
    for module in _imported_modules(tree, list(package)):
        if within is None or module.partition(".")[0] == within:
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
    """Import from the program's folder first; hide loaded modules of other programs with the same names."""
    folder = root.resolve()
    names = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    names -= sys.stdlib_module_names | {"skillc"}
    hidden = {
        name: module
        for name, module in sys.modules.items()
        if name.partition(".")[0] in names and not _is_below(module, folder)
    }
    for name in hidden:
        del sys.modules[name]
    importlib.invalidate_caches()
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        if str(folder) in sys.path:
            sys.path.remove(str(folder))
        sys.modules.update(hidden)


def _is_below(module: ModuleType, folder: Path) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and Path(file).resolve().is_relative_to(folder)


ReadFile = Callable[[str], bytes | None]


def code_digest(read: ReadFile, name: str) -> str:
    """Return the sha256 of the code of `module:function`: its module and its imports from the program's folder.

    Comments, layout and docstrings do not count. Other modules count by name. `read` reads a file of that folder.
    """
    total = hashlib.sha256(name.encode(errors="surrogatepass"))
    waiting, seen = [name.partition(":")[0]], set[str]()
    while waiting:
        module = waiting.pop()
        if module in seen:
            continue
        seen.add(module)
        content, is_package = _read_module(read, module)
        if content is None:
            continue
        tree = _parse_without_docstrings(content)
        total.update(f"\0{module}\0".encode() + (content if tree is None else ast.dump(tree).encode()))
        if tree is not None:
            package = module.split(".") if is_package else module.split(".")[:-1]
            waiting += sorted(_imported_modules(tree, package), reverse=True)
    return total.hexdigest()


def _read_module(read: ReadFile, module: str) -> tuple[bytes | None, bool]:
    """Return a module's text and whether it is a package."""
    path = module.replace(".", "/")
    if not all(part.isidentifier() for part in module.split(".")):
        return None, False
    content = read(f"{path}.py")
    return (content, False) if content is not None else (read(f"{path}/__init__.py"), True)


def _parse_without_docstrings(content: bytes) -> ast.Module | None:
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and ast.get_docstring(node, clean=False) is not None
        ):
            node.body = node.body[1:]
    return tree


def _imported_modules(tree: ast.Module, package: list[str]) -> Iterator[str]:
    """Yield the modules that the imports of a module in a package may mean, anywhere in its text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from (name for name in (module, *(f"{module}.{a.name}".lstrip(".") for a in node.names)) if name)
