"""A conversation with the target that may become longer than the model takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from skillc.json_values import JsonObject
from skillc.models.dspy_lm import ask
from skillc.models.failures import find_failure, is_too_long
from skillc.tasks.kind import Site

# Messages before the first round, and of one round.
_FIRST, _A_ROUND = 2, 2


async def ask_within(site: Site, messages: list[JsonObject]) -> str:
    """Return the next reply; rounds that no longer fit the model are removed from the messages, the oldest first."""
    while True:
        try:
            return await ask(site.client, site.role, cast(Sequence[Mapping[str, Any]], messages))
        except Exception as raised:
            failure = find_failure(raised)
            if failure is None or not is_too_long(failure) or len(messages) <= _FIRST + _A_ROUND:
                raise
            del messages[_FIRST : _FIRST + _A_ROUND]
