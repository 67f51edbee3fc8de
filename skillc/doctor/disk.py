"""Whether the disk holds what a compile keeps: replies in the cache, outcomes and decisions in the run folder."""

from __future__ import annotations

import os
from pathlib import Path

from skillc.budget.bounds import Bounds
from skillc.doctor.finding import Finding
from skillc.doctor.machine import free_disk
from skillc.models.cache.folder import disk_used
from skillc.models.cache.replies import DATABASE
from skillc.plan.schema import Plan
from skillc.run.folder import RunFolder
from skillc.text import in_bytes

_GROUP = "disk"
# Bytes: what a call leaves beside its text, in the cache and the run folder together (1,155 were measured with replies
# of 20 tokens), and a token's text, which stands in both.
_A_CALL, _A_TOKEN = 1_200, 2 * 5


def check_disk(plan: Plan, home: Path, bounds: Bounds | None) -> Finding:
    """The room for what a compile writes into its `.skillc` folder."""
    cache = RunFolder(home, "").cache
    free = free_disk(home)
    if not _writable(home):
        fix = f"chmod u+w {home if home.exists() else home.parent}"
        return Finding(_GROUP, "missing", "run folder", f"{home} cannot be written", fix)
    kept = f"; {in_bytes(disk_used(cache))} of replies are kept" if (cache / DATABASE).is_file() else ""
    if free is None or bounds is None:
        return Finding(_GROUP, "note", "run folder", f"how much is free in {home} can't be told{kept}")
    need = most_written(plan, bounds)
    told = f"about {in_bytes(need)} for a compile, {in_bytes(free)} are free in {home}{kept}"
    if need > free:
        return Finding(_GROUP, "missing", "run folder", told, f"skillc cache prune {home.parent} --older-than 30d")
    return Finding(_GROUP, "ok", "run folder", told)


def most_written(plan: Plan, bounds: Bounds) -> int:
    """Bytes that a compile writes, by the plan's estimate; the caps end it before."""
    estimate = bounds.estimate
    calls = min(estimate.calls, plan.budget.calls) if plan.budget.calls is not None else estimate.calls
    return calls * _A_CALL + estimate.reply * _A_TOKEN


def _writable(home: Path) -> bool:
    here = home
    while not here.exists() and here != here.parent:
        here = here.parent
    return os.access(here, os.W_OK)
