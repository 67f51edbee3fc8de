"""The user's own Python behind a metric, read and never run: whether it is another one now."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterator

Read = Callable[[str], bytes | None]


def code_digest(read: Read, name: str) -> str:
    """Names the code of `module:function`: its module and all that this imports from the program's folder.

    Comments, layout and docstrings are not in it. A module that is not there, as an installed one is not, counts by its
    name alone.

    Args:
        read: the files of the program's folder.
        name: as written in the program.
    """
    total = hashlib.sha256(name.encode(errors="surrogatepass"))
    waiting, seen = [name.partition(":")[0]], set[str]()
    while waiting:
        module = waiting.pop()
        if module in seen:
            continue
        seen.add(module)
        content, package = _found(read, module)
        if content is None:
            continue
        tree = _tree(content)
        total.update(f"\0{module}\0".encode() + (content if tree is None else ast.dump(tree).encode()))
        waiting += sorted(_imported(tree, module, package=package), reverse=True) if tree is not None else []
    return total.hexdigest()


def _found(read: Read, module: str) -> tuple[bytes | None, bool]:
    """A module's text, and whether it is a package."""
    path = module.replace(".", "/")
    if not all(part.isidentifier() for part in module.split(".")):
        return None, False
    content = read(f"{path}.py")
    return (content, False) if content is not None else (read(f"{path}/__init__.py"), True)


def _tree(content: bytes) -> ast.Module | None:
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                node.body = node.body[1:]
    return tree


def _imported(tree: ast.Module, module: str, *, package: bool) -> Iterator[str]:
    """Modules that may be meant by the imports of a module, wherever in its text."""
    above = module.split(".") if package else module.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = above[: len(above) - node.level + 1] if node.level else []
            whole = ".".join([*base, *([node.module] if node.module else [])])
            yield from (name for name in (whole, *(f"{whole}.{a.name}".lstrip(".") for a in node.names)) if name)
