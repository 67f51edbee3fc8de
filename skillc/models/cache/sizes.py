"""Bytes as people read them."""

from __future__ import annotations

from skillc.text import counted

_STEPS = ("bytes", "KB", "MB", "GB", "TB")


def in_bytes(count: int) -> str:
    """`123 bytes`, `4.5 MB`: thousands, as the language's units are."""
    size, step = float(count), 0
    while size >= 999.95 and step + 1 < len(_STEPS):
        size, step = size / 1000, step + 1
    return f"{size:,.1f} {_STEPS[step]}" if step else counted(count, "byte")
