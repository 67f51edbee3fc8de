"""Events of a running run, recorded in its folder for views. The store does not contain them.

The lines are those of `--json-lines`, each with the time `at`. They contain the stage, the evidence while gates are
open, the calls in flight and the time of each stage. A compile reads only the seconds of earlier sessions from them,
for display. If the file cannot be written, the recording ends but the run continues.
"""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import IO, Any, TypeAlias

from pydantic import JsonValue

from skillc.optimize.host import Observer
from skillc.run.json_lines import JsonLines
from skillc.run.progress import InFlight, Progress, RunFacts, Snapshot

# File locks. Windows has another API, so it is unknown there whether a run is active.
_fcntl: ModuleType | None = None
with suppress(ImportError):
    import fcntl

    _fcntl = fcntl

FILE = "progress.jsonl"
Event: TypeAlias = Mapping[str, Any]
# Above this size in bytes, the older half of the least important events is removed.
MOST = 16_000_000
_MINOR = frozenset({"evidence", "progress", "candidates", "waiting"})
# Seconds between reports of calls in flight while nothing else happens.
_PULSE = 1.0
_TRIES = 20
# Longer gaps are not time of a stage: the run was stopped, or the machine was asleep.
_LONGEST = 6 * 3600.0


@contextmanager
def recorded(
    folder: Path,
    observer: Observer,
    facts: RunFacts,
    *,
    spent: Snapshot,
    in_flight: InFlight,
    fresh: bool = False,
    clock: Callable[[], float] = time.time,
    **start: JsonValue,
) -> Iterator[RecordedObserver]:
    """Yield an observer that records each event in the folder of a run and passes it on.

    Args:
        folder: of the run.
        observer: receives the events too; it alone can stop the run.
        facts: for the first event.
        spent: reads the ledger's snapshot.
        in_flight: reads the calls in flight by role.
        fresh: whether the seconds of earlier sessions are dropped.
        clock: the time of day in seconds.
        start: further fields of the first event.
    """
    with _EventFile(folder / FILE, clock) as file:
        earlier = {} if fresh else stage_seconds(file.read())
        file.clear()
        events = _Recorder(file.write, facts, spent=spent, in_flight=in_flight)
        events.begin(**start, earlier={name: round(seconds, 3) for name, seconds in earlier.items()})
        done = threading.Event()
        pulse = threading.Thread(target=events.pulse, args=(done,), name="skillc progress", daemon=True)
        pulse.start()
        try:
            yield RecordedObserver(observer, events)
        finally:
            done.set()
            pulse.join()
            events.report_progress()
            events.event("end")


class RecordedObserver(Observer):
    """Passes each event to two observers; the first alone can stop the run."""

    def __init__(self, first: Observer, second: Progress) -> None:
        self._first, self._second = first, second

    def waiting(self, text: str | None) -> None:
        """Pass on the reason why the whole run waits, such as a server."""
        if isinstance(self._first, Progress):
            self._first.waiting(text)
        self._second.waiting(text)

    def stop_wanted(self) -> str | None:
        """Return why the first observer asks the run to stop."""
        return self._first.stop_wanted()


def _passing(name: str) -> Callable[..., None]:
    def both(self: RecordedObserver, *arguments: Any, **named: Any) -> None:
        getattr(self._first, name)(*arguments, **named)
        getattr(self._second, name)(*arguments, **named)

    return both


for _name in [name for name in vars(Observer) if not name.startswith("_") and name != "stop_wanted"]:
    setattr(RecordedObserver, _name, _passing(_name))


class _Recorder(JsonLines):
    """Write events, also periodically during a long stage."""

    _reported: JsonValue = None

    def pulse(self, done: threading.Event) -> None:
        """Report progress from time to time where it changed, until `done`."""
        while not done.wait(_PULSE):
            # The loop may modify the data concurrently.
            with suppress(RuntimeError):
                state: JsonValue = [self.status.stage, self.status.done, dict(self.in_flight()), self.spent().calls]
                if state != self._reported:
                    self._reported = state
                    self.report_progress()


class _EventFile:
    """A file of events that one process appends to; the first problem ends the writing.

    While the file is open, it is locked, so that a reader knows whether the run is at work.
    """

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._file: IO[bytes] | None = None
        self._size = 0
        self._broken = False
        with suppress(OSError):
            self._file = path.open("a+b", buffering=0)
            self._mark()

    def _mark(self) -> None:
        """Lock the file. A reader that probes the lock holds it only briefly."""
        for _ in range(_TRIES if _fcntl is not None else 0):
            try:
                _fcntl.flock(self._file, _fcntl.LOCK_EX | _fcntl.LOCK_NB)  # type: ignore[union-attr]
            except BlockingIOError:
                time.sleep(0.005)
            else:
                return

    def __enter__(self) -> _EventFile:
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None

    def read(self) -> list[Event]:
        """Return the events of the last session."""
        if self._file is None:
            return []
        try:
            self._file.seek(0)
            return events_in(self._file.read())
        except OSError:
            return []

    def clear(self) -> None:
        """Remove all events."""
        self._replace(b"")

    def write(self, line: str) -> None:
        """Append an event, a JSON object on one line, with its time."""
        data = f'{line[:-1]}, "at": {self._clock():.3f}}}\n'.encode(errors="replace")
        with self._lock:
            if self._file is None or self._broken:
                return
            try:
                self._file.write(data)
            except OSError:
                # For example a full disk. The file stays open to keep its lock.
                self._broken = True
                return
            self._size += len(data)
            if self._size > MOST:
                self._thin()

    def _thin(self) -> None:
        """Remove the minor events of the older half; if that is not enough, all of it but the first event."""
        assert self._file is not None
        try:
            self._file.seek(0)
            lines = self._file.read().splitlines(keepends=True)
        except OSError:
            self._broken = True
            return
        half = len(lines) // 2
        kept = [line for line in lines[:half] if _name_of(line) not in _MINOR] + lines[half:]
        if sum(map(len, kept)) > MOST * 3 // 4:
            kept = lines[:1] + lines[half:]
        self._replace(b"".join(kept))

    def _replace(self, data: bytes) -> None:
        """Replace the content in place, because the lock belongs to this file."""
        if self._file is None:
            return
        try:
            self._file.truncate(0)
            self._file.write(data)
            self._size = len(data)
        except OSError:
            self._broken = True


def _name_of(line: bytes) -> str:
    found = events_in(line)
    return str(found[0]["event"]) if found else ""


# ---- reading --------------------------------------------------------------------------------------


def events_in(data: bytes) -> list[Event]:
    """Return the events in the lines of a file, without torn or damaged lines."""
    found: list[Event] = []
    for line in data.split(b"\n"):
        with suppress(ValueError):
            event = json.loads(line)
            if isinstance(event, dict) and isinstance(event.get("event"), str):
                found.append(event)
    return found


def read_events(folder: Path) -> list[Event]:
    """Return the events of the last session of a run; none if it recorded none."""
    try:
        return events_in((folder / FILE).read_bytes())
    except OSError:
        return []


def is_at_work(folder: Path) -> bool | None:
    """Return whether a process is running a run; None if unknown."""
    if _fcntl is None:
        return None
    try:
        with (folder / FILE).open("rb") as file:
            _fcntl.flock(file, _fcntl.LOCK_SH | _fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False


def stage_seconds(events: Sequence[Event]) -> dict[str, float]:
    """Return the wall time of each stage of a run over all its sessions.

    A stage lasts until the next one begins. Time before the first stage is `start`.
    """
    seconds: defaultdict[str, float] = defaultdict(float)
    stage, before = "start", None
    for event in events:
        at = event.get("at")
        if not isinstance(at, int | float):
            continue
        if before is not None and 0 < at - before < _LONGEST:
            seconds[stage] += at - before
        before = at
        if event["event"] == "start":
            stage = "start"
            earlier = event.get("earlier")
            for name, amount in earlier.items() if isinstance(earlier, dict) else ():
                seconds[str(name)] += float(amount)
        elif event["event"] == "stage":
            stage = str(event.get("stage"))
    return {name: found for name, found in seconds.items() if found >= 0.0005}
