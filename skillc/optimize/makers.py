"""Which maker of candidates has a step: drafts of whole sections, or screened edits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Literal

from skillc.document.skill import digest
from skillc.optimize.contrast import Measured
from skillc.optimize.engine import Engine, State
from skillc.optimize.failures import is_failure
from skillc.optimize.rewrite import written_sections

Maker = Literal["draft", "edits"]

# From this share of failures on, a skill is far enough from its ceiling for a draft.
FAR = Fraction(1, 4)


def maker_of(engine: Engine, state: State, measured: Sequence[Measured]) -> Maker:
    """The maker that lost fewer steps since it last won one.

    Of equals it is `draft` where the open sections hold no rule, or where at least a quarter of the batch fails; there
    is much to write at once then. Else it is `edits`. It is always `edits` with `drafts = 0`, and where no section is
    trainable.

    Args:
        engine: the surroundings.
        state: the loop's.
        measured: the step's batch under the incumbent.
    """
    sections = written_sections(engine, state.incumbent)
    if not (engine.plan.optimize.drafts and sections):
        return "edits"
    drafts, edits = state.lost.get("draft", 0), state.lost.get("edits", 0)
    if drafts != edits:
        return "draft" if drafts < edits else "edits"
    if not any(section.rules for section in state.incumbent.sections if section.name in sections):
        return "draft"
    failed = [is_failure(engine.plan, outcome) for _, outcome in measured]
    return "draft" if failed.count(True) >= FAR * max(1, len(failed)) else "edits"


def with_maker(before: State, after: State, maker: Maker) -> State:
    """The state with what a step was for its maker: won where it changed the incumbent, else lost."""
    won = digest(before.incumbent) != digest(after.incumbent)
    return replace(after, lost={**after.lost, maker: 0 if won else before.lost.get(maker, 0) + 1})
