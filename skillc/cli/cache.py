"""The verb `cache`: cached model replies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillc.cli.arguments import json_option
from skillc.cli.output import print_json
from skillc.errors import SkillcError
from skillc.text import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from skillc.models.cache_folder import EntryGroup

_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def _parse_age(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Return the seconds in `30d`, `12h` or `90 min`."""
    if value is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|min|h|d|w)", value)
    if match is None:
        raise click.BadParameter(f"'{value}' is not an age: write a number with s, min, h, d or w, as in '30d'")
    return float(match[1]) * _SECONDS[match[2]]


_folder = click.argument("folder", type=click.Path(path_type=Path), default=Path())


@click.group(epilog="Example: skillc cache show shop")
def cache() -> None:
    """Manage cached model replies.

    A compile caches every complete reply in `.skillc/cache` beside its program, and never evicts one. FOLDER is the
    program, its folder (the working folder by default), or the cache. All commands work while a compile runs: a removed
    reply is requested and paid for again when it is needed.

    Exit status: 0 done, 2 an error.
    """


@cache.command(
    short_help="show the cached replies by endpoint and model", epilog="Example: skillc cache show tickets.skill"
)
@_folder
@json_option
def show(folder: Path, as_json: bool) -> None:
    """Show the replies of FOLDER by endpoint and model: number, bytes, oldest and newest.

    Exit status: 0 done, 2 an error.
    """
    from skillc.models.cache_folder import disk_used, entries, find_folder, groups

    found = find_folder(folder)
    by_label = groups(entries(found))
    used = disk_used(found)
    if as_json:
        _print_json(folder=str(found), disk_bytes=used, groups=[_group_json(group) for group in by_label])
        return
    from rich.console import Console

    Console(highlight=False).print(_table(by_label, found, used))


@cache.command(
    short_help="remove replies and free their disk space", epilog="Example: skillc cache prune --older-than 30d"
)
@_folder
@click.option("--older-than", metavar="AGE", callback=_parse_age, help="Only replies older than this: 30d, 12h, 90min.")
@click.option("--model", help="Only replies of this model, as `show` names it.")
@click.option("--endpoint", help="Only replies of this endpoint, as `show` names it.")
@click.option("--all", "everything", is_flag=True, help="All replies.")
@click.option("--dry-run", is_flag=True, help="Only report what would be removed.")
@json_option
def prune(
    folder: Path,
    older_than: float | None,
    model: str | None,
    endpoint: str | None,
    everything: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Remove replies from FOLDER and free their disk space. Several conditions must all hold.

    Exit status: 0 done, 2 an error.
    """
    import time

    from skillc.models import cache_folder
    from skillc.models.endpoint import normalised
    from skillc.text import in_bytes

    conditions = (older_than, model, endpoint)
    if everything == any(condition is not None for condition in conditions):
        raise SkillcError(
            "`--all` can't be used with other conditions" if everything else "no condition is given",
            hint="choose by `--older-than 30d`, `--model NAME` and `--endpoint ID`, or remove everything with `--all`",
        )
    older = None if older_than is None else time.time() - older_than
    if endpoint is not None and "://" in endpoint:
        endpoint = normalised(endpoint, "`--endpoint`")
    found = cache_folder.find_folder(folder)
    pruned = cache_folder.prune(found, older=older, model=model, endpoint=endpoint, dry=dry_run)
    if as_json:
        _print_json(
            folder=str(found), dry_run=dry_run, entries=pruned.entries, bytes=pruned.size, freed_bytes=pruned.freed
        )
        return
    what = f"{counted(pruned.entries, 'reply', 'replies')} ({in_bytes(pruned.size)})"
    freed = f"; freed {in_bytes(pruned.freed)} of disk" if pruned.entries else ""
    click.echo(f"would remove {what}" if dry_run else f"removed {what}{freed}")


@cache.command(short_help="write replies to a file of JSON lines", epilog="Example: skillc cache export replies.jsonl")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@_folder
@json_option
def export(file: Path, folder: Path, as_json: bool) -> None:
    """Write the replies of FOLDER to FILE, one JSON object per line: key, endpoint, model, stored, reply.

    Exit status: 0 done, 2 an error.
    """
    from skillc.models import cache_folder

    moved = cache_folder.export_replies(cache_folder.find_folder(folder), file)
    if as_json:
        _print_json(file=str(file), entries=moved.entries, left_out=moved.left_out)
        return
    left = f"; {moved.left_out:,} could not be read" if moved.left_out else ""
    click.echo(f"wrote {counted(moved.entries, 'reply', 'replies')} to {file}{left}")


@cache.command(
    "import", short_help="add the replies of an exported file", epilog="Example: skillc cache import replies.jsonl"
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@_folder
@json_option
def take_in(file: Path, folder: Path, as_json: bool) -> None:
    """Add the replies of FILE, as `export` wrote it, to FOLDER. A reply that FOLDER already has is kept.

    Compiles use these replies as the models' own: import only files that you trust.

    Exit status: 0 done, 2 an error.
    """
    from skillc.models import cache_folder

    into = cache_folder.find_folder(folder, new=True)
    moved = cache_folder.import_replies(into, file)
    if as_json:
        _print_json(folder=str(into), entries=moved.entries, left_out=moved.left_out)
        return
    known = f"; {moved.left_out:,} already existed" if moved.left_out else ""
    click.echo(f"added {counted(moved.entries, 'reply', 'replies')} to {into}{known}")


def _group_json(group: EntryGroup) -> dict[str, Any]:
    from skillc.models.cache_folder import utc_text

    return {
        "endpoint": group.endpoint,
        "model": group.model,
        "entries": group.entries,
        "bytes": group.size,
        "oldest": utc_text(group.oldest),
        "newest": utc_text(group.newest),
    }


def _print_json(**values: Any) -> None:
    print_json({"format_version": 1, **values})


def _table(groups: Sequence[EntryGroup], folder: Path, disk: int) -> RenderableType:
    """Return a row per endpoint and model, and the total; days are local."""
    from rich import box
    from rich.console import Group as Renderables
    from rich.table import Table
    from rich.text import Text

    from skillc.text import in_bytes

    count, size = sum(group.entries for group in groups), sum(group.size for group in groups)
    total = Text(f"{counted(count, 'reply', 'replies')}, {in_bytes(size)} of text, {in_bytes(disk)} on disk")
    total.append(f"\n{folder}", style="dim")
    if not groups:
        return total
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("endpoint", "model"):
        table.add_column(name, overflow="fold")
    for name in ("replies", "size"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("oldest", "newest"):
        table.add_column(name, no_wrap=True)
    for group in groups:
        table.add_row(
            Text(group.endpoint or "–"),
            Text(group.model or "–"),
            f"{group.entries:,}",
            in_bytes(group.size),
            _day(group.oldest),
            _day(group.newest),
        )
    return Renderables(table, total)


def _day(stored: float) -> str:
    return datetime.fromtimestamp(stored).astimezone().strftime("%Y-%m-%d")
