"""skillc: a compiler for agent skills."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "Reply",
    "RolloutFailed",
    "RolloutKind",
    "SkillOptimizer",
    "Trajectory",
    "__version__",
    "backend",
    "load",
    "rollout_kind",
]

if TYPE_CHECKING:
    from skillc.artifacts.loading import load
    from skillc.models.backends.function import Reply, backend
    from skillc.tasks.kind import RolloutFailed, RolloutKind, rollout_kind
    from skillc.teleprompter import SkillOptimizer
    from skillc.trajectories.trajectory import Trajectory


_MODULES = {
    "load": "skillc.artifacts.loading",
    "SkillOptimizer": "skillc.teleprompter",
    "backend": "skillc.models.backends.function",
    "Reply": "skillc.models.backends.function",
    "RolloutFailed": "skillc.tasks.kind",
    "RolloutKind": "skillc.tasks.kind",
    "rollout_kind": "skillc.tasks.kind",
    "Trajectory": "skillc.trajectories.trajectory",
}


def __getattr__(name: str) -> Any:
    """Import names that need DSPy when they are used."""
    if name not in _MODULES:
        raise AttributeError(f"module `skillc` has no attribute `{name}`")
    return getattr(importlib.import_module(_MODULES[name]), name)
