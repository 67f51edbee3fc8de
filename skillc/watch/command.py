"""What `skillc watch` does: follow a run, print it as it is now, or play it again."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

from rich.console import Console

from skillc.errors import SkillcError
from skillc.review.run_view import NeverCompiled, read_run
from skillc.run.folder import HOME, RunFolder
from skillc.run.recording import read_events
from skillc.watch.follow import Follower
from skillc.watch.frame import Frame
from skillc.watch.replay import Replay
from skillc.watch.screen import is_interactive, print_decisions, print_frame, print_lines, show
from skillc.watch.views import ViewName

# Seconds between looks for a run that has not begun.
_LOOK = 1.0


def print_now(console: Console, path: Path, run: str | None, view: ViewName) -> None:
    """Print one frame.

    Raises:
        SkillcError: there is no such run, or it cannot be read.
    """
    with closing(Follower(path, run)) as follower:
        print_frame(console, follower.settled(), view)


def follow(console: Console, path: Path, run: str | None, view: ViewName) -> None:
    """Show a run until the user quits; without a terminal print its decisions until it ends.

    Raises:
        SkillcError: there is no such run, or it cannot be read.
    """
    if not is_interactive(console):
        with closing(Follower(path, run)) as follower:
            print_decisions(console, follower, view)
        return
    waiting = _Waiting(path, run)
    try:
        show(console, waiting.poll, view)
    finally:
        waiting.close()


def play(console: Console, path: Path, run: str | None, view: ViewName, speed: float) -> None:
    """Play a recorded run; without a terminal print its decisions, and the last frame.

    Raises:
        SkillcError: there is no such run, it cannot be read, or it has no decision.
    """
    played = read_run(path, run)
    if not played.decisions:
        raise SkillcError(
            f"run `{played.run[:8]}` has no decision to replay", hint="`skillc watch` shows a run at work"
        )
    replay = Replay(played, read_events(RunFolder(played.program.parent / HOME, played.run).path), speed)
    if is_interactive(console):
        show(console, lambda: (*replay.poll(time.monotonic()), ""), view, replay)
        return
    print_lines(console, played.lines)
    replay.at = len(replay.moments) - 1
    print_frame(console, replay.frame(), view)


class _Waiting:
    """Follows a run, and waits for one that has not begun."""

    def __init__(self, path: Path, run: str | None) -> None:
        self._path, self._run = path, run
        self._follower: Follower | None = None
        self._next = 0.0
        if run is not None:
            self._follower = Follower(path, run)
        else:
            self._look()

    def poll(self) -> tuple[Frame | None, bool, str]:
        """Return the frame, None before the run begins."""
        if self._follower is None and time.monotonic() >= self._next:
            self._look()
        if self._follower is None:
            return None, False, f"`{self._path}` was never compiled: waiting for `skillc compile {self._path}`"
        return *self._follower.poll(), ""

    def _look(self) -> None:
        self._next = time.monotonic() + _LOOK
        try:
            self._follower = Follower(self._path, self._run)
        except NeverCompiled:
            self._follower = None

    def close(self) -> None:
        """Stop reading."""
        if self._follower is not None:
            self._follower.close()
