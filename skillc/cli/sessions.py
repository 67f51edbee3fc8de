"""The verb `sessions`: recorded sessions of agents, imported, shown, cleared and withdrawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillc.cli.arguments import json_option, store_option
from skillc.cli.labelling import agreement, label
from skillc.cli.output import print_json, print_table
from skillc.errors import SkillcError
from skillc.text import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from skillc.provenance.quarantine import Held, Quarantined
    from skillc.sessions.importing import Imported
    from skillc.sessions.recording import Recorder
    from skillc.sessions.store import SessionStore


@click.group(epilog="Example: skillc sessions import ~/.claude/projects")
def sessions() -> None:
    """Read recorded sessions of agents into one store, without secrets and personal data.

    Exit status: 0 done, 2 an error.
    """


for _verb in (label, agreement):
    sessions.add_command(_verb)


@sessions.command(
    "import", short_help="read sessions into the store", epilog="Example: skillc sessions import --from claude-code"
)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--from", "agents", multiple=True, metavar="AGENT", help="Read where this agent keeps its sessions. Repeatable."
)
@click.option("--format", "form", metavar="FORMAT", help="The format of all PATHS; by default it is recognised.")
@click.option("--workers", type=click.IntRange(min=1), help="Processes; by default one a core.")
@store_option
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
        _print_imported(imported, opened, as_json)


def _print_imported(imported: Imported, store: SessionStore, as_json: bool) -> None:
    if as_json:
        from skillc.sessions.as_json import imported_json

        print_json(imported_json(imported, store))
    else:
        from skillc.sessions.report import imported_table

        print_table(imported_table(imported, store))


_UPSTREAMS = {"openai": "https://api.openai.com", "anthropic": "https://api.anthropic.com"}


@sessions.command(short_help="record the calls of a client", epilog="Example: skillc sessions record --to anthropic")
@click.option("--to", "upstream", required=True, metavar="ADDRESS", help="openai, anthropic, or the server's address.")
@click.option("--port", type=click.IntRange(0, 65535), default=8686, show_default=True, help="0 takes a free one.")
@click.option("--project", default=".", help="The project that the sessions belong to; by default this folder.")
@store_option
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
        _print_imported(imported, opened, as_json)


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
@store_option
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
        from skillc.sessions.as_json import row_json

        print_json({"format_version": 1, "sessions": [row_json(row) for row in rows[-limit:]], "total": len(rows)})
    else:
        from skillc.sessions.report import list_table

        print_table(list_table(rows[-limit:], len(rows)))


@sessions.command(short_help="show one session", epilog="Example: skillc sessions show 12")
@click.argument("session")
@store_option
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
        from skillc.sessions.as_json import row_json

        print_json({"format_version": 1, **row_json(row), **whole.to_json()})
    else:
        from skillc.sessions.report import session_text

        print_table(session_text(row, whole))


@sessions.command(short_help="count stored sessions and what was removed", epilog="Example: skillc sessions report")
@store_option
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
            from skillc.sessions.as_json import store_json

            largest = max(sizes.values(), default=0)
            print_json({**store_json(opened), "groups": len(sizes), "largest_group": largest})
        else:
            from skillc.sessions.report import groups_text, store_table

            print_table(store_table(opened))
            print_table(groups_text(sizes))


@sessions.command(short_help="list sessions with planted instructions", epilog="Example: skillc sessions suspects")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="The most sessions.")
@store_option
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
        from skillc.sessions.as_json import findings_json, row_json

        rows = [{**row_json(each.row), "findings": findings_json(each.findings)} for each in found[:limit]]
        print_json({"format_version": 1, "sessions": rows, "total": len(found)})
    else:
        from skillc.sessions.report import suspects_text

        print_table(suspects_text(found[:limit], len(found)))


_why = click.option("--why", required=True, metavar="TEXT", help="The reason; it is kept with the session.")
_person = click.option("--person", metavar="NAME", help="Who decides; by default the user's login name.")


@sessions.command(
    short_help="declare a suspect harmless",
    epilog="Example: skillc sessions clear 12 --why 'our own test of the filter'",
)
@click.argument("session")
@_why
@_person
@store_option
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
        from skillc.sessions.as_json import row_json

        print_json({"format_version": 1, **row_json(row)})
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
@store_option
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
        print_table(_withdrawn_text(keys, found))


def _decider(person: str | None) -> str:
    import getpass

    try:
        return (person or getpass.getuser()).strip() or "unknown"
    except (OSError, KeyError):
        return "unknown"


# ---- output ---------------------------------------------------------------------------------------


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


def _held_json(rule: Held) -> dict[str, Any]:
    return {"text": rule.text, "sessions": list(rule.sessions), "cited": list(rule.cited)}
