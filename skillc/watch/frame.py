"""What is known of a run at one moment, for the views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal

from skillc.dataclass import dataclass
from skillc.optimize.host import CandidateProgress
from skillc.review.curve import Curve
from skillc.review.run_view import RunView
from skillc.run.json_lines import status_after
from skillc.run.progress import Status
from skillc.run.recording import Event
from skillc.run.time_left import RunUsage

State = Literal["running", "finished", "ended early", "stopped", "replay"]
STATE_STYLES: Mapping[State, str] = {
    "running": "green",
    "finished": "cyan",
    "ended early": "yellow",
    "stopped": "yellow",
    "replay": "magenta",
}
_MOST_NOTES = 20


@dataclass(frozen=True, slots=True)
class Evidence:
    """The first and the last evidence on the candidates of a decision, before it was made."""

    first: tuple[CandidateProgress, ...] = ()
    last: tuple[CandidateProgress, ...] = ()


@dataclass(frozen=True, slots=True)
class Live:
    """What a run has reported beside its decisions.

    Attributes:
        status: the last reports.
        roles: charged usage by role.
        in_flight: calls in flight by role.
        left: estimated seconds left.
        notes: the last ones.
        evidence: by the number of the decision.
        lines: decisions, as in the history.
        ended: whether the process ended the run itself.
        epochs: the cap.
    """

    status: Status = field(default_factory=Status)
    roles: Mapping[str, RunUsage] = field(default_factory=dict)
    total: RunUsage | None = None
    in_flight: Mapping[str, int] = field(default_factory=dict)
    left: float | None = None
    notes: tuple[str, ...] = ()
    evidence: Mapping[int, Evidence] = field(default_factory=dict)
    lines: tuple[Mapping[str, Any], ...] = ()
    ended: bool = False
    epochs: int | None = None

    def after(self, events: Sequence[Event]) -> Live:
        """Return the state after further events."""
        found = self
        for event in events:
            found = found._after(event)
        return found

    def _after(self, event: Event) -> Live:
        moved = replace(self, status=status_after(self.status, event))
        match event["event"]:
            case "start":
                caps = event.get("caps")
                return Live(epochs=caps.get("epochs") if isinstance(caps, dict) else None)
            case "progress":
                left = event.get("seconds_left")
                return replace(
                    moved,
                    roles={name: _usage(each) for name, each in _object(event.get("roles")).items()},
                    total=_usage(event.get("charged")),
                    in_flight={name: int(count) for name, count in _object(event.get("in_flight")).items()},
                    left=float(left) if isinstance(left, int | float) else None,
                )
            case "note":
                return replace(moved, notes=(*self.notes, str(event.get("message")))[-_MOST_NOTES:])
            case "decision" if isinstance(event.get("decision"), int):
                # The candidates of a pool are decided together.
                evidence = {**self.evidence, event["decision"]: Evidence(self.status.first_seen, self.status.seen)}
                line = {name: value for name, value in event.items() if name not in ("event", "at")}
                return replace(moved, evidence=evidence, lines=(*self.lines, line))
            case "completed":
                return replace(moved, lines=tuple(_completed(line, event) for line in self.lines))
            case "end":
                return replace(moved, ended=True, in_flight={})
        return moved


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _usage(value: object) -> RunUsage:
    found = _object(value)
    return RunUsage(int(found.get("calls") or 0), int(found.get("tokens") or 0), found.get("cost_nano"))


def _completed(line: Mapping[str, Any], event: Event) -> Mapping[str, Any]:
    return {**line, "completed": event.get("goal")} if line.get("decision") == event.get("decision") else line


@dataclass(frozen=True, slots=True)
class Frame:
    """A run at one moment.

    Attributes:
        view: the run, with all decisions so far.
        silent: seconds since the last report; None without reports.
    """

    view: RunView = field(repr=False)
    curve: Curve = field(repr=False)
    live: Live = field(repr=False)
    state: State
    silent: float | None = None

    @property
    def usage(self) -> RunUsage | None:
        """What was charged so far; None if that is not known."""
        if self.live.total is not None and (self.state in ("running", "replay") or self.view.spent is None):
            return self.live.total
        spent = self.view.spent
        if spent is None:
            return None
        cost = None if any(each.cost is None for each in spent) else sum(each.cost or 0 for each in spent)
        return RunUsage(sum(e.calls for e in spent), sum(e.prompt + e.completion for e in spent), cost)

    @property
    def roles(self) -> Mapping[str, RunUsage]:
        """The same by role."""
        if self.live.roles and (self.state in ("running", "replay") or self.view.spent is None):
            return self.live.roles
        found: dict[str, RunUsage] = {}
        for each in self.view.spent or ():
            before = found.get(each.role, RunUsage())
            cost = None if each.cost is None or before.cost is None else before.cost + each.cost
            found[each.role] = RunUsage(before.calls + each.calls, before.tokens + each.prompt + each.completion, cost)
        return found
