"""Errors in the bodies of responses, in the forms that providers use."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from skillc.models.failures import WireFailure
from skillc.text import shown

_ERRORS = frozenset(str(status) for status in range(400, 600))
_TAG = re.compile(r"<(?:script|style).*?</(?:script|style)>|<[^>]*>", re.DOTALL | re.IGNORECASE)


class ProviderError(NamedTuple):
    """An error as the provider describes it; `code` is empty without one."""

    message: str
    code: str


def failure_in(status: int, headers: Mapping[str, str], body: bytes, name: str = "") -> WireFailure:
    """Return the failure of a response that is not a reply; `name` is that of litellm's exception."""
    found = error_in(body)
    if status < 400:
        inner = int(found.code) if found is not None and found.code in _ERRORS else None
        if found is None or inner is None:
            what = f"an error: {found.message}" if found else excerpt(body)
            return WireFailure("malformed", f"the response is not a reply in the provider's format: {what}", name=name)
        return WireFailure("refused", found.message, inner, code=found.code, name=name)
    message, code = found or (excerpt(body), "")
    return WireFailure("refused", message or name or "no reason is given", status, headers, code, name)


def error_in(body: bytes) -> ProviderError | None:
    """Find the error in a body, in any form that providers use."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    found = found[0] if isinstance(found, list) and found else found
    if not isinstance(found, dict):
        return None
    error = found.get("error", found.get("errors"))
    error = error[0] if isinstance(error, list) and error else error
    inner = error if isinstance(error, dict) else found
    code = next((str(inner[name]) for name in ("code", "status", "type") if inner.get(name) not in (None, "")), "")
    message = (
        error
        if isinstance(error, str)
        else next((inner[name] for name in ("message", "detail", "msg") if inner.get(name)), "")
    )
    if not message and not isinstance(error, dict):
        return None
    return ProviderError(message if isinstance(message, str) else json.dumps(message), code)


def excerpt(body: bytes) -> str:
    """Return the beginning of a body as one line, without HTML tags."""
    text = _TAG.sub(" ", body[:4096].decode("utf-8", "replace")).strip()
    return shown(text, 120) if text else "nothing"
