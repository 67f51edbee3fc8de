"""Codes SK0xx: the text and its syntax."""

from __future__ import annotations

from skillc.language.codes.code import Code

CODES: tuple[Code, ...] = ()
