"""Codes SK9xx: mistakes of skillc itself."""

from __future__ import annotations

from skillc.language.codes.code import Code

CODES: tuple[Code, ...] = ()
