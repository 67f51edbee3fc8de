"""Compare two versions of a program: every difference in meaning, one module per part of the program."""

from __future__ import annotations

from skillc.versions.change import GROUPS, Change
from skillc.versions.compare.data import data_changes
from skillc.versions.compare.measures import measure_changes
from skillc.versions.compare.settings import budget_changes, model_changes, optimize_changes
from skillc.versions.compare.task import skill_changes, task_changes
from skillc.versions.version import Version

_PARTS = (
    task_changes,
    skill_changes,
    data_changes,
    measure_changes,
    budget_changes,
    model_changes,
    optimize_changes,
)


def changes_between(old: Version, new: Version) -> tuple[Change, ...]:
    """Return all changes in the order of `GROUPS`. Layout, comments and written-out defaults are no change."""
    found = [change for part in _PARTS for change in part(old, new)]
    return tuple(sorted(found, key=lambda change: GROUPS.index(change.group)))
