"""What the items of a run say against its figures: gains that vanish, judges that do not track the truth."""

from __future__ import annotations

from skillc.dataclass import dataclass
from skillc.items.gains import Gains, gains_of
from skillc.items.record import RunItems
from skillc.items.report import judging_lines, shown_metrics, vanishing_lines


@dataclass(frozen=True, slots=True)
class Remarks:
    """Lines about the items.

    Attributes:
        gains: of the compiled skill in the goal and in each metric beside it that is a truth.
        warnings: what puts the result in doubt.
        notes: other lines.
    """

    gains: tuple[Gains, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def remarks_on(items: RunItems | None) -> Remarks:
    """Return the remarks on the items of a run; none without items."""
    if items is None:
        return Remarks()
    gains = tuple(gains_of(items, name) for name in shown_metrics(items)) if items.compiled else ()
    lines = [*vanishing_lines([gains] if gains else []), *judging_lines(items)]
    texts = [(" ".join(line.plain.split()).removeprefix("warning: "), bool(line.style)) for line in lines]
    return Remarks(
        gains, tuple(text for text, doubt in texts if doubt), tuple(text for text, doubt in texts if not doubt)
    )
