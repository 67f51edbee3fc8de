"""skillc: a compiler for agent skills."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Reply", "SkillOptimizer", "__version__", "backend", "load"]

if TYPE_CHECKING:
    from skillc.artifacts.loading import load
    from skillc.models.backends.function import Reply, backend
    from skillc.teleprompter import SkillOptimizer


def __getattr__(name: str) -> Any:
    """What brings DSPy along is imported when it is asked for."""
    if name == "load":
        from skillc.artifacts.loading import load

        return load
    if name == "SkillOptimizer":
        from skillc.teleprompter import SkillOptimizer

        return SkillOptimizer
    if name == "backend":
        from skillc.models.backends.function import backend

        return backend
    if name == "Reply":
        from skillc.models.backends.function import Reply

        return Reply
    raise AttributeError(f"module `skillc` has no attribute `{name}`")
