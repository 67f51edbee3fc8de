"""Follow a run on this machine: its events as they are written, its store now and then."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from skillc.artifact_paths import ArtifactPaths
from skillc.artifacts.loading import paths_of_program, program_and_skill
from skillc.review.curve import Curve, CurvePoint, Estimate, curve_of
from skillc.review.decisions import decisions_of
from skillc.review.run_view import RunView, read_run, unfinished_run
from skillc.run.folder import HOME, RunFolder
from skillc.run.recording import FILE, events_in, is_at_work
from skillc.watch.frame import Frame, Live, State

# The store is read again after this many seconds at least, and after many times what reading it took.
_PAUSE, _TIMES = 2.0, 20


class EventReader:
    """Reads the events of a run as they are appended."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._at = 0
        self._rest = b""
        self.live = Live()
        self.changed: float | None = None

    def poll(self) -> bool:
        """Read new events; return whether there were any."""
        try:
            found = self._path.stat()
            if found.st_size < self._at:
                # Another session, or a file that was thinned: read it from the beginning.
                self._at, self._rest, self.live = 0, b"", Live()
            if found.st_size == self._at:
                return False
            with self._path.open("rb") as file:
                file.seek(self._at)
                data = file.read()
        except OSError:
            return False
        self._at += len(data)
        self.changed = found.st_mtime
        *lines, self._rest = (self._rest + data).split(b"\n")
        self.live = self.live.after(events_in(b"\n".join(lines)))
        return bool(lines)


class Follower:
    """Reads frames of the newest run of a program, or of a given one.

    Args:
        path: the program, or the folder of its skill.
        run: the beginning of the id of another run.
        clock: the time of day in seconds.

    Raises:
        SkillcError: the program has errors, there was no such run, or its files are damaged.
    """

    def __init__(self, path: Path, run: str | None = None, clock: Callable[[], float] = time.time) -> None:
        self._path, self._wanted, self._clock = path, run, clock
        self.program, skill = program_and_skill(path, "skillc watch PROGRAM")
        own = ArtifactPaths.of_folder(skill) if skill is not None else paths_of_program(self.program)
        self._own = own
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="skillc watch")
        self._reading: Future[tuple[RunView, float]] | None = None
        self._again = 0.0
        self._old = False
        self._view, took = self._read()
        self._events = self._events_of(self._view)
        self._known = self._progress()
        self._frame: Frame | None = None
        self._state = self._find_state()
        self._later(took)

    def close(self) -> None:
        """Wait for what is being read."""
        self._pool.shutdown(cancel_futures=True)

    def poll(self) -> tuple[Frame, bool]:
        """Return the current frame, and whether it differs from the last one."""
        changed = self._frame is None
        if self._reading is not None and self._reading.done():
            view, took = self._reading.result()
            self._reading = None
            self._later(took)
            if view.run != self._view.run:
                self._events = self._events_of(view)
            self._view, changed = view, True
        changed |= self._events.poll()
        state = self._find_state()
        changed |= state != self._state
        if state != self._state:
            self._again, self._old = 0.0, True
        self._state = state
        if self._is_stale() and self._reading is None and self._clock() >= self._again:
            self._old, self._known = False, self._progress()
            self._reading = self._pool.submit(self._read)
        if changed or self._frame is None:
            self._frame = self._made()
        elif self._frame.state == "running":
            self._frame = replace(self._frame, silent=self._silent())
        return self._frame, changed

    def settled(self) -> Frame:
        """Return the current frame after everything was read."""
        self.poll()
        if self._reading is not None:
            self._reading.result()
        return self.poll()[0]

    def _read(self) -> tuple[RunView, float]:
        began = self._clock()
        run = self._wanted or unfinished_run(self.program, self._own)
        view = read_run(self._path, run)
        return view, self._clock() - began

    def _later(self, took: float) -> None:
        self._again = self._clock() + max(_PAUSE, _TIMES * took)

    def _folder(self, view: RunView) -> Path:
        return RunFolder(self.program.parent / HOME, view.run).path

    def _events_of(self, view: RunView) -> EventReader:
        events = EventReader(self._folder(view))
        events.poll()
        return events

    def _is_stale(self) -> bool:
        """Return whether the store has something that the view lacks, or another run may have begun."""
        if self._old:
            return True
        if self._state != "running":
            return self._wanted is None and self._begun() != self._view.run[:16]
        return self._progress() != self._known

    def _progress(self) -> tuple[int, bool]:
        """Return what makes reading the store again worthwhile: decisions, and the end of the baseline."""
        return len(self._events.live.lines), bool(self._events.live.status.place)

    def _begun(self) -> str:
        return unfinished_run(self.program, self._own) or self._view.run[:16]

    def _find_state(self) -> State:
        folder = self._folder(self._view)
        if is_at_work(folder):
            return "running"
        if self._view.lock is not None or _is_finished(folder):
            return "finished"
        return "ended early" if self._events.live.ended else "stopped"

    def _silent(self) -> float | None:
        changed = self._events.changed
        return None if changed is None else max(0.0, self._clock() - changed)

    def _made(self) -> Frame:
        live = self._events.live
        view = with_lines(self._view, live)
        return Frame(view, with_start(curve_of(view), live), live, self._state, self._silent())


def with_lines(view: RunView, live: Live) -> RunView:
    """Return a run with the decisions that it has reported since its store was read."""
    known = {line.get("decision"): line for line in view.lines}
    fresh = [line for line in live.lines if line.get("decision") not in known or "completed" in line]
    if not fresh or view.lock is not None:
        return view
    merged: dict[Any, Mapping[str, Any]] = {**known, **{line.get("decision"): line for line in fresh}}
    lines = tuple(merged[number] for number in sorted(merged))
    decisions = decisions_of(lines)
    best = next((each.candidate for each in reversed(decisions) if each.accepted), view.best)
    return replace(view, lines=lines, decisions=decisions, best=best)


def with_start(curve: Curve, live: Live) -> Curve:
    """Return a curve with the reported mean of the first incumbent, where no decision has it yet."""
    goal = live.status.incumbent
    if len(curve.points) > 1 or curve.points[0].incumbent is not None or not isinstance(goal, int | float):
        return curve
    return replace(curve, points=(CurvePoint(None, Estimate(Fraction(str(goal)), None, 0, 0), changed=False),))


def _is_finished(folder: Path) -> bool:
    try:
        found = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and bool(found.get("finished"))
