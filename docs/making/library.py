"""The standard library, as `skillc std` shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skillc.language.library import standard_library


def data() -> Mapping[str, Any]:
    """What the page of the library is made of."""
    return {"modules": standard_library().modules}
