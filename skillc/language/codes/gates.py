"""Codes SK5xx: budgets and gates."""

from __future__ import annotations

from skillc.language.codes.code import Code

CODES: tuple[Code, ...] = ()
