"""What is installed: Python, skillc, the packages that it needs, and those that only some programs need."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement

from skillc import __version__
from skillc.doctor.finding import Finding
from skillc.models.endpoint import KEYS
from skillc.plan.schema import Plan

_GROUP = "installed"
_LEAST_PYTHON = (3, 11)
# Extras by the setting of `method` that needs them, with the package that they bring.
_EXTRAS = {"gepa": "gepa", "miprov2": "optuna"}

Version = Callable[[str], str | None]


def installed_version(package: str) -> str | None:
    """The version of a package in this interpreter, None where it is not there. Imports nothing."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def check_installed(plan: Plan | None, find: Version = installed_version) -> Iterator[Finding]:
    """What is installed; a package that `plan` needs is missing where it is not, and else only noted."""
    yield _python()
    yield Finding(_GROUP, "ok", "skillc", __version__)
    for requirement in _requirements():
        if requirement.marker is None:
            yield _package(requirement, find(requirement.name))
    for method, package in _EXTRAS.items():
        yield _extra(method, package, find(package), plan)
    yield _locks()


def _python() -> Finding:
    here = platform.python_version()
    if sys.version_info < _LEAST_PYTHON:
        return Finding(_GROUP, "missing", "python", f"{here}, and skillc needs 3.11", "install Python 3.11 or later")
    return Finding(_GROUP, "ok", "python", f"{here} at {sys.executable}")


def _requirements() -> list[Requirement]:
    try:
        return [Requirement(text) for text in requires("skillc") or ()]
    except PackageNotFoundError:
        return []


def _package(requirement: Requirement, found: str | None) -> Finding:
    name = requirement.name
    if found is None:
        return Finding(_GROUP, "missing", name, "not installed", f'pip install "{_bare(requirement)}"')
    if not requirement.specifier.contains(found, prereleases=True):
        detail = f"{found}, and skillc needs {requirement.specifier}"
        return Finding(_GROUP, "missing", name, detail, f'pip install "{_bare(requirement)}"')
    return Finding(_GROUP, "ok", name, found)


def _bare(requirement: Requirement) -> str:
    return f"{requirement.name}{requirement.specifier}"


def _extra(method: str, package: str, found: str | None, plan: Plan | None) -> Finding:
    if found is not None:
        return Finding(_GROUP, "ok", package, f"{found}, for `method = {method}`")
    needed = plan is not None and plan.optimize.method == method
    why = f"not installed, and the program's `method = {method}` needs it"
    return Finding(
        _GROUP,
        "missing" if needed else "note",
        package,
        why if needed else f"not installed; only `method = {method}` needs it",
        f'pip install "skillc[{method}]"',
    )


def _locks() -> Finding:
    shared = sys.platform != "win32"
    detail = f"SQLite {sqlite3.sqlite_version}; one process " + (
        "fetches a reply for all that share a cache" if shared else "does not see what another one is fetching"
    )
    return Finding(_GROUP, "ok" if shared else "note", "cache", detail)


def check_keys(environ: Mapping[str, str] = os.environ) -> Finding:
    """Which keys of providers the environment holds, by the names of their variables alone."""
    known = [name for name in KEYS.values() if environ.get(name)]
    if known:
        return Finding("models", "ok", "keys", f"set: {', '.join(known)}")
    return Finding("models", "note", "keys", "no provider's key is set; `--offline` and servers of one's own need none")
