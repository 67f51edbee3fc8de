"""`python("module:function")`: a metric of the user's own, from a module beside the program or an installed one."""

from __future__ import annotations

import copy
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import JsonValue

from skillc.data.example import Example
from skillc.errors import SkillcError
from skillc.metrics.registry import Measure


def load_function(name: str, root: Path) -> Callable[..., Any]:
    """The function behind `module:function`; the program's folder is looked in first, and only while importing.

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
                f"the module `{module_name}` of the metric `{name}` cannot be imported: "
                f"{type(problem).__name__}: {problem}",
                hint=f"it is looked for in `{root}` and among the installed packages",
            ) from problem
    function = getattr(module, function_name, None)
    if not callable(function):
        raise SkillcError(f"the module `{module_name}` has no function `{function_name}`")
    found: Callable[..., Any] = function
    return found


def call(function: Callable[..., Any], example: Example, prediction: Mapping[str, JsonValue]) -> Measure:
    """The measure that a user's function gives: a number, a bool, (score, feedback), or something that holds both.

    The function is called as `function(example, prediction)` with dicts of its own; the example holds the inputs and
    the data fields by name, the right answers under `gold`, and `id`.

    Raises:
        TypeError: what it gave holds no number.
    """
    data = {**example.inputs, **example.fields, "gold": dict(example.gold), "id": example.id}
    result = function(copy.deepcopy(data), copy.deepcopy(dict(prediction)))
    feedback: object = ""
    if isinstance(result, tuple) and len(result) == 2:
        result, feedback = result
    elif isinstance(result, Mapping) and "score" in result:
        result, feedback = result["score"], result.get("feedback")
    elif hasattr(result, "score"):
        result, feedback = result.score, getattr(result, "feedback", "")
    return Measure(_number(result), str(feedback or ""))


def _number(value: object) -> Fraction | int | float:
    if hasattr(value, "item") and callable(value.item):
        value = value.item()  # a scalar of numpy or of torch
    if isinstance(value, bool | int | float | Fraction):
        return value
    if isinstance(value, Decimal):
        return Fraction(value)
    raise TypeError(f"a score must be a number, not {type(value).__name__}")


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
