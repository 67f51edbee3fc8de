"""`skillc breaking`: what got weaker since another version."""

from __future__ import annotations

from pathlib import Path

import click

from skillc.cli.completing import ProgramPath
from skillc.cli.options import findings_format


@click.command(
    short_help="say what got weaker since another version",
    epilog="Example: skillc breaking . --against origin/main",
)
@click.argument("programs", nargs=-1, required=True, type=ProgramPath())
@click.option(
    "--against", required=True, metavar="REF", help="A branch, tag or commit; or a file with the other version."
)
@findings_format
def breaking(programs: tuple[Path, ...], against: str, style: str, as_json: bool) -> int:
    """Report by rule what got weaker in PROGRAMS since REF: gates, budgets, the test split, frozen sections, metrics.

    Each of PROGRAMS is a program, or a folder whose programs are all compared. Meaning is compared, not text, and the
    files that a program uses are read at REF too; `std` is this skillc's in both. Warnings say what could not be
    compared. `skillc diff` shows all that changed.

    Exit status: 0 nothing got weaker, 1 something did, 2 an error.
    """
    import json

    from skillc.checking import Looked
    from skillc.cli.findings import show
    from skillc.versions.findings import compare
    from skillc.versions.show import as_json as to_json

    compared = compare(programs, against)
    if as_json or style == "json":
        click.echo(json.dumps(to_json(compared, against, "the working tree"), ensure_ascii=False, indent=2))
    else:
        for each in compared:
            if each.state == "new":
                click.echo(f"`{each.program}` is new since `{against}`: there is nothing to compare it with", err=True)
        show([Looked(Path(each.program), each.findings) for each in compared], style)
    return 1 if any(each.weaker for each in compared) else 0
