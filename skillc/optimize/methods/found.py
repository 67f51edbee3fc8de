"""What a method hands to the gates."""

from __future__ import annotations

from dataclasses import dataclass

from skillc.document.skill import Document


@dataclass(frozen=True, slots=True)
class Found:
    """The end of a method.

    Attributes:
        document: its result; the initial skill where it found nothing better.
        stopped: why it ended: `method` by itself, else a cap or a wish as in `Trained`, or `failed`.
        problem: why its result is no skill of this program; then there is nothing to decide.
        rollouts: that it made, those known before not counted.
        questions: to the optimizer model.
        tried: different skills that it measured.
    """

    document: Document
    stopped: str = "method"
    problem: str | None = None
    rollouts: int = 0
    questions: int = 0
    tried: int = 0
