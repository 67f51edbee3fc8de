"""The setting `sandbox` of a program: `sandbox = docker { image = "python:3.13-slim"; memory = 1 GB }`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from pydantic import JsonValue

from skillc.sandbox.policy import IMAGE, Kind, Limits


@dataclass(frozen=True, slots=True)
class DeclaredSandbox:
    """What a program declares of its sandbox.

    Attributes:
        kind: None is the best that works here.
        image: that of a container.
    """

    kind: Kind | None
    image: str
    limits: Limits


def declared_sandbox(setting: JsonValue, limits: Limits | None = None) -> DeclaredSandbox:
    """Read the checked setting of a plan.

    Args:
        setting: a word, a mapping of the word `kind` and the settings of its block, or None without the setting.
        limits: those that the setting does not name.
    """
    own: Mapping[str, Any] = setting if isinstance(setting, dict) else {"kind": setting}
    limits = limits or Limits()
    disk = int(own.get("disk", limits.disk))
    return DeclaredSandbox(
        kind=cast(Kind | None, own.get("kind")),
        image=str(own.get("image", IMAGE)),
        limits=replace(
            limits,
            time=float(own.get("time", limits.time)),
            memory=int(own.get("memory", limits.memory)),
            processes=int(own.get("processes", limits.processes)),
            # One file may use all of it.
            file_size=disk,
            disk=disk,
        ),
    )
