"""The canonical form of a program: one, without options."""

from __future__ import annotations

from skillc.syntax.formatting.format import Formatted, format_source

__all__ = ["Formatted", "format_source"]
