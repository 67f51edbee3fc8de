"""A signal of production: whether the customer wrote again, which says something about where the ticket was sent."""

from __future__ import annotations

import hashlib
from typing import Any


def settled(example: dict[str, Any], prediction: dict[str, Any]) -> bool:
    """1 if the customer did not write again: in 92 of 100 cases after the right team, in 15 of 100 after another.

    Real customers are not at hand, so chance stands for them; it is drawn from the ticket and the team.
    """
    right = prediction["team"] == example["gold"]["team"]
    drawn = int(hashlib.sha256(f"{example['id']} {prediction['team']}".encode()).hexdigest(), 16) % 100
    return drawn < (92 if right else 15)
