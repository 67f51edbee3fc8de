"""skillc: a compiler for agent skills."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["__version__", "load"]

if TYPE_CHECKING:
    from skillc.loading import load


def __getattr__(name: str) -> Any:
    """`skillc.load` brings DSPy along, so it is imported when it is asked for."""
    if name == "load":
        from skillc.loading import load

        return load
    raise AttributeError(f"module `skillc` has no attribute `{name}`")
