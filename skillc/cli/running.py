"""A compile under the eyes of a user: progress, the clock, Ctrl-C."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click
from pydantic import JsonValue
from rich.console import Console

from skillc.frontend import Estimated, Planned, ProgramError
from skillc.language.diagnostics import Diagnostic, Severity
from skillc.language.render import text as drawn
from skillc.models.client import Client
from skillc.pipeline import Compiled, Job, compile_job
from skillc.report import spent_line
from skillc.run.progress import Terminal


class _Watch:
    """The terminal, with the two outside wishes to stop: the clock and the user."""

    def __init__(self, terminal: Terminal, deadline: float | None) -> None:
        self._terminal = terminal
        self._end = None if deadline is None else time.monotonic() + deadline
        self.interrupted = False
        self.stage = terminal.stage
        self.advance = terminal.advance
        self.note = terminal.note

    def decided(self, record: Mapping[str, JsonValue]) -> None:
        self._terminal.decided(record)

    def stop_wanted(self) -> str | None:
        if self.interrupted:
            return "interrupted"
        return "time" if self._end is not None and time.monotonic() >= self._end else None


def run_job(
    planned: Planned,
    estimated: Estimated,
    console: Console,
    *,
    output: Path | None,
    offline: bool,
    fresh: bool,
    force: bool,
) -> Compiled:
    """Compiles, showing progress on the console.

    Raises:
        ProgramError: the budget cannot pay.
        SkillcError: whatever else the user can mend.
    """
    if estimated.failed:
        raise ProgramError(planned.path, estimated.diagnostics)
    plan = planned.plan
    home = planned.root / ".skillc"
    folder = (output or planned.root / "skills") / plan.skill.artifact
    cap = float(plan.budget.time) if plan.budget.time is not None else None
    job = Job(planned, estimated, folder, home, force=force, fresh=fresh)
    with Client(plan, cache_folder=home / "cache", offline=offline) as client:
        terminal = Terminal(console, spent=lambda: spent_line(client.ledger.snapshot()), deadline=cap)
        watch = _Watch(terminal, cap)
        with terminal, _interruptible(watch):
            return compile_job(job, watch, client)


@contextmanager
def _interruptible(watch: _Watch) -> Iterator[None]:
    """The first Ctrl-C ends the run at the next decision, the second one at once."""

    def ask(number: int, frame: FrameType | None) -> None:
        if watch.interrupted:
            raise KeyboardInterrupt
        watch.interrupted = True
        watch.note("stopping after this decision; Ctrl-C again stops at once")

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def show_diagnostics(diagnostics: Sequence[Diagnostic]) -> None:
    """Prints findings on standard error; notes are left to `check` and `plan`."""
    color = sys.stderr.isatty()
    for diagnostic in diagnostics:
        if diagnostic.severity is not Severity.NOTE:
            click.echo(drawn(diagnostic, color=color) + "\n", err=True)
