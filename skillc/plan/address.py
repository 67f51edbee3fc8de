"""Addresses as they may be shown and named: without user, password, and what stands behind `?`."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

from skillc.plan.schema import Plan


def shown_address(url: str) -> str:
    """The address without its secrets; one that holds none stays as it was written."""
    if not any(sign in url for sign in "@?#"):
        return url
    parts = urlsplit(url if "://" in url else f"//{url}")
    bare = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    return bare if "://" in url else bare.removeprefix("//")


def without_secrets(plan: Plan) -> Plan:
    """The plan with the addresses of its models as they may be shown."""
    models = {
        role: model if model.base_url is None else model.model_copy(update={"base_url": shown_address(model.base_url)})
        for role, model in plan.models.items()
    }
    return plan.model_copy(update={"models": models})
