"""How attempts that failed are tried again."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Retries:
    """Times in seconds. The jitter spreads attempts and decides nothing.

    Attributes:
        attempts: how often one call is tried where attempts fail otherwise than by a refusal.
        first: the first backoff, before the jitter.
        most: the longest backoff.
        patience: how long, in pauses put together, an endpoint may let nothing through before its calls give up; with 0
            a refusal uses up an attempt as any other failure does.
        refusals: how often one call may be refused while its endpoint lets others through.
    """

    attempts: int = 6
    first: float = 0.5
    most: float = 60.0
    patience: float = 600.0
    refusals: int = 24

    def delay(self, attempt: int, asked: float | None) -> float:
        """Seconds before the attempt after number `attempt`, counted from 0: what the server asks, else backoff."""
        if asked is not None:
            return float(asked + random.uniform(0, min(self.first, 0.1 * asked)))
        return random.uniform(0.5, 1.0) * min(self.most, self.first * 2.0 ** min(attempt, 64))
