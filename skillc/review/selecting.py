"""Find what a user names in a run: a step, an example."""

from __future__ import annotations

import re

from skillc.errors import SkillcError
from skillc.review.decisions import Decision
from skillc.review.run_view import PlacedExample, RunView
from skillc.text import listed

_STEP = re.compile(r"(?:step )?(\d+)(?:/\d+)?")
_DECISION = re.compile(r"(?:#|decision )(\d+)")
_DIGITS = re.compile(r"[0-9a-f]{4,64}")
_NAMED = 6
_FEW = 3


def find_decisions(view: RunView, name: str | None) -> tuple[Decision, ...]:
    """Return the decisions of a step, by default those of the last one.

    Args:
        view: the run.
        name: `3` or `step 3/8`; `#5` or `decision 5`; another place of the log such as `slow update 1`; or the
            beginning of a candidate's digest.

    Raises:
        SkillcError: there is no such step.
    """
    every = view.decisions
    if not every:
        raise SkillcError(f"run `{view.run[:8]}` has no decision yet", hint="the first one comes after the baseline")
    wanted = every[-1].place if name is None else " ".join(name.lower().split())
    step, number = _STEP.fullmatch(wanted), _DECISION.fullmatch(wanted)
    ways = (
        lambda each: each.place.lower() == wanted,
        lambda each: step is not None and re.fullmatch(rf"step {step[1]}(/\d+)?", each.place) is not None,
        lambda each: number is not None and each.number == int(number[1]),
        lambda each: bool(_DIGITS.fullmatch(wanted)) and each.candidate.startswith(wanted),
        # Other methods number their decisions only.
        lambda each: step is not None and "/" not in wanted and each.number == int(step[1]),
    )
    for way in ways:
        found = tuple(each for each in every if way(each))
        if found:
            return found
    places = tuple(dict.fromkeys(each.place for each in every))
    raise SkillcError(
        f"run `{view.run[:8]}` has no step `{name}`",
        hint=f"its steps: {listed(places, most=_NAMED)}; `#2` is a decision by its number",
    )


def find_example(view: RunView, name: str) -> tuple[str, PlacedExample | None]:
    """Return the id of an example and the example, None if the data cannot be read.

    Args:
        view: the run.
        name: the id, the number of its line in the data, `file:line`, or the beginning of the id.

    Raises:
        SkillcError: there is none, or more than one.
    """
    known = view.examples
    if name in known:
        return name, known[name]
    if not known:
        return name, None
    places = view.dataset.places if view.dataset is not None else {}
    file, _, line = name.rpartition(":")
    ways = (
        [each for each, (where, number) in places.items() if line == str(number) and file in ("", where)],
        [each for each in known if each.startswith(name)],
    )
    for found in ways:
        if len(found) == 1:
            return found[0], known[found[0]]
        if found:
            hint = f"write more of the id: {listed(found, most=_NAMED)}"
            raise SkillcError(f"`{name}` names {len(found)} examples", hint=hint)
    near = [each for each in known if name in each][:_FEW] or list(known)[:_FEW]
    raise SkillcError(
        f"the data of `{view.program.name}` has no example `{name}`",
        hint=f"write an id such as {listed(near, 'or')}, or the number of its line in the data",
    )
