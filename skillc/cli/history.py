"""`skillc history`: each candidate of each compile, and what became of every proposed edit."""

from __future__ import annotations

from pathlib import Path

import click

from skillc.cli.completing import ProgramPath


@click.command(
    short_help="show what became of every candidate and every proposed edit",
    epilog="Example: skillc history tickets.skill",
)
@click.argument("skill", type=ProgramPath())
@click.option("--last", is_flag=True, help="Only the last compile.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def history(skill: Path, last: bool, as_json: bool) -> int:
    """Show the compiles of SKILL (a program, or the folder of a skill): each step, candidate, gate result and edit.

    Each proposed edit is there with what became of it, such as accepted, screened out, waiting or merged into another,
    and with the counts that decided it: failures cured and right cases broken.

    Exit status: 0 done, 2 an error.
    """
    import json

    from rich.console import Console

    from skillc.history import as_json as to_json
    from skillc.history import runs_of, table

    runs = runs_of(skill)
    runs = runs[-1:] if last else runs
    if as_json:
        click.echo(json.dumps(to_json(runs), ensure_ascii=False, indent=2))
    else:
        Console(highlight=False).print(table(runs))
    return 0
