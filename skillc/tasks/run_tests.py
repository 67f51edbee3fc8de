"""Inside a sandbox: runs the tests of a script, which need nothing but the standard library.

    python run_tests.py WORD SCRIPT [TESTS]

SCRIPT is parsed first if it is Python. TESTS is a file, or a folder with files `test_*.py` or `*_test.py`; their
`unittest` cases, functions `test_*` and methods `test_*` of classes `Test*` are run. Without TESTS the script is only
parsed. The last line of the output is WORD if and only if all tests passed: a script that ends the process early does
not pass. This file is run as a script, by any Python from 3.8 on.
"""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import inspect
import os
import sys
import traceback
import unittest
from collections.abc import Callable
from types import ModuleType, TracebackType
from typing import Any

# Frames of this file are left out of tracebacks.
__unittest = True

_MOST_SHOWN = 5


def main() -> int:
    """Run the tests and end with status 0 if all passed."""
    word, script, *tests = sys.argv[1:]
    sys.argv[1:] = []
    problem = parse_problem(script)
    if problem is None and tests:
        problem = test_problem(tests[0])
    sys.stdout.flush()
    if problem is not None:
        sys.stdout.write(f"{problem}\n")
        return 1
    sys.stdout.write(f"\n{word}\n")
    return 0


def parse_problem(script: str) -> str | None:
    """Return why a Python file cannot be parsed, None if it can or is something else."""
    if not script.endswith(".py"):
        return None
    try:
        with open(script, "rb") as file:  # noqa: PTH123
            ast.parse(file.read(), script)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        return f"{script} does not parse: {' '.join(traceback.format_exception_only(type(problem), problem)).strip()}"
    return None


def test_problem(path: str) -> str | None:
    """Run the tests in a file or folder and return what failed, None if all passed."""
    sys.path.insert(0, os.getcwd())  # noqa: PTH109
    suite = unittest.TestSuite()
    problems: list[str] = []
    for file in files_of(path):
        try:
            suite.addTests(tests_in(load(file)))
        except BaseException:  # a test file may raise anything, `SystemExit` too
            problems.append(f"{file} cannot be loaded:\n{described()}")
    if problems:
        return "\n\n".join(problems)
    result = unittest.TestResult()
    result.buffer = True
    suite.run(result)
    failed = [*result.errors, *result.failures]
    if failed or result.unexpectedSuccesses:
        shown = [f"FAILED {name_of(test)}\n{text.strip()}" for test, text in failed[:_MOST_SHOWN]]
        shown += [f"FAILED {name_of(test)}: it passed, and is expected to fail" for test in result.unexpectedSuccesses]
        count = len(failed) + len(result.unexpectedSuccesses)
        return "\n\n".join([f"{count} of {result.testsRun} tests failed", *shown])
    if result.testsRun - len(result.skipped) <= 0:
        return "every test was skipped" if result.skipped else f"{path} has no tests"
    return None


def described() -> str:
    """Return the present error with its traceback, without the frames of this file."""
    kind, raised, trace = sys.exc_info()
    while trace is not None and ("__unittest" in trace.tb_frame.f_globals or is_importer(trace)):
        trace = trace.tb_next
    return "".join(traceback.format_exception(kind, raised, trace)).strip()


def is_importer(trace: TracebackType) -> bool:
    """Return whether a frame is of the import system."""
    return trace.tb_frame.f_code.co_filename.startswith("<frozen importlib")


def files_of(path: str) -> list[str]:
    """Return the test files at a path, sorted."""
    if os.path.isfile(path):  # noqa: PTH113
        return [path]
    found: list[str] = []
    for folder, _, names in os.walk(path):
        found += [f"{folder}/{name}" for name in names if is_test_file(name)]
    return sorted(found)


def is_test_file(name: str) -> bool:
    """Return whether a file of a folder has tests."""
    return name.endswith(".py") and (name.startswith("test") or name.endswith("_test.py"))


def load(file: str) -> ModuleType:
    """Import a test file, which may import modules beside it."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(file)))  # noqa: PTH100, PTH120
    name = os.path.splitext(file)[0].replace("/", ".")  # noqa: PTH122
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def tests_in(module: ModuleType) -> list[unittest.TestSuite | unittest.TestCase]:
    """Return the tests of a module as `unittest` cases, in the order in which they are written."""
    found: list[unittest.TestSuite | unittest.TestCase] = []
    for name, value in list(vars(module).items()):
        if getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(value) and issubclass(value, unittest.TestCase):
            found.append(unittest.defaultTestLoader.loadTestsFromTestCase(value))
        elif inspect.isclass(value) and name.startswith("Test"):
            methods = [each for each in vars(value) if each.startswith("test") and callable(getattr(value, each))]
            found += [function_test(getattr(value(), each), f"{name}.{each}") for each in methods]
        elif inspect.isfunction(value) and name.startswith("test"):
            found.append(function_test(value, name))
    return found


def function_test(function: Callable[[], Any], name: str) -> unittest.TestCase:
    """Return a test that calls a function without arguments."""
    needed = [
        each.name
        for each in inspect.signature(function).parameters.values()
        if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    if needed:
        raise TypeError(f"{name} needs arguments: {', '.join(needed)}; a `command` such as pytest has them")

    def call() -> None:
        result = function()
        if inspect.iscoroutine(result):
            asyncio.run(result)

    return unittest.FunctionTestCase(call, description=name)


def name_of(test: unittest.TestCase) -> str:
    """Return the name of a test."""
    return (isinstance(test, unittest.FunctionTestCase) and test.shortDescription()) or test.id()


if __name__ == "__main__":
    sys.exit(main())
