"""What tells one metric's code from another's, for the name of a run."""

from __future__ import annotations

from pathlib import Path

from skillc import user_code
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
    """Sha256 of the source file of a metric, and of the files in the program's folder that it imports."""
    return user_code.source_digest(name, load_function(name, root), root)
