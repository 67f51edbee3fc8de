"""The progress of a run as JSON, one object a line, for CI and tools (`--json-lines`)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence

from pydantic import JsonValue

from skillc.optimize.observer import Seen
from skillc.run.progress import QUIET_FOR, Progress, RunFacts

FORMAT_VERSION = 1
_TENTHS = 10


class JsonLines(Progress):
    """Writes an object for each event; the fields are described in `docs/guides/progress.md`.

    Args:
        write: takes a line without its end.
        facts: of the run.
        spent: reads the ledger's snapshot.
        clock: seconds, from anywhere.
    """

    def __init__(
        self,
        write: Callable[[str], None],
        facts: RunFacts,
        *,
        spent: Callable[[], Mapping[str, JsonValue]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(facts, spent=spent, clock=clock)
        self._write = write
        self._tenth = 0
        self._waited = 0.0

    def event(self, name: str, **fields: JsonValue) -> None:
        """Write one event."""
        self._write(json.dumps({"event": name, **fields}, ensure_ascii=False))

    def begin(self, **fields: JsonValue) -> None:
        """Write the first event: what runs, and its caps."""
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
        """Write it."""
        self.event("note", message=message)

    def decided(self, record: Mapping[str, JsonValue]) -> None:
        """Write it as the history has it."""
        self.event("decision", **record)

    def completed(self, record: Mapping[str, JsonValue]) -> None:
        """Write the new incumbent's goal."""
        super().completed(record)
        self.event("completed", decision=record["completed"], goal=_number(record["goal"]))

    def changed(self, what: str) -> None:
        """Write a step, candidates, evidence, a stage, a wait; of the progress of a stage each tenth."""
        status = self.status
        if what == "step":
            self.event("step", place=status.place, epoch=status.epoch, incumbent=_number(status.incumbent))
        elif what == "candidates":
            self.event("candidates", edits=[list(each) for each in status.edits])
        elif what == "seen":
            self.event("evidence", candidates=[_seen(each) for each in status.seen])
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
        spent, left, status = self.spent(), self.seconds_left(), self.status
        self.event(
            "progress",
            stage=status.stage,
            done=status.done,
            total=status.total,
            charged={"calls": spent.calls, "tokens": spent.tokens, "cost_nano": spent.cost},
            seconds_left=None if left is None else round(left),
        )


def _seen(seen: Seen) -> dict[str, JsonValue]:
    return {
        "candidate": seen.candidate,
        "gains": seen.gains,
        "losses": seen.losses,
        "evaluated": seen.evaluated,
        "of": seen.of,
        "goal": _number(seen.goal),
    }


def _number(value: JsonValue) -> JsonValue:
    """A mean as a number, an open one as its two ends."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_number(end) for end in value]
    return float(value) if isinstance(value, str) else value
