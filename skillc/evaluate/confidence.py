"""The certainty of an evaluation, in the wording that every view uses."""

from __future__ import annotations

from fractions import Fraction

from skillc.evaluate.run import Evaluation
from skillc.review.confidence import noise_words, smallest_words


def confidence_of(found: Evaluation) -> tuple[str, ...]:
    """Return the smallest detectable gain of the pairs on test, and the noise floor that the compile measured."""
    lines, goal, lock = list[str](), found.job.plan.goal, found.job.arms.lock
    reference = found.job.arms.reference
    pairs = [(model, gain) for model in found.models for gain in model.gains if gain.verdict.detectable is not None]
    for model, gain in pairs if found.job.split == "test" else ():
        named = f" of {gain.arm.label} against {reference.label}" if len(pairs) > 1 and reference is not None else ""
        named += f" with {model.label}" if len(found.models) > 1 else ""
        assert gain.verdict.detectable is not None
        lines.append(smallest_words(Fraction(gain.verdict.detectable), goal) + named)
    if lock is not None:
        lines.append(noise_words(lock, goal))
    return tuple(lines)
