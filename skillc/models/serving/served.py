"""What a server tells while a run uses it, and what is said of it at the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from pydantic import JsonValue

from skillc.models.serving.probe import PrefixCache


class Watcher(Protocol):
    """Whom a server tells what it does. Called from any thread."""

    def note(self, message: str) -> None:
        """Something that the user should know."""

    def waiting(self, text: str | None) -> None:
        """What is waited for just now; None when that is over."""


class Silent:
    """Tells nobody."""

    def note(self, message: str) -> None:
        """Nothing."""

    def waiting(self, text: str | None) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True)
class Served:
    """What is to be said of a server at the end of a run.

    Attributes:
        roles: whose models it served.
        source: the folder or the name on the hub, as written.
        how: whether skillc `started` it, `reused` one that ran on, or `found` one at the declared address.
        seconds: that the last start took; None where there was none.
        restarts: how often it was started again.
        cache: the prefix cache over the run; None where it counts nothing.
    """

    roles: tuple[str, ...]
    source: str
    how: Literal["started", "reused", "found"]
    seconds: float | None
    restarts: int
    cache: PrefixCache | None

    def to_json(self) -> dict[str, JsonValue]:
        """By name; tokens of prompts for the prefix cache."""
        cache = self.cache
        return {
            "roles": list(self.roles),
            "model": self.source,
            "how": self.how,
            "start_seconds": None if self.seconds is None else round(self.seconds, 1),
            "restarts": self.restarts,
            "prefix_cache": None if cache is None else {"queries": cache.queries, "hits": cache.hits},
        }

    @property
    def line(self) -> str:
        """One line for people."""
        began = "" if self.seconds is None else f" after {self.seconds:.0f} s"
        again = f", started again {self.restarts} times" if self.restarts else ""
        cache = self.cache
        hits = ""
        if cache is not None and cache.queries:
            share = 100 * cache.hits / cache.queries
            hits = f"; its prefix cache held {share:.0f} % of {cache.queries:,} prompt tokens"
        return f"{self.source} by vLLM, {self.how}{began}{again}{hits}"
