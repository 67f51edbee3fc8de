"""Run a job or servers in front of a user: progress, the clock and Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import click
from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from skillc.artifact_paths import OUTPUT
from skillc.cli.arguments import ANY_VERDICT
from skillc.errors import SkillcError
from skillc.evaluate.job import EvalJob
from skillc.evaluate.report import preview_lines
from skillc.evaluate.run import Evaluation, evaluate
from skillc.frontend import Estimated, Planned, ProgramError, plan_file, refuse_folders
from skillc.models.backends.registry import connect
from skillc.models.client import Client
from skillc.models.roles import servers_of
from skillc.models.serving.published import all_published, stop_published
from skillc.models.serving.server import Server
from skillc.pipeline.compile import Compiled, Job, compile_job
from skillc.pipeline.sanity import SanityResult, check_sanity
from skillc.pipeline.tidy import TidyResult, skill_to_tidy, tidy_job
from skillc.plan.models import resolve_model_names
from skillc.plan.schema import Plan
from skillc.run.folder import make_home
from skillc.run.json_lines import JsonLines
from skillc.run.progress import Progress, RunFacts, display
from skillc.run.stop import Stop
from skillc.run.time_left import ExpectedCalls, expected_calls

_DROPPED = "the open decision is dropped, the best skill so far is written"
_KEPT = "what was answered is kept, and the same command goes on"


@dataclass(frozen=True, slots=True)
class Shown:
    """How progress is shown: for people on the console, as JSON lines on standard output, or not at all."""

    console: Console
    quiet: bool = False
    json_lines: bool = False

    def progress(self, facts: RunFacts, client: Client, **started: JsonValue) -> Progress:
        """Return the display of one run; `started` is added to the first JSON event."""
        spent = client.ledger.snapshot
        if not self.json_lines:
            return display(self.console, facts, quiet=self.quiet, spent=spent)
        lines = JsonLines(click.echo, facts, spent=spent)
        lines.begin(**started)
        return lines


def planned_for(
    program: Path, models: Sequence[str], settings: Sequence[str], *, offline: bool, require: str | None
) -> Planned:
    """Return the plan of a verb that writes a skill."""
    planned = plan_file(program, models=models, settings=settings, offline=offline, runnable=True, every_model=False)
    if require is None:
        return planned
    required = None if require == ANY_VERDICT else require
    return replace(planned, plan=planned.plan.model_copy(update={"required_verdict": required}))


def exit_status(compiled: Compiled) -> int:
    """Return the exit status of a verb that writes a skill."""
    if compiled.interrupted:
        return 130
    if compiled.lost is not None or compiled.trained.stopped in ("calls", "tokens", "cost", "time"):
        return 3
    return 0 if compiled.withheld is None else 1


def run_job(
    planned: Planned,
    estimated: Estimated,
    shown: Shown,
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
    job = _job(planned, estimated, output, force=force, fresh=fresh)
    plan = planned.plan
    expected = expected_calls(estimated.bounds, own_method=plan.optimize.method == "skillc")
    facts = RunFacts(plan.budget.epochs, plan.budget, expected)
    with _running("compile", plan, planned.root, shown, facts, offline=offline) as (terminal, client, stop):
        return compile_job(job, terminal, client, stop)


def _job(planned: Planned, estimated: Estimated, output: Path | None, *, force: bool, fresh: bool) -> Job:
    if estimated.failed:
        raise ProgramError(planned.path, estimated.diagnostics)
    base, home = output or planned.root / OUTPUT, planned.root / ".skillc"
    return Job(planned, estimated, base, home, force=force, fresh=fresh)


@contextmanager
def _running(
    verb: str,
    plan: Plan,
    root: Path,
    shown: Shown,
    facts: RunFacts,
    *,
    offline: bool,
    dropped: str = _DROPPED,
    **started: JsonValue,
) -> Iterator[tuple[Progress, Client, Stop]]:
    """Open the client, the display and the stop of a verb; `dropped` describes open work for Ctrl-C."""
    cache = None if verb == "sanity" else root / ".skillc" / "cache"
    with Client(plan, cache_folder=cache, offline=offline, root=root, preflight=True) as client:
        skill, goal = plan.skill.artifact, plan.goal.name
        terminal = shown.progress(facts, client, verb=verb, skill=skill, goal=goal, **started)
        client.servers.watched(terminal)
        stop = Stop(None if plan.budget.time is None else float(plan.budget.time))
        with terminal, _interruptible(stop, terminal, dropped), _noted(terminal):
            yield terminal, client, stop


def run_tidy(
    planned: Planned,
    estimated: Estimated,
    shown: Shown,
    file: Path | None,
    *,
    output: Path | None,
    offline: bool,
    fresh: bool,
    force: bool,
) -> TidyResult:
    """Tidy the compiled skill, or the one in a file, showing progress on the console.

    Raises:
        ProgramError: the budget cannot pay.
        SkillcError: whatever else the user can mend.
    """
    job = _job(planned, estimated, output, force=force, fresh=fresh)
    skill = skill_to_tidy(job, file)
    plan = planned.plan
    facts = RunFacts(None, plan.budget)
    with _running("tidy", plan, planned.root, shown, facts, offline=offline) as (terminal, client, stop):
        return tidy_job(job, skill, terminal, client, stop)


def run_sanity(planned: Planned, estimated: Estimated, shown: Shown, *, offline: bool) -> SanityResult:
    """Check whether feedback reaches the skill, showing progress on the console. Nothing is written, no reply kept.

    Raises:
        SkillcError: whatever the user can mend.
    """
    plan = planned.plan
    facts = RunFacts(plan.budget.epochs, plan.budget)
    with _running("sanity", plan, planned.root, shown, facts, offline=offline) as (terminal, client, stop):
        return check_sanity(planned, estimated, terminal, client, stop)


def run_eval(planned: Planned, job: EvalJob, shown: Shown, *, offline: bool) -> Evaluation:
    """Score skills with progress on the console, after the upper bound of what it takes.

    Raises:
        SkillcError: whatever the user can mend.
    """
    home, plan = planned.root / ".skillc", job.plan
    try:
        make_home(home)
    except OSError as problem:
        raise SkillcError(f"the folder `{home}` cannot be written: {problem.strerror}") from problem
    refuse_folders(planned.checked, plan, planned.root)
    facts = RunFacts(budget=plan.budget, expected=ExpectedCalls(job.bound.estimate.calls + job.tried))
    work = _running("eval", plan, planned.root, shown, facts, offline=offline, dropped=_KEPT, split=job.split)
    with work as (terminal, client, stop):
        for note in job.notes:
            terminal.note(note)
        for line in preview_lines(job) if not (shown.quiet or shown.json_lines) else ():
            shown.console.print(Text(line), soft_wrap=True)
        return evaluate(job, terminal, client, stop)


@contextmanager
def _interruptible(stop: Stop, terminal: Progress, dropped: str) -> Iterator[None]:
    """Handle Ctrl-C: the first drops open work and keeps what was reached, the second ends the process."""

    def ask(number: int, frame: FrameType | None) -> None:
        if stop.reason == "interrupted":
            raise KeyboardInterrupt
        stop.ask()
        terminal.note(f"interrupted: {dropped}")

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _noted(terminal: Progress) -> Iterator[None]:
    """Show skillc's warnings as notes, without the line of code that they come from."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def note(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
            if category is UserWarning:
                terminal.note(str(message))
            else:
                show(message, category, *rest, **more)

        warnings.showwarning = note
        yield


_POLL = 0.5


class Lines:
    """Notes as lines, and a spinner for what is waited for."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status = console.status("starting") if console.is_terminal else None

    def __enter__(self) -> Lines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.waiting(None)

    def note(self, message: str) -> None:
        """Print one line or more."""
        self._console.print(Text(message, style="dim"), soft_wrap=True)

    def waiting(self, text: str | None) -> None:
        """Show what the run waits for; None ends it."""
        if self._status is None:
            return
        if text is None:
            self._status.stop()
        else:
            self._status.update(text)
            self._status.start()


def run_servers(planned: Planned, lines: Lines, tell: Callable[[list[dict[str, object]]], None]) -> None:
    """Start a program's servers one after the other, report their addresses, and wait for an interrupt.

    Where all of them run already there is nothing to stay for.

    Raises:
        SkillcError: the program serves no model, or a server cannot be started, or not again.
        KeyboardInterrupt: it was interrupted before all answered.
    """
    models = resolve_model_names(planned.plan, os.environ).models.values()
    endpoints = [connect(model, os.environ, planned.root)[1] for model in models if model.serve is not None]
    if not endpoints:
        raise SkillcError(
            f"`{planned.path}` serves no model itself", hint="write `serve = vllm {}` in the block of a model"
        )
    with closing(servers_of(endpoints, models, planned.root, foreground=True)) as servers, _ended() as ended:
        servers.watched(lines)
        for server in servers.each:
            _answer(server, ended)
        tell([_published(server) for server in servers.each])
        owned = [server for server in servers.each if server.owned]
        while owned and not ended.wait(_POLL):
            for server in owned:
                if server.stopped:
                    return
                server.look()
                future = server.begin()
                if future.done() and future.exception() is not None and not server.stopped:
                    future.result()


def stop_servers(root: Path) -> list[str]:
    """Stop the servers that a program left running; return their names."""
    running = all_published(root / ".skillc" / "serve")
    for state, told in running:
        stop_published(state, told)
    return [f"{', '.join(told.names)} at {told.address.url}" for _, told in running]


def _answer(server: Server, ended: threading.Event) -> None:
    future = server.begin()
    while not future.done():
        if ended.wait(_POLL / 5):
            raise KeyboardInterrupt
    future.result()


def _published(server: Server) -> dict[str, object]:
    address = server.begin().result()
    served = server.served()
    own = f"in `{server.state}`, for this user alone" if server.state.exists() else "as declared"
    return {
        **(served.to_json() if served is not None else {}),
        "url": address.url,
        "names": list(server.served_names),
        "key": own,
        "log": str(server.log) if server.log is not None else None,
    }


@contextmanager
def _ended() -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C and termination signals set; a second one ends the process at once."""
    ended = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        if ended.is_set():
            raise KeyboardInterrupt
        ended.set()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, ask) for number in numbers}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
