"""A recorded run played again, decision by decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from skillc.dataclass import dataclass
from skillc.items.record import RunItems
from skillc.review.curve import Curve, curve_of
from skillc.review.run_view import RunView
from skillc.run.recording import Event
from skillc.watch.frame import Frame, Live

# Events at which a replay stops for a moment.
_SHOWN = frozenset({"evidence", "decision", "completed"})


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of a replay: so many decisions, and what the run had reported by then."""

    decisions: int
    live: Live


def moments_of(view: RunView, events: Sequence[Event]) -> list[Moment]:
    """Return the moments of a run: before the first decision, each wave of evidence, and after each decision.

    Without recorded events, or with those of another session, there is one for each decision.
    """
    numbers = {line.get("decision"): i for i, line in enumerate(view.lines, 1)}
    moments, live, done = [Moment(0, Live())], Live(), 0
    for event in events:
        live = live.after([event])
        if event["event"] == "decision":
            done = max(done, numbers.get(event.get("decision"), done))
        if event["event"] in _SHOWN:
            moments.append(Moment(done, live))
        elif event["event"] in ("progress", "stage") and moments[-1].decisions == done:
            # The spend so far belongs to the moment that is shown.
            moments[-1] = Moment(done, _with_spend(moments[-1].live, live))
    if done == len(view.decisions):
        return moments
    return [Moment(i, Live()) for i in range(len(view.decisions) + 1)]


def _with_spend(shown: Live, later: Live) -> Live:
    return replace(shown, roles=later.roles, total=later.total)


def frame_at(view: RunView, curve: Curve, moment: Moment, *, last: bool) -> Frame:
    """Return the frame of a moment; the last one has the final test."""
    if last:
        return Frame(view, curve, moment.live, "replay")
    count = moment.decisions
    decisions = view.decisions[:count]
    best = next((each.candidate for each in reversed(decisions) if each.accepted), view.initial)
    items = _items_at(view.items, count, best) if view.items is not None else None
    shown = replace(
        view,
        lock=None,
        decisions=decisions,
        lines=view.lines[:count],
        best=best,
        items=items,
        spent=None,
        seconds=None,
    )
    return Frame(shown, Curve(curve.points[: count + 1], (None, None)), moment.live, "replay")


def _items_at(items: RunItems, count: int, best: str) -> RunItems:
    """Return the items over the versions that had been accepted after so many decisions."""
    kept = [i for i, version in enumerate(items.versions) if version.decision <= count]
    # A last version without a decision is the best skill of a run whose history is not known.
    indices = {old: new for new, old in enumerate(kept)}
    epochs = [(number, tuple(indices[i] for i in used if i in indices)) for number, used in items.epochs]
    versions = tuple(items.versions[i] for i in kept)
    return replace(
        items,
        versions=versions,
        epochs=tuple((number, used) for number, used in epochs if used),
        compiled=next((i for i, version in enumerate(versions) if version.digest == best), 0),
        items=tuple(
            replace(item, cells={name: tuple(scores[i] for i in kept) for name, scores in item.cells.items()})
            for item in items.items
            if item.split != "test"
        ),
    )


class Replay:
    """Plays the moments of a run at a speed.

    Args:
        view: the run.
        events: that it recorded.
        speed: decisions a second.
    """

    def __init__(self, view: RunView, events: Sequence[Event], speed: float) -> None:
        self.view, self.speed = view, speed
        self.moments = moments_of(view, events)
        self.at = 0
        self.paused = False
        self._curve = curve_of(view)
        self._due: float | None = None
        self._shown = -1

    @property
    def title(self) -> str:
        """Where the replay is."""
        state = "paused" if self.paused else f"{self.speed:g} a second"
        return f"decision {self.moments[self.at].decisions} of {len(self.view.decisions)}, {state}"

    @property
    def is_over(self) -> bool:
        """Whether the last moment is shown."""
        return self.at == len(self.moments) - 1

    def poll(self, now: float) -> tuple[Frame, bool]:
        """Return the frame at a time of a monotonic clock, and whether it differs from the last one."""
        if self._due is None:
            self._due = now + self._wait()
        while not (self.paused or self.is_over) and now >= self._due:
            self.at += 1
            self._due += self._wait()
        changed = self._shown != self.at
        self._shown = self.at
        return self.frame(), changed

    def frame(self) -> Frame:
        """Return the current frame."""
        return frame_at(self.view, self._curve, self.moments[self.at], last=self.is_over)

    def move(self, decisions: int) -> None:
        """Go some decisions forward or back, and pause."""
        count = len(self.view.decisions)
        wanted = min(count, max(0, self.moments[self.at].decisions + decisions))
        ends = [i for i, moment in enumerate(self.moments) if moment.decisions == wanted]
        # The first moment after the decision; of the last decision the end of the run.
        self.at = (ends[-1] if wanted == count else ends[0]) if ends else self.at
        self.paused, self._due = True, None

    def pause(self) -> None:
        """Pause, or continue; from the end, begin again."""
        if self.is_over:
            self.at, self.paused = 0, False
        else:
            self.paused = not self.paused
        self._due = None

    def faster(self, factor: float) -> None:
        """Multiply the speed."""
        self.speed, self._due = min(64.0, max(1 / 16, self.speed * factor)), None

    def _wait(self) -> float:
        """Return the seconds of the current moment: those of one decision share its time."""
        decisions = self.moments[self.at].decisions
        same = sum(moment.decisions == decisions for moment in self.moments)
        return 1 / (self.speed * same)
