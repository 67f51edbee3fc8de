"""The locks of a night: scores and models in that of the current skill, and the verdict in that of a challenger."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from skillc.artifact_paths import ArtifactPaths
from skillc.data.split import split_digest
from skillc.evaluate.measuring import is_same
from skillc.evolve.ledger import Json
from skillc.evolve.spending import Challenge
from skillc.outcomes import MICRO, Example
from skillc.plan.lock import ArmLock, Lock, LookLock, TestLock, add_look, read_lock, write_lock
from skillc.plan.models import TARGET, judges
from skillc.plan.schema import Plan
from skillc.stats.error_rates import ErrorRates


def locked_score(lock: Lock | None) -> tuple[Fraction, int] | None:
    """Return the lock's mean on test, else on validation, and the examples behind it."""
    for split in (lock.test, lock.validation) if lock is not None else ():
        if split.best.mean is not None and split.best.n:
            return Fraction(split.best.mean), split.best.n
    return None


def locked_rates(lock: Lock | None) -> ErrorRates | None:
    """Return the error rates by which the scores of a lock are corrected; None if its goal was no noisy signal."""
    signal = lock.signal if lock is not None else None
    if signal is None:
        return None
    yes, no = Fraction(signal.sensitivity), Fraction(signal.specificity)
    return ErrorRates(yes, no, signal.positives, signal.negatives)


def changed_models(plan: Plan, lock: Lock | None) -> list[str]:
    """Return the models of target and judges that are others than those of the lock, each with both names."""
    if lock is None:
        return []
    found = []
    for role in (TARGET, *judges(plan)):
        now, then = plan.models.get(role), lock.models.get(role)
        if now is not None and then is not None and not is_same(now, then):
            what = "other parameters" if now.model == then.model else f"`{then.model}` then, `{now.model}` now"
            found.append(f"{role}: {what}")
    return found


def write_verdict(
    paths: ArtifactPaths,
    before: Lock | None,
    judged: Challenge,
    looks: Sequence[Json],
    test: Sequence[Example],
) -> None:
    """Write the verdict of the challenge into the lock of the challenger, with this look at the test rows.

    Its level is two-sided, as that of a compile: twice the share. The p-value is that of the e-value.
    """
    lock = read_lock(paths.lock)
    pairs = sum(each["pairs"] for each in looks)
    sums = [sum(each["sums"][i] for each in looks if each["pairs"]) for i in (0, 1)]
    initial, best = (ArmLock(mean=Fraction(total, pairs * MICRO), n=pairs) for total in sums)
    assert judged.gain is not None and judged.interval is not None
    seen = LookLock(run=lock.run, initial=lock.skill.initial, best=lock.skill.best, test=split_digest(test))
    every, number = add_look(before.looks if before is not None else (), seen)
    low, high = (Fraction(end).limit_denominator(MICRO) for end in judged.interval)
    tested = TestLock(
        initial=initial,
        best=best,
        gain=Fraction(judged.gain).limit_denominator(MICRO),
        interval=(low, high),
        p=Fraction(min(1.0, 2 / judged.evidence)).limit_denominator(MICRO**2),
        n=pairs,
        groups=judged.rows,
        look=number,
        alpha=Fraction(2 * judged.share).limit_denominator(MICRO**2),
    )
    write_lock(
        paths.lock, lock.model_copy(update={"verdict": "improved", "reason": "", "test": tested, "looks": every})
    )
