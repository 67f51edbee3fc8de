"""The verb `watch`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from skillc.cli.arguments import ProgramPath
from skillc.errors import SkillcError


@click.command(epilog="Example: skillc watch tickets.skill")
@click.argument("skill", type=ProgramPath())
@click.option("--run", metavar="ID", help="Another run than the newest, by the beginning of its id.")
@click.option(
    "--view",
    type=click.Choice(("overview", "curve", "gates", "decisions", "examples", "spend")),
    default="overview",
    show_default=True,
    help="The view to begin with, or to print.",
)
@click.option("--once", is_flag=True, help="Print one frame and end.")
@click.option("--replay", is_flag=True, help="Play the run again, decision by decision.")
@click.option(
    "--speed",
    type=click.FloatRange(1 / 16, 64),
    default=1.0,
    show_default=True,
    metavar="N",
    help="Decisions a second of a replay.",
)
def watch(skill: Path, run: str | None, view: Any, once: bool, replay: bool, speed: float) -> int:
    """Show a running or finished compile of SKILL (a program, or the folder of a skill) on the terminal.

    It shows the score by decision with intervals, the stage, the gates as their operands narrow (holds, fails, open),
    each decision with its reason, the examples by version of the skill, spend by role against the caps, and the calls
    in flight. The run is read from its folder in `.skillc`: a compile at work is neither locked nor slowed down, and
    ending `watch` does not end it. `?` lists the keys.

    Without a terminal it prints each decision as it is made, and a frame at the end. --once prints the frame of now.
    --replay plays a recorded run, on a terminal with keys to pause, step and change the speed.

    Exit status: 0 done, 2 an error.
    """
    from rich.console import Console

    from skillc.watch import command

    if once and replay:
        raise SkillcError("`--once` and `--replay` can't be used together", hint="leave one of them out")
    console = Console(highlight=False)
    if replay:
        command.play(console, skill, run, view, speed)
    elif once:
        command.print_now(console, skill, run, view)
    else:
        command.follow(console, skill, run, view)
    return 0
