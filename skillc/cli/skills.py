"""The verbs on compiled skills: `install` and `history`."""

from __future__ import annotations

from pathlib import Path

import click

from skillc.cli.arguments import ProgramPath, json_option
from skillc.cli.output import print_json

_AGENTS = ("claude-code", "codex", "opencode", "hermes")


@click.command(
    short_help="copy a compiled skill to where an agent reads it",
    epilog="Example: skillc install tickets.skill --to claude-code --to codex --project .",
)
@click.argument("skill", type=ProgramPath())
@click.option("--to", "agents", multiple=True, required=True, type=click.Choice(_AGENTS), help="The agent; may repeat.")
@click.option("--project", type=click.Path(path_type=Path), help="Into this project (default: the current folder).")
@click.option("--user", is_flag=True, help="Into your own folder of the agent, for all projects.")
@click.option("--force", is_flag=True, help="Overwrite what was changed there.")
@click.option("--dry-run", is_flag=True, help="Print what would be done.")
@json_option
def install(
    skill: Path, agents: tuple[str, ...], project: Path | None, user: bool, force: bool, dry_run: bool, as_json: bool
) -> int:
    """Copy the compiled SKILL (a program, or the folder of a skill) to where an agent reads it.

    The folder is copied whole or not at all, with files of your own in it such as `references/`. An earlier install
    that nobody changed is updated. One that was changed, that another tool wrote, or that came from another skill of
    that name is left as it is, and the difference is shown.

    Exit status: 0 done, 2 an error.
    """
    import os

    from skillc.artifacts.install import install_json, install_skill, install_text
    from skillc.errors import SkillcError

    if user and project is not None:
        raise SkillcError("`--user` and `--project` name two places", hint="leave one out")
    where = None if user else project or Path()
    done = install_skill(skill, agents, project=where, environment=os.environ, force=force, dry_run=dry_run)
    if as_json:
        print_json(install_json(done, dry_run=dry_run))
    else:
        click.echo(install_text(done, dry_run=dry_run))
    return 0


@click.command(
    short_help="show what became of every candidate and every proposed edit",
    epilog="Example: skillc history tickets.skill",
)
@click.argument("skill", type=ProgramPath())
@click.option("--last", is_flag=True, help="Only the last compile.")
@json_option
def history(skill: Path, last: bool, as_json: bool) -> int:
    """Show the compiles of SKILL (a program, or the folder of a skill): each step, candidate, gate result and edit.

    Each proposed edit is there with what became of it, such as accepted, screened out, waiting or merged into another,
    and with the counts that decided it: failures cured and right cases broken.

    Exit status: 0 done, 2 an error.
    """
    from rich.console import Console

    from skillc.artifacts.history_report import history_json, history_table, read_runs

    runs = read_runs(skill)
    runs = runs[-1:] if last else runs
    if as_json:
        print_json(history_json(runs))
    else:
        Console(highlight=False).print(history_table(runs))
    return 0
