"""The verb `sessions`: recorded sessions of agents, imported, audited and shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillc.cli.arguments import ProgramPath, json_option, plan_options
from skillc.cli.output import print_json
from skillc.errors import SkillcError
from skillc.text import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from skillc.labels.judging import SessionJudge
    from skillc.provenance.quarantine import Held, Quarantined
    from skillc.sessions.importing import Imported
    from skillc.sessions.poison import Finding
    from skillc.sessions.recording import Recorder
    from skillc.sessions.store import Row, SessionStore
    from skillc.sessions.verdicts import Suspect

_STORE = ".skillc/sessions.db"
_store = click.option(
    "--store", type=click.Path(path_type=Path, dir_okay=False), default=_STORE, show_default=True, help="The store."
)


@click.group(epilog="Example: skillc sessions import ~/.claude/projects")
def sessions() -> None:
    """Read recorded sessions of agents into one store, without secrets and personal data.

    Exit status: 0 done, 2 an error.
    """


@sessions.command(
    "import", short_help="read sessions into the store", epilog="Example: skillc sessions import --from claude-code"
)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--from", "agents", multiple=True, metavar="AGENT", help="Read where this agent keeps its sessions. Repeatable."
)
@click.option("--format", "form", metavar="FORMAT", help="The format of all PATHS; by default it is recognised.")
@click.option("--workers", type=click.IntRange(min=1), help="Processes; by default one a core.")
@_store
@json_option
def take_in(
    paths: tuple[Path, ...], agents: tuple[str, ...], form: str | None, workers: int | None, store: Path, as_json: bool
) -> None:
    """Read the sessions in PATHS, files or folders, into the store.

    Formats: claude-code, codex, opencode, hermes, recorded, tapes, opentelemetry, langfuse, langsmith, openai.
    Secrets and personal data are removed before anything is stored. Sessions that are no whole example of a person at
    work are set apart and counted: sub-agents, automatic prompts, copies, sessions without a beginning or an end. Files
    that have not changed since the last import are skipped. Needs `pip install "skillc[sessions]"`.

    Exit status: 0 done, 2 an error.
    """
    from skillc.sessions.importing import import_sessions
    from skillc.sessions.readers.registry import default_places, format_named
    from skillc.sessions.store import SessionStore

    form = format_named(form) if form else None
    places = list(paths)
    for agent in agents:
        found = default_places(format_named(agent))
        if not found:
            raise SkillcError(f"no sessions of `{agent}` are where it keeps them", hint="name the files or folders")
        places += found
    if not places:
        raise SkillcError("no sessions are named", hint="name files or folders, or use `--from claude-code`")
    with SessionStore(store, create=True) as opened:
        with _progress("reading") as show:
            imported = import_sessions(
                places,
                opened,
                format=form,
                workers=workers,
                report=lambda found: show(f"{found.sessions:,} sessions of {counted(found.files, 'file')}"),
            )
        if as_json:
            print_json(_imported_json(imported, opened))
        else:
            _print(_imported_table(imported, opened))


_UPSTREAMS = {"openai": "https://api.openai.com", "anthropic": "https://api.anthropic.com"}


@sessions.command(short_help="record the calls of a client", epilog="Example: skillc sessions record --to anthropic")
@click.option("--to", "upstream", required=True, metavar="ADDRESS", help="openai, anthropic, or the server's address.")
@click.option("--port", type=click.IntRange(0, 65535), default=8686, show_default=True, help="0 takes a free one.")
@click.option("--project", default=".", help="The project that the sessions belong to; by default this folder.")
@_store
@json_option
def record(upstream: str, port: int, project: str, store: Path, as_json: bool) -> None:
    """Record what OpenAI and Anthropic clients ask and get, until Ctrl-C, and import it.

    A proxy on the loopback interface: set the client's base address to it. Requests, replies and streams pass
    unchanged. What is kept is written without headers, secrets and personal data, to `recordings` beside the store.

    Exit status: 0 done, 2 an error.
    """
    from datetime import UTC, datetime

    from skillc.sessions.importing import import_sessions
    from skillc.sessions.recording import Recorder
    from skillc.sessions.store import SessionStore

    address = _UPSTREAMS.get(upstream, upstream)
    if not address.startswith(("http://", "https://")):
        raise SkillcError(f"`{upstream}` is no address", hint="write `openai`, `anthropic`, or `http://HOST:PORT`")
    name = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    recorder = Recorder(
        store.parent / "recordings" / f"{name}.jsonl",
        name,
        str(Path(project).resolve()),
        lambda message: click.echo(f"warning: {message}", err=True),
    )
    _serve(recorder, address, port)
    click.echo(
        f"recorded {counted(recorder.calls, 'call')}" + (f", {recorder.lost:,} lost" if recorder.lost else ""), err=True
    )
    with SessionStore(store, create=True) as opened:
        imported = import_sessions([recorder.path] if recorder.calls else [], opened, workers=1)
        if as_json:
            print_json(_imported_json(imported, opened))
        else:
            _print(_imported_table(imported, opened))


def _serve(recorder: Recorder, address: str, port: int) -> None:
    """Run the proxy until Ctrl-C or SIGTERM."""
    import asyncio
    import signal

    from skillc.sessions.recording import serve

    def ready(port: int) -> None:
        here = f"http://127.0.0.1:{port}"
        click.echo(f"recording calls to {address}; end with Ctrl-C", err=True)
        click.echo(f"  OPENAI_BASE_URL={here}/v1\n  ANTHROPIC_BASE_URL={here}", err=True)

    async def until_stopped() -> None:
        stop = asyncio.Event()
        for sign in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(sign, stop.set)
        await serve(recorder, address, port, ready, stop)

    asyncio.run(until_stopped())


@sessions.command("list", short_help="list stored sessions", epilog="Example: skillc sessions list --apart duplicate")
@click.option("--apart", metavar="REASON", help="Those that are set apart for this reason, or `all`. Default: usable.")
@click.option("--project", metavar="TEXT", help="Only sessions whose project contains this text.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="The most sessions.")
@_store
@json_option
def list_(apart: str | None, project: str | None, limit: int, store: Path, as_json: bool) -> None:
    """List the usable sessions of the store, the newest last.

    Exit status: 0 done, 2 an error.
    """
    from skillc.sessions.audit import REASONS
    from skillc.sessions.store import SessionStore
    from skillc.text import listed

    if apart not in (None, "all", *REASONS):
        raise SkillcError(f"no reason is called `{apart}`", hint=f"valid reasons: {listed((*REASONS, 'all'))}")
    with SessionStore(store) as opened:
        rows = list(opened.rows(reason="" if apart == "all" else apart, project=project))
    if as_json:
        print_json({"format_version": 1, "sessions": [_row_json(row) for row in rows[-limit:]], "total": len(rows)})
    else:
        _print(_list_table(rows[-limit:], len(rows)))


@sessions.command(short_help="show one session", epilog="Example: skillc sessions show 12")
@click.argument("session")
@_store
@json_option
def show(session: str, store: Path, as_json: bool) -> None:
    """Show SESSION, by its number or the beginning of its key: where it is from, why it is set apart, and its steps.

    Exit status: 0 done, 2 an error.
    """
    from skillc.sessions.store import SessionStore

    with SessionStore(store) as opened:
        row = opened.find(session)
        whole = opened.session(row.id)
    if as_json:
        print_json({"format_version": 1, **_row_json(row), **whole.to_json()})
        return
    _print(_session_text(row, whole))


@sessions.command(short_help="label sessions", epilog="Example: skillc sessions label --signals --skill tickets.skill")
@click.option(
    "--skill",
    "skills",
    multiple=True,
    metavar="SKILL",
    help="A known skill: a program, the folder of a skill, or only its name. Repeatable.",
)
@click.option("--signals", is_flag=True, help="Label all usable sessions by what they record, without a model.")
@click.option("--judge", "program", metavar="PROGRAM", type=ProgramPath(), help="Label by the judge of this program.")
@click.option(
    "--check",
    is_flag=True,
    help="With --judge: ask it three times about each session that a person labelled; no label.",
)
@click.option("--person", metavar="NAME", help="Who labels in the terminal; by default the login name.")
@plan_options
@_store
@json_option
def label(
    skills: tuple[str, ...],
    signals: bool,
    program: Path | None,
    check: bool,
    person: str | None,
    models: tuple[str, ...],
    settings: tuple[str, ...],
    offline: bool,
    store: Path,
    as_json: bool,
) -> int:
    """Label which skill each stored session exercised, and whether it worked.

    Without `--signals` or `--judge` a terminal view opens, for a person (needs `pip install "skillc[label]"`).
    `--signals` reads exit statuses, tests, undone changes, the user's next words, scores and the end of each session.
    `--judge` asks the judge over `session` in PROGRAM, which must have passed `--check` against a person's labels: two
    plain questions on each of these sessions, and one with a text that asks for the wrong outcome. The caps of its
    budget hold. A label has its source and its certainty: measured on made sessions at first, against the labels of
    persons once there are enough.

    Exit status: 0 done; 1 the judge did not pass its check; 2 an error; 3 stopped by the budget or because a model
    stayed out of reach (run the same command to resume).
    """
    from skillc.labels.skills import known_skills
    from skillc.sessions.store import SessionStore

    used = [f"`--{name}`" for name, given in (("signals", signals), ("judge", program), ("person", person)) if given]
    if len(used) > 1:
        raise SkillcError(f"{used[0]} and {used[1]} can't be used together", hint="leave one of them out")
    if program is None and (check or models or settings or offline):
        raise SkillcError("`--check`, `--model`, `--set` and `--offline` are for a judge", hint="add `--judge PROGRAM`")
    known = known_skills(skills)
    with SessionStore(store) as opened:
        if signals:
            _label_by_signals(opened, known, as_json)
        elif program is not None:
            from skillc.labels.judging import load_judge

            judge = load_judge(program, models=models, settings=settings, offline=offline)
            return _check(opened, judge, offline, as_json) if check else _judge(opened, judge, known, offline, as_json)
        else:
            _label_view(opened, tuple(known), person, as_json)
    return 0


def _check(store: SessionStore, judge: SessionJudge, offline: bool, as_json: bool) -> int:
    from skillc.labels.judging import check_judge
    from skillc.labels.report import record_json, record_text

    record = check_judge(store, judge, offline=offline)
    if as_json:
        print_json(record_json(record))
    else:
        _print(record_text(record))
    return 1 if record.problems else 0


def _judge(store: SessionStore, judge: SessionJudge, skills: Mapping[str, str], offline: bool, as_json: bool) -> int:
    from skillc.labels.judging import label_by_judge
    from skillc.labels.report import judging_json, judging_text

    found = label_by_judge(store, judge, skills, offline=offline)
    if as_json:
        print_json(judging_json(found))
    else:
        _print(judging_text(found))
    return 0 if found.stopped is None else 3


def _label_by_signals(store: SessionStore, skills: Mapping[str, str], as_json: bool) -> None:
    from skillc.labels.report import signals_json, signals_table
    from skillc.sessions.labelling import label_by_signals

    found = label_by_signals(store, skills)
    if as_json:
        print_json(signals_json(found))
    else:
        _print(signals_table(found))


def _label_view(store: SessionStore, skills: Sequence[str], person: str | None, as_json: bool) -> None:
    from getpass import getuser

    from skillc.labels.view import run_view

    who = person or getuser()
    given = run_view(store, skills, who)
    if as_json:
        print_json({"format_version": 1, "person": who, "labelled": given})
    else:
        click.echo(f"labelled {counted(given, 'session')} as {who}")


@sessions.command(
    short_help="how far the sources of labels agree", epilog="Example: skillc sessions agreement --skill route-tickets"
)
@click.option("--skill", metavar="NAME", help="Only labels for this skill.")
@_store
@json_option
def agreement(skill: str | None, store: Path, as_json: bool) -> None:
    """Report how far persons, judges and signals agree on whether sessions worked, and how often each is right.

    For each two sources: the share of equal outcomes and Cohen's kappa, with 95 % intervals. For each signal and judge
    with ten sessions or more that a person has labelled too: the measured rate, which becomes the certainty of its
    labels.

    Exit status: 0 done, 2 an error.
    """
    from skillc.labels.report import agreement_json, agreement_table
    from skillc.sessions.labelling import measure_certainties
    from skillc.sessions.store import SessionStore

    with SessionStore(store) as opened:
        found = measure_certainties(opened, skill)
    if not found.sessions:
        of = f" for `{skill}`" if skill else ""
        raise SkillcError(f"no session has a label{of}", hint="label them with `skillc sessions label --signals`")
    if as_json:
        print_json(agreement_json(found))
    else:
        _print(agreement_table(found))


@sessions.command(short_help="count stored sessions and what was removed", epilog="Example: skillc sessions report")
@_store
@json_option
def report(store: Path, as_json: bool) -> None:
    """Count the sessions of the store, usable and set apart by reason, and the values that were removed, by kind.

    Usable sessions with nearly the same request are counted as one group, which needs `pip install "skillc[sessions]"`.

    Exit status: 0 done, 2 an error.
    """
    from skillc.sessions.examples import cluster_store
    from skillc.sessions.store import SessionStore

    with SessionStore(store) as opened:
        with _progress("comparing requests") as show:
            sizes = cluster_store(opened, lambda done: show(counted(done, "session"))).sizes
        if as_json:
            largest = max(sizes.values(), default=0)
            print_json({**_store_json(opened), "groups": len(sizes), "largest_group": largest})
        else:
            _print(_store_table(opened))
            _print(_groups_text(sizes))


@sessions.command(short_help="list sessions with planted instructions", epilog="Example: skillc sessions suspects")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="The most sessions.")
@_store
@json_option
def suspects(limit: int, store: Path, as_json: bool) -> None:
    """List the sessions that are set apart because they may have instructions of somebody else, and what was found.

    Exit status: 0 done, 2 an error.
    """
    from skillc.sessions.store import SessionStore
    from skillc.sessions.verdicts import suspects as find

    with SessionStore(store) as opened:
        found = list(find(opened))
    if as_json:
        rows = [{**_row_json(each.row), "findings": _findings_json(each.findings)} for each in found[:limit]]
        print_json({"format_version": 1, "sessions": rows, "total": len(found)})
    else:
        _print(_suspects_text(found[:limit], len(found)))


_why = click.option("--why", required=True, metavar="TEXT", help="The reason; it is kept with the session.")
_person = click.option("--person", metavar="NAME", help="Who decides; by default the user's login name.")


@sessions.command(
    short_help="declare a suspect harmless",
    epilog="Example: skillc sessions clear 12 --why 'our own test of the filter'",
)
@click.argument("session")
@_why
@_person
@_store
@json_option
def clear(session: str, why: str, person: str | None, store: Path, as_json: bool) -> None:
    """Declare SESSION, a suspect or a withdrawn one, harmless, so that it can be learned from.

    It is a suspect again if it grows and more is found in it.

    Exit status: 0 done, 2 an error.
    """
    from skillc.provenance.quarantine import compiled_skills, mark_quarantined
    from skillc.sessions.store import SessionStore
    from skillc.sessions.verdicts import clear as declare

    with SessionStore(store) as opened:
        row = declare(opened, session, _decider(person), why)
        mark_quarantined(compiled_skills(Path(), opened), (), cleared=(row.key,))
    if as_json:
        print_json({"format_version": 1, **_row_json(row)})
    else:
        state = f"set apart: {row.reason}" if row.reason else "usable"
        click.echo(f"cleared {row.key}; it is {state}")


@sessions.command(
    short_help="let nothing be learned from sessions", epilog="Example: skillc sessions withdraw 12 --why 'faked page'"
)
@click.argument("session", nargs=-1, required=True)
@click.option("--cited-only", is_flag=True, help="Quarantine only rules whose edits name a failure of the session.")
@_why
@_person
@_store
@json_option
def withdraw(
    session: tuple[str, ...], cited_only: bool, why: str, person: str | None, store: Path, as_json: bool
) -> None:
    """Withdraw each SESSION with its copies, and quarantine the rules that were learned from them.

    A rule is quarantined if its edits name a failure of the session, and if its author could only read the session:
    what was read can have caused a rule that names other failures. --cited-only lists the latter instead.

    Compiled skills are looked for below this folder, and where compiles with sessions of this store wrote them. A skill
    with a quarantined rule is not installed; the next compile leaves the rows of these sessions out.

    Exit status: 0 done, 2 an error.
    """
    from skillc.provenance.quarantine import compiled_skills, mark_quarantined
    from skillc.sessions.store import SessionStore
    from skillc.sessions.verdicts import withdraw as take_back

    with SessionStore(store) as opened:
        keys = take_back(opened, session, _decider(person), why, cited_only=cited_only)
        narrowed = keys if cited_only else ()
        found = mark_quarantined(compiled_skills(Path(), opened), keys, narrowed=narrowed)
    if as_json:
        skills = [
            {
                "skill": str(each.paths.folder),
                "rules": [_held_json(rule) for rule in each.rules],
                "may_be_affected": [_held_json(rule) for rule in each.spared],
            }
            for each in found
        ]
        print_json({"format_version": 1, "withdrawn": list(keys), "quarantined": skills})
    else:
        _print(_withdrawn_text(keys, found))


def _decider(person: str | None) -> str:
    import getpass

    try:
        return (person or getpass.getuser()).strip() or "unknown"
    except (OSError, KeyError):
        return "unknown"


# ---- as text ---------------------------------------------------------------------------------------


def _print(what: RenderableType) -> None:
    from rich.console import Console

    Console(highlight=False, soft_wrap=False).print(what)


class _progress:  # noqa: N801 - used as a function
    """Show on a terminal how far something is."""

    def __init__(self, doing: str) -> None:
        self._doing = doing

    def __enter__(self) -> Callable[[str], None]:
        from rich.console import Console

        console = Console(stderr=True)
        self._status = console.status(self._doing) if console.is_terminal else None
        if self._status is None:
            return lambda done: None
        self._status.__enter__()
        status = self._status
        return lambda done: status.update(f"{self._doing}: {done}")

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.__exit__(None, None, None)


def _imported_table(found: Imported, store: SessionStore) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from skillc.diagnostics.render import printable

    known = f", {counted(found.known, 'file')} unchanged since the last import" if found.known else ""
    by_format = ", ".join(f"{number:,} {name}" for name, number in sorted(found.formats.items()))
    lines = [
        f"read {counted(found.sessions, 'session')} of {counted(found.files, 'file')}{known}; {found.new:,} are new"
    ]
    lines += [f"formats: {by_format}"] if by_format else []
    if found.unreadable:
        lines.append(f"not read: {counted(found.unreadable, 'record')}")
        for problem in found.problems[:5]:
            line = f":{problem.line}" if problem.line else ""
            lines.append(f"  {printable(problem.source)}{line}: {printable(problem.reason)}")
    return Group(*map(Text, lines), Text(""), _store_table(store))


def _store_table(store: SessionStore) -> RenderableType:
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from skillc.sessions.audit import REASONS

    counts = store.counts()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("sessions", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("")
    table.add_row(f"{counts[None]:,}", "usable", "")
    for reason, about in REASONS.items():
        if counts[reason]:
            table.add_row(f"{counts[reason]:,}", reason, about)
    table.add_section()
    table.add_row(f"{counts.total():,}", "in all", "")
    removed = store.removed()
    values = ", ".join(f"{number:,} {kind}" for kind, number in removed.most_common())
    said = f"removed before storing: {values}" if removed else "no secrets or personal data were found"
    return Group(table, Text(f"{said}\nnames of people are not looked for"))


def _groups_text(sizes: Counter[str]) -> RenderableType:
    from rich.text import Text

    several = [number for number in sizes.values() if number > 1]
    text = f"usable sessions by request: {counted(len(sizes), 'group')}"
    return Text(f"{text}, {len(several):,} of several sessions, the largest of {max(several):,}" if several else text)


def _list_table(rows: Sequence[Row], total: int) -> RenderableType:
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from skillc.diagnostics.render import printable

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("", "turns", "calls", "tokens"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("began", no_wrap=True)
    table.add_column("agent", max_width=12, overflow="ellipsis", no_wrap=True)
    table.add_column("project", min_width=8, overflow="fold")
    apart = any(row.reason for row in rows)
    if apart:
        table.add_column("apart", no_wrap=True)
    for row in rows:
        tokens = row.tokens.sent + row.tokens.received
        cells = (f"{row.turns:,}", f"{row.calls:,}", f"{tokens:,}" if tokens else "–", (row.began or "–")[:10])
        texts = (*cells, row.agent.split(" ")[0], row.project, *([row.reason or ""] if apart else []))
        table.add_row(str(row.id), *(Text(printable(each)) for each in texts))
    left = f"{counted(total, 'session')}" + (f", the last {len(rows):,} shown" if total > len(rows) else "")
    return Group(table, Text(left))


def _session_text(row: Row, whole: Any) -> RenderableType:
    from rich.text import Text

    from skillc.diagnostics.render import printable
    from skillc.sessions.audit import REASONS
    from skillc.trajectories.trajectory import Trajectory, render

    facts = [f"{row.key}  {row.agent}  {row.model}", f"from {whole.source}, began {row.began or 'at an unknown time'}"]
    if row.reason:
        of = f" ({row.copy_of})" if row.copy_of else ""
        facts.append(f"set apart: {row.reason}, {REASONS[row.reason]}{of}")
    if row.removed:
        facts.append("removed: " + ", ".join(f"{number:,} {kind}" for kind, number in row.removed.items()))
    facts += [f"mark: {mark.name} = {mark.value} {mark.source}".rstrip() for mark in whole.marks]
    body = render(Trajectory(whole.steps), None)
    return Text("\n".join(printable(line) for line in [*facts, "", *body.split("\n")]))


def _suspects_text(found: Sequence[Suspect], total: int) -> RenderableType:
    from rich.text import Text

    from skillc.diagnostics.render import printable

    lines: list[str] = []
    for each in found:
        lines.append(f"{each.row.id}  {each.row.key}  {each.row.project}")
        lines += [f"   step {finding.step}, {finding.kind}: {finding.excerpt}" for finding in each.findings]
    left = f"{counted(total, 'suspect')}" + (f", the first {len(found):,} shown" if total > len(found) else "")
    return Text("\n".join(printable(line) for line in [*lines, left]))


def _withdrawn_text(keys: Sequence[str], found: Sequence[Quarantined]) -> RenderableType:
    from rich.text import Text

    from skillc.diagnostics.render import printable

    lines = [f"withdrawn: {key}" for key in keys]
    for each in found:
        for what, rules in (("quarantined", each.rules), ("may be affected", each.spared)):
            if rules:
                lines.append(f"{what}: {each.paths.folder}, {counted(len(rules), 'rule')}")
            for rule in rules:
                how = "cited by" if rule.cited else "only read by the author of"
                lines.append(f"   {how}: {rule.text or '(a rule that was changed since)'}")
    lines.append(
        "compile the skill again to learn without them" if found else "no compiled skill holds a rule from them"
    )
    return Text("\n".join(map(printable, lines)))


# ---- as JSON ---------------------------------------------------------------------------------------


def _row_json(row: Row) -> dict[str, Any]:
    return {
        "id": row.id,
        "key": row.key,
        "format": row.format,
        "agent": row.agent,
        "model": row.model,
        "project": row.project,
        "began": row.began,
        "turns": row.turns,
        "calls": row.calls,
        "tokens": {"sent": row.tokens.sent, "cached": row.tokens.cached, "received": row.tokens.received},
        "apart": row.reason,
        "copy_of": row.copy_of,
        "removed": dict(row.removed),
    }


def _held_json(rule: Held) -> dict[str, Any]:
    return {"text": rule.text, "sessions": list(rule.sessions), "cited": list(rule.cited)}


def _findings_json(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    return [{"kind": each.kind, "step": each.step, "excerpt": each.excerpt} for each in findings]


def _store_json(store: SessionStore) -> dict[str, Any]:
    counts = store.counts()
    apart = {str(reason): number for reason, number in sorted(counts.items(), key=str) if reason is not None}
    return {"format_version": 1, "usable": counts[None], "apart": apart, "removed": dict(store.removed())}


def _imported_json(found: Imported, store: SessionStore) -> dict[str, Any]:
    problems = [{"source": each.source, "line": each.line, "reason": each.reason} for each in found.problems]
    return {
        **_store_json(store),
        "read": found.sessions,
        "new": found.new,
        "files": found.files,
        "unchanged_files": found.known,
        "formats": dict(found.formats),
        "unreadable": found.unreadable,
        "problems": problems,
    }
