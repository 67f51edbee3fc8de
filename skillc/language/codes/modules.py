"""Codes SK1xx: modules and imports."""

from __future__ import annotations

from skillc.language.codes.code import Code

CODES: tuple[Code, ...] = ()
