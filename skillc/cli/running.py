"""Run a job or servers for a user at a terminal: progress, the deadline and Ctrl-C."""

from __future__ import annotations

import os
import secrets
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias, TypeVar

import click
from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from skillc.ablate.job import AblateOptions, Ablation, ablate_job, check_caps
from skillc.artifact_paths import OUTPUT
from skillc.cli.arguments import ANY_VERDICT, RunOptions
from skillc.cli.output import show_diagnostics
from skillc.errors import SkillcError
from skillc.evaluate.measuring import Measured, MeasuringJob
from skillc.frontend import Estimated, Planned, ProgramError, check_folders, estimate, plan_file
from skillc.language.loop import SPENDING_CAPS
from skillc.models.backends.registry import connect
from skillc.models.client import Client
from skillc.models.roles import servers_of
from skillc.models.serving.records import running_servers, stop_server
from skillc.models.serving.server import Server
from skillc.pipeline.compile import Compiled, Job, compile_job
from skillc.pipeline.sanity import SanityResult, check_sanity, plan_for_sanity
from skillc.pipeline.tidy import TidyResult, skill_to_tidy, tidy_job
from skillc.plan.models import resolve_model_names
from skillc.plan.schema import Plan
from skillc.plan.settings import override
from skillc.redaction import describe_too_short
from skillc.run.folder import make_home
from skillc.run.json_lines import JsonLines
from skillc.run.progress import Progress, RunFacts
from skillc.run.stop import Stop
from skillc.run.time_left import ExpectedCalls, expected_calls
from skillc.telemetry.export import exported
from skillc.watch.compact import display

J = TypeVar("J", bound=MeasuringJob)
T = TypeVar("T")
Opened: TypeAlias = tuple[Progress, Client, Stop]
_POLL_SECONDS = 0.5
_DROPPED = "the open decision is dropped, the best skill so far is written"
_KEPT = "completed rollouts are kept; run the same command to resume"


def status_console() -> Console:
    """Return the console for progress and notes."""
    return Console(stderr=True, highlight=False)


def plan_run(program: Path, options: RunOptions) -> tuple[Planned, Estimated]:
    """Return the plan of a verb that writes a skill, and what it may spend."""
    planned = plan_file(
        program,
        models=options.models,
        settings=options.settings,
        offline=options.offline,
        runnable=True,
        every_model=False,
    )
    if options.require is not None:
        required = None if options.require == ANY_VERDICT else options.require
        planned = replace(planned, plan=planned.plan.model_copy(update={"required_verdict": required}))
    return planned, estimate(planned)


def exit_status(compiled: Compiled) -> int:
    """Return the exit status of a verb that writes a skill."""
    if compiled.interrupted:
        return 130
    if compiled.lost is not None or compiled.trained.stopped in (*SPENDING_CAPS, "time"):
        return 3
    return 0 if compiled.withheld is None else 1


def run_compile(planned: Planned, estimated: Estimated, options: RunOptions) -> Compiled:
    """Compile with progress on the console."""
    job = _job(planned, estimated, options)
    plan = planned.plan
    facts = RunFacts(plan.budget.epochs, plan.budget, expected_calls(estimated.bounds, plan))
    with _open_run("compile", plan, planned.root, facts, options) as (progress, client, stop):
        return compile_job(job, progress, client, stop)


def run_tidy(planned: Planned, estimated: Estimated, file: Path | None, options: RunOptions) -> TidyResult:
    """Tidy the compiled skill, or the one in a file, with progress on the console."""
    job = _job(planned, estimated, options)
    skill = skill_to_tidy(job, file)
    plan = planned.plan
    with _open_run("tidy", plan, planned.root, RunFacts(None, plan.budget), options) as (progress, client, stop):
        return tidy_job(job, skill, progress, client, stop)


def run_ablate(
    planned: Planned,
    estimated: Estimated,
    file: Path | None,
    wanted: AblateOptions,
    caps: Mapping[str, str],
    options: RunOptions,
) -> Ablation:
    """Leave out rules of the compiled skill, or the one in a file, with progress on the console.

    `caps` replace those of the program for this run alone; its lock has the program's.
    """
    job = _job(planned, estimated, options)
    skill = skill_to_tidy(job, file)
    capped = override(planned.plan, caps)
    check_caps(job, capped, dry_run=wanted.dry_run)
    with _open_run("ablate", capped, planned.root, RunFacts(None, capped.budget), options) as (progress, client, stop):
        return ablate_job(job, skill, wanted, progress, client, stop)


def _job(planned: Planned, estimated: Estimated, options: RunOptions) -> Job:
    """Return the job of a verb that writes a skill, after showing what was found in its program."""
    if not options.quiet:
        # The diagnostics of a budget that cannot pay are printed with the error.
        show_diagnostics([*planned.diagnostics, *(() if estimated.failed else estimated.diagnostics)])
    if estimated.failed:
        raise ProgramError(planned.path, estimated.diagnostics)
    base, home = options.output or planned.root / OUTPUT, planned.root / ".skillc"
    return Job(planned, estimated, base, home, force=options.force, fresh=options.fresh)


def run_sanity(planned: Planned, estimated: Estimated, options: RunOptions) -> SanityResult:
    """Check with progress on the console whether feedback reaches the skill. Write nothing, cache no reply."""
    planned = plan_for_sanity(planned, estimated)
    plan = planned.plan
    facts = RunFacts(plan.budget.epochs, plan.budget)
    with _open_run("sanity", plan, planned.root, facts, options) as (progress, client, stop):
        return check_sanity(planned, estimated, progress, client, stop)


def plan_measured(program: Path, options: RunOptions, *, every_model: bool = True) -> Planned:
    """Return the plan of a verb that measures skills and writes none, after showing what was found in its program."""
    planned = plan_file(
        program,
        models=options.models,
        settings=options.settings,
        offline=options.offline,
        runnable=True,
        complete=False,
        every_model=every_model,
    )
    if not options.quiet:
        show_diagnostics(planned.diagnostics)
    return planned


def run_measured(
    verb: str, job: J, preview: Sequence[str], options: RunOptions, measure: Callable[[J, Progress, Client, Stop], T]
) -> T:
    """Print the notes and the preview of a measurement, and run it with progress on the console."""
    home, plan = job.root / ".skillc", job.plan
    try:
        make_home(home)
    except OSError as problem:
        raise SkillcError(f"the folder `{home}` cannot be written: {problem.strerror}") from problem
    check_folders(job.planned.checked, plan, job.root)
    facts = RunFacts(budget=plan.budget, expected=ExpectedCalls(job.bound.estimate.calls + job.preflight_calls))
    run = _open_run(verb, plan, job.root, facts, options, on_interrupt=_KEPT, split=job.splits)
    with run as (progress, client, stop):
        if options.fresh:
            client.bind_store(None, secrets.token_hex(8))
        for note in job.notes:
            progress.note(note)
        for line in preview if not (options.quiet or options.json_lines) else ():
            status_console().print(Text(line), soft_wrap=True)
        return measure(job, progress, client, stop)


def night_opener(planned: Planned, options: RunOptions) -> Callable[[Plan], AbstractContextManager[Opened]]:
    """Return what opens the models of a night's steps, each under its caps."""

    def open_(plan: Plan) -> AbstractContextManager[Opened]:
        return _open_run("evolve", plan, planned.root, RunFacts(None, plan.budget), options, on_interrupt=_KEPT)

    return open_


def exit_status_measured(found: Measured) -> int:
    """Return the exit status of a measurement without a result of its own: complete, interrupted, or cut short."""
    return 0 if found.stopped is None else 130 if found.stopped == "interrupted" else 3


@contextmanager
def _open_run(
    verb: str,
    plan: Plan,
    root: Path,
    facts: RunFacts,
    options: RunOptions,
    *,
    on_interrupt: str = _DROPPED,
    **start_event: JsonValue,
) -> Iterator[tuple[Progress, Client, Stop]]:
    """Open the client, the progress display and the stop request of a run.

    `on_interrupt` is the note for Ctrl-C: what happens to open work; `start_event` is added to the first JSON event.
    """
    cache = None if verb == "sanity" else root / ".skillc" / "cache"
    with Client(plan, cache_folder=cache, offline=options.offline, root=root, preflight=True) as client:
        spent = client.ledger.snapshot
        if options.json_lines:
            lines = JsonLines(click.echo, facts, spent=spent, in_flight=client.in_flight)
            lines.begin(verb=verb, skill=plan.skill.artifact, goal=plan.goal.name, **start_event)
            progress: Progress = lines
        else:
            progress = display(status_console(), facts, quiet=options.quiet, spent=spent, in_flight=client.in_flight)
        client.servers.watch(progress)
        stop = Stop(plan.budget.time)
        with progress, _interruptible(stop, progress, on_interrupt), _warnings_as_notes(progress):
            if note := describe_too_short(client.hide.too_short):
                progress.note(note)
            with exported(progress.note, asked=options.otel):
                yield progress, client, stop


@contextmanager
def _interruptible(stop: Stop, progress: Progress, on_interrupt: str) -> Iterator[None]:
    """Handle Ctrl-C: the first requests a stop, the second ends the process."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        if stop.reason == "interrupted":
            raise KeyboardInterrupt
        stop.ask()
        progress.note(f"interrupted: {on_interrupt}")

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _warnings_as_notes(progress: Progress) -> Iterator[None]:
    """Show skillc's warnings as notes, without the line of code that they come from."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def note(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
            if category is UserWarning:
                progress.note(str(message))
            else:
                show(message, category, *rest, **more)

        warnings.showwarning = note
        yield


class ServerStatus:
    """Notes about servers as lines, and a spinner while one starts."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._spinner = console.status("starting") if console.is_terminal else None

    def __enter__(self) -> ServerStatus:
        return self

    def __exit__(self, *problem: object) -> None:
        self.waiting(None)

    def note(self, message: str) -> None:
        """Print one line or more."""
        self._console.print(Text(message, style="dim"), soft_wrap=True)

    def waiting(self, text: str | None) -> None:
        """Show what the run waits for; None ends it."""
        if self._spinner is None:
            return
        if text is None:
            self._spinner.stop()
        else:
            self._spinner.update(text)
            self._spinner.start()


def run_servers(planned: Planned, status: ServerStatus, report: Callable[[list[dict[str, Any]]], None]) -> None:
    """Start a program's servers one after the other, report their addresses, and wait for an interrupt.

    Return at once if all of them already run.

    Raises:
        SkillcError: the program serves no model, or a server cannot be started, or not again.
        KeyboardInterrupt: interrupted before all servers answered.
    """
    models = resolve_model_names(planned.plan, os.environ).models.values()
    endpoints = [connect(model, os.environ, planned.root)[1] for model in models if model.serve is not None]
    if not endpoints:
        raise SkillcError(
            f"`{planned.path}` declares no server", hint="write `serve = vllm {}` in the block of a model"
        )
    with closing(servers_of(endpoints, models, planned.root, foreground=True)) as servers, _stop_signals() as ended:
        servers.watch(status)
        for server in servers.all:
            _wait_for(server, ended)
        report([_describe(server) for server in servers.all])
        owned = [server for server in servers.all if server.is_owned]
        while owned and not ended.wait(_POLL_SECONDS):
            for server in owned:
                if server.is_stopped:
                    return
                server.check()
                future = server.start()
                if future.done() and future.exception() is not None and not server.is_stopped:
                    future.result()


def stop_servers(root: Path) -> list[str]:
    """Stop the servers that a program left running; return their names."""
    running = running_servers(root / ".skillc" / "serve")
    for path, record in running:
        stop_server(path, record)
    return [f"{', '.join(record.names)} at {record.url}" for _, record in running]


def _wait_for(server: Server, ended: threading.Event) -> None:
    future = server.start()
    while not future.done():
        if ended.wait(_POLL_SECONDS / 5):
            raise KeyboardInterrupt
    future.result()


def _describe(server: Server) -> dict[str, Any]:
    address = server.start().result()
    served = server.summary()
    key = f"in `{server.state}`, readable by this user only" if server.state.exists() else "as declared"
    return {
        **(served.to_json() if served is not None else {}),
        "url": address.url,
        "names": list(server.served_names),
        "key": key,
        "log": str(server.log) if server.log is not None else None,
    }


@contextmanager
def _stop_signals() -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C and termination signals set; a second one ends the process at once."""
    ended = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        if ended.is_set():
            raise KeyboardInterrupt
        ended.set()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
