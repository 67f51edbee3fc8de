"""The progress of a run as JSON, one object a line, for CI and tools (`--json-lines`)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from pydantic import JsonValue

from skillc.gates.draw import ComparisonState, GateState, SideState
from skillc.json_values import objects_in
from skillc.optimize.host import CandidateProgress
from skillc.run.progress import QUIET_FOR, InFlight, Progress, RunFacts, Snapshot, Status

FORMAT_VERSION = 1
_TENTHS = 10


class JsonLines(Progress):
    """Writes an object for each event; `docs/guides/progress.md` describes the fields.

    Args:
        write: receives each line without its line end.
        spent: reads the ledger's snapshot.
        in_flight: reads the calls in flight by role; None leaves them out.
        clock: a monotonic clock in seconds.
    """

    def __init__(
        self,
        write: Callable[[str], None],
        facts: RunFacts,
        *,
        spent: Snapshot,
        in_flight: InFlight | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(facts, spent=spent, in_flight=in_flight, clock=clock)
        self._write = write
        self._tenth = 0
        self._waited = 0.0

    def event(self, name: str, **fields: JsonValue) -> None:
        """Write one event."""
        self._write(json.dumps({"event": name, **fields}, ensure_ascii=False))

    def begin(self, **fields: JsonValue) -> None:
        """Write the first event: the verb and the caps."""
        caps = self.facts.budget
        self.event(
            "start",
            format_version=FORMAT_VERSION,
            **fields,
            caps={
                "epochs": caps.epochs,
                "steps": caps.steps,
                "calls": caps.calls,
                "tokens": caps.tokens,
                "cost_nano": None if caps.cost is None else int(caps.cost * 10**9),
                "seconds": None if caps.time is None else float(caps.time),
            },
        )

    def note(self, message: str) -> None:
        """Write the note."""
        self.event("note", message=message)

    def decided(self, record: Mapping[str, JsonValue]) -> None:
        """Write the decision as it is in the history."""
        self.event("decision", **record)

    def completed(self, record: Mapping[str, JsonValue]) -> None:
        """Write the new incumbent's goal."""
        super().completed(record)
        self.event("completed", decision=record["completed"], goal=_number(record["goal"]))

    def changed(self, what: str) -> None:
        """Write steps, candidates, evidence, stages and waits, and each tenth of a stage."""
        status = self.status
        if what == "step":
            self.event("step", place=status.place, epoch=status.epoch, incumbent=_number(status.incumbent))
        elif what == "candidates":
            self.event("candidates", edits=[list(each) for each in status.edits])
        elif what == "seen":
            candidates: list[JsonValue] = [{**asdict(each), "goal": _number(each.goal)} for each in status.seen]
            self.event("evidence", candidates=candidates)
        elif what == "stage" and status.total:
            self._tenth = 0
            self.event("stage", stage=status.stage, total=status.total)
        elif what == "advance" and status.total:
            self._advanced(status.done * _TENTHS // status.total)
        elif what == "waiting" or (what == "still waiting" and self._clock() - self._waited >= QUIET_FOR):
            self._waited = self._clock()
            self.event("waiting", message=status.waiting)

    def _advanced(self, tenth: int) -> None:
        if tenth <= self._tenth:
            return
        self._tenth = tenth
        self.report_progress()

    def report_progress(self) -> None:
        """Write the progress of the stage, the spending, and the calls in flight."""
        spent, left, status = self.spent(), self.seconds_left(), self.status
        roles: dict[str, JsonValue] = {
            role: {"calls": each.calls, "tokens": each.tokens, "cost_nano": each.cost}
            for role, each in self.spent_by_role().items()
        }
        self.event(
            "progress",
            stage=status.stage,
            done=status.done,
            total=status.total,
            charged={"calls": spent.calls, "tokens": spent.tokens, "cost_nano": spent.cost},
            roles=roles,
            in_flight=dict(self.in_flight()),
            seconds_left=None if left is None else round(left),
        )


def status_after(status: Status, event: Mapping[str, Any]) -> Status:
    """Apply a recorded event to the status of a run; an unknown event leaves it unchanged."""
    match event["event"]:
        case "start":
            return Status()
        case "step":
            return status.at_step(str(event.get("place")), int(event.get("epoch") or 0), event.get("incumbent"))
        case "candidates":
            return status.with_candidates([list(map(str, each)) for each in event.get("edits") or ()])
        case "evidence":
            return status.with_evidence([_candidate(each) for each in objects_in(event.get("candidates"))])
        case "stage":
            return status.in_stage(str(event.get("stage")), int(event.get("total") or 0))
        case "progress":
            done = int(event.get("done") or 0) if event.get("stage") == status.stage else status.done
            return replace(status, done=done)
        case "waiting":
            message = event.get("message")
            return replace(status, waiting=None if message is None else str(message))
        case "completed":
            return status.completed(event.get("goal"))
    return status


def _candidate(value: Mapping[str, Any]) -> CandidateProgress:
    gates = tuple(
        GateState(str(gate.get("name")), str(gate.get("truth")), _comparisons(gate.get("comparisons")))
        for gate in objects_in(value.get("gates"))
    )
    candidate, gains, losses, evaluated, of = (
        int(value.get(name) or 0) for name in ("candidate", "gains", "losses", "evaluated", "of")
    )
    return CandidateProgress(candidate, gains, losses, evaluated, of, value.get("goal"), gates)


def _comparisons(value: Any) -> tuple[ComparisonState, ...]:
    rows: list[Mapping[str, Any]] = [*objects_in(value)]
    return tuple(
        ComparisonState(_side(row["left"]), str(row["operator"]), _side(row["right"]), str(row["truth"]))
        for row in rows
    )


def _side(value: Mapping[str, Any]) -> SideState:
    return SideState(str(value["text"]), value["low"], value["high"], str(value["shown"]))


def _number(value: JsonValue) -> JsonValue:
    """Return a mean as a number, an interval as its two ends."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_number(end) for end in value]
    return float(value) if isinstance(value, str) else value
