"""Addresses as they may be shown and named: without user, password, and what looks like a secret behind `?`."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from skillc.plan.schema import Plan

# Of what stands behind `?`, the names that hold a secret.
SECRET_NAME = re.compile(r"key|token|secret|sig|pass|auth|code", re.IGNORECASE)


def shown_address(url: str) -> str:
    """The address without its secrets; one that holds none stays as it was written."""
    if not any(sign in url for sign in "@?#"):
        return url
    try:
        parts = urlsplit(url if "://" in url else f"//{url}")
    except ValueError:
        return "***"
    told = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if not SECRET_NAME.search(pair[0])]
    bare = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, urlencode(told), ""))
    return bare if "://" in url else bare.removeprefix("//")


def without_secrets(plan: Plan) -> Plan:
    """The plan with the addresses of its models as they may be shown."""
    models = {
        role: model if model.base_url is None else model.model_copy(update={"base_url": shown_address(model.base_url)})
        for role, model in plan.models.items()
    }
    return plan.model_copy(update={"models": models})
