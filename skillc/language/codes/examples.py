"""Codes SK430 to SK439, SK520 and SK521: what `check --data` finds in the examples."""

from __future__ import annotations

from skillc.language.codes.code import Code

CODES: tuple[Code, ...] = ()
