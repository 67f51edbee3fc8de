"""Checks of the installation, of prices and spending, and of the disk."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from packaging.requirements import Requirement

from skillc import __version__
from skillc.budget.bounds import Bounds
from skillc.budget.call_sizes import call_sizes
from skillc.budget.spend import Spend, price_hint
from skillc.doctor.machine import free_disk
from skillc.doctor.report import Finding
from skillc.frontend import Estimated
from skillc.models.cache.folder import disk_used
from skillc.models.cache.replies import DATABASE
from skillc.models.endpoint import KEY_VARIABLES
from skillc.plan import figures
from skillc.plan.schema import ModelPlan, Plan, PricePlan
from skillc.run.folder import RunFolder
from skillc.text import counted, in_bytes, joined

_INSTALLED = "installed"
_LEAST_PYTHON = (3, 11)
# Extras by the setting of `method` that needs them, with the package that they bring.
_EXTRAS = {"gepa": "gepa", "miprov2": "optuna"}

Version = Callable[[str], str | None]


def installed_version(package: str) -> str | None:
    """Return the version of an installed package, or None. Imports nothing."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def check_installed(plan: Plan | None, find: Version = installed_version) -> Iterator[Finding]:
    """Check Python and the packages; one that only other programs need is a note."""
    yield _python()
    yield Finding(_INSTALLED, "ok", "skillc", __version__)
    for requirement in _requirements():
        if requirement.marker is None:
            yield _package(requirement, find(requirement.name))
    for method, package in _EXTRAS.items():
        yield _extra(method, package, find(package), plan)
    yield _locks()


def _python() -> Finding:
    here = platform.python_version()
    if sys.version_info < _LEAST_PYTHON:
        return Finding(
            _INSTALLED, "missing", "python", f"{here}, and skillc needs 3.11", "install Python 3.11 or later"
        )
    return Finding(_INSTALLED, "ok", "python", f"{here} at {sys.executable}")


def _requirements() -> list[Requirement]:
    try:
        return [Requirement(text) for text in requires("skillc") or ()]
    except PackageNotFoundError:
        return []


def _package(requirement: Requirement, found: str | None) -> Finding:
    name = requirement.name
    if found is None:
        return Finding(_INSTALLED, "missing", name, "not installed", f'pip install "{_bare(requirement)}"')
    if not requirement.specifier.contains(found, prereleases=True):
        detail = f"{found}, and skillc needs {requirement.specifier}"
        return Finding(_INSTALLED, "missing", name, detail, f'pip install "{_bare(requirement)}"')
    return Finding(_INSTALLED, "ok", name, found)


def _bare(requirement: Requirement) -> str:
    return f"{requirement.name}{requirement.specifier}"


def _extra(method: str, package: str, found: str | None, plan: Plan | None) -> Finding:
    if found is not None:
        return Finding(_INSTALLED, "ok", package, f"{found}, for `method = {method}`")
    needed = plan is not None and plan.optimize.method == method
    why = f"not installed, and the program's `method = {method}` needs it"
    return Finding(
        _INSTALLED,
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
    return Finding(_INSTALLED, "ok" if shared else "note", "cache", detail)


def check_keys(environ: Mapping[str, str] = os.environ) -> Finding:
    """Report which provider keys are set in the environment, by the names of their variables."""
    known = [name for name in KEY_VARIABLES.values() if environ.get(name)]
    if known:
        return Finding("models", "ok", "keys", f"set: {', '.join(known)}")
    return Finding("models", "note", "keys", "no provider's key is set; `--offline` and servers of one's own need none")


_COST = "cost"


def check_prices(plan: Plan, prices: Mapping[str, PricePlan | None]) -> Iterator[Finding]:
    """Report the price of each role's model per million tokens, or per call."""
    for model in plan.models.values():
        yield _price(model, prices.get(model.role), capped=plan.budget.cost is not None)


def _price(model: ModelPlan, price: PricePlan | None, *, capped: bool) -> Finding:
    if price is None:
        detail = f"the price of `{model.model}` is not known" + (", and the budget caps the cost" if capped else "")
        return Finding(_COST, "missing" if capped else "note", model.role, detail, price_hint(model))
    rates = []
    if price.input or price.output:
        entry, reply = figures.dollars(price.input), figures.dollars(price.output)
        rates.append(f"{entry} in, {reply} out per million tokens at most")
    if price.call:
        rates.append(f"{figures.dollars(price.call)} a call")
    return Finding(_COST, "ok", model.role, f"`{model.model}`: {joined(rates) or 'free'}")


def check_spend(plan: Plan, estimated: Estimated) -> Iterator[Finding]:
    """Report the estimated cost of one rollout with its judges, and of the whole compile."""
    bounds = estimated.bounds
    one = call_sizes(plan, bounds.sizes, bounds.prices, bounds.steps).rollout.estimate
    calls = counted(one.calls, "call")
    detail = f"{_about(one)}: {calls}, {figures.tokens(one.tokens)} tokens"
    yield Finding(_COST, "ok", "one rollout", detail)
    whole = bounds.estimate
    cap = f"; the budget ends it at {figures.dollars(plan.budget.cost)}" if plan.budget.cost is not None else ""
    detail = f"{_about(whole)}: {whole.calls:,} calls, {figures.tokens(whole.tokens)} tokens{cap}"
    yield Finding(_COST, "ok", "a compile", detail)


def _about(spend: Spend) -> str:
    if spend.cost is None:
        return "at a price that is not known"
    return f"about {figures.dollars(spend.cost)}" if spend.cost else "free"


_DISK = "disk"
# Bytes: what a call leaves beside its text, in the cache and the run folder together (1,155 were measured with replies
# of 20 tokens), and a token's text, which stands in both.
_A_CALL, _A_TOKEN = 1_200, 2 * 5


def check_disk(plan: Plan, home: Path, bounds: Bounds | None) -> Finding:
    """Check the free disk space for what a compile writes into its `.skillc` folder."""
    cache = RunFolder(home, "").cache
    free = free_disk(home)
    if not _writable(home):
        fix = f"chmod u+w {home if home.exists() else home.parent}"
        return Finding(_DISK, "missing", "run folder", f"{home} cannot be written", fix)
    kept = f"; {in_bytes(disk_used(cache))} of replies are kept" if (cache / DATABASE).is_file() else ""
    if free is None or bounds is None:
        return Finding(_DISK, "note", "run folder", f"how much is free in {home} can't be told{kept}")
    need = most_written(plan, bounds)
    told = f"about {in_bytes(need)} for a compile, {in_bytes(free)} are free in {home}{kept}"
    if need > free:
        return Finding(_DISK, "missing", "run folder", told, f"skillc cache prune {home.parent} --older-than 30d")
    return Finding(_DISK, "ok", "run folder", told)


def most_written(plan: Plan, bounds: Bounds) -> int:
    """Return the bytes that a compile writes at most, by the plan's estimate and caps."""
    estimate = bounds.estimate
    calls = min(estimate.calls, plan.budget.calls) if plan.budget.calls is not None else estimate.calls
    return calls * _A_CALL + estimate.reply * _A_TOKEN


def _writable(home: Path) -> bool:
    here = home
    while not here.exists() and here != here.parent:
        here = here.parent
    return os.access(here, os.W_OK)
