"""Codes SK3xx: types, units and ranges."""

from __future__ import annotations

from skillc.language.codes.code import Code

CODES: tuple[Code, ...] = ()
