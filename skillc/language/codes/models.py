"""Codes SK6xx: models and providers."""

from __future__ import annotations

from skillc.language.codes.code import Code

CODES: tuple[Code, ...] = ()
