"""Caps, and the mechanisms of the loop."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from skillc.plan.schema import OptimizePlan
from skillc.text import listed
from skillc.versions.change import Bearing, Change, Place
from skillc.versions.compare.values import fields_that_differ, share, shown
from skillc.versions.version import Version

_UNITS = {"cost": "$", "time": "s", "patience": "steps"}


def budget_changes(old: Version, new: Version) -> Iterator[Change]:
    """What may be spent."""
    for name, before, after in fields_that_differ(old.plan.budget, new.plan.budget):
        yield _cap(name, before, after)


def _cap(name: str, before: object, after: object) -> Change:
    place = Place("budget", None, name if after is not None else None)
    if name == "min_gain":
        one, other = Fraction(str(before)), Fraction(str(after))
        message = (
            f"an accept may add less and still put patience off: `min_gain` was {share(one)} and is {share(other)}"
        )
        return _ruled(name, share(one), share(other), raised=other < one, message=message, place=place)
    was, is_ = (_shown(name, value) for value in (before, after))
    raised = before is not None and (after is None or Fraction(str(after)) > Fraction(str(before)))
    message = (
        f"the budget's `{name}` was {was} and is {is_}" if after is not None else f"the budget caps `{name}` no more"
    )
    return _ruled(name, was, is_, raised=raised, message=message, place=place)


def _shown(name: str, value: object) -> str:
    return "no cap" if value is None else shown(value, _UNITS.get(name, ""))


def _ruled(name: str, before: str, after: str, *, raised: bool, message: str, place: Place) -> Change:
    bearing: Bearing = "looser" if raised else "stricter"
    rule = "budget-raised" if raised else None
    return Change("budget", name, before, after, bearing, rule, message, place=place)


def optimize_changes(old: Version, new: Version) -> Iterator[Change]:
    """The loop. Only what decides with less, or sees more, is of `breaking`'s business."""
    before, after = old.plan.optimize, new.plan.optimize
    for name, one, other in fields_that_differ(before, after):
        bearing, rule, message = _weaker(name, before, after)
        place = Place("optimize", None, name)
        yield Change("optimize", name, shown(one), shown(other), bearing, rule, message, place=place)
    if old.plan.language != new.plan.language:
        yield Change("optimize", "language", shown(old.plan.language), shown(new.plan.language))


def _weaker(name: str, old: OptimizePlan, new: OptimizePlan) -> tuple[Bearing, str | None, str]:
    if name == "accept":
        if new.accept == "always":
            return "looser", "accept-always", "every candidate is accepted now, whatever the gates say"
        return "stricter", None, ""
    if name == "samples":
        if new.samples < old.samples:
            message = f"gates decide on {new.samples} rollouts of an example where there were {old.samples}"
            return "looser", "samples-lowered", message
        return "stricter", None, ""
    if name == "sees":
        more = [each for each in new.sees if each not in old.sees]
        if more:
            return (
                "looser",
                "sees-widened",
                f"the optimizer may look at {listed(more, 'and')} now",
            )
        return "stricter", None, ""
    return "", None, ""
