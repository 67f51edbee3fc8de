"""The verbs that read a recorded run: `log`, `show`, `why` and `example`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillc.cli.arguments import ProgramPath, json_option
from skillc.cli.output import print_json

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

run_option = click.option(
    "--run", metavar="ID", help="Another run than the last, by the beginning of its id; `history` lists them."
)


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False)


def _print(content: RenderableType) -> None:
    """Print a view; outside of a terminal without the blanks that fill its lines."""
    console = _console()
    if console.is_terminal:
        console.print(content)
        return
    with console.capture() as captured:
        console.print(content)
    click.echo("\n".join(line.rstrip() for line in captured.get().split("\n")), nl=False)


@click.command(epilog="Example: skillc log tickets.skill")
@click.argument("skill", type=ProgramPath())
@run_option
@json_option
def log(skill: Path, run: str | None, as_json: bool) -> int:
    """List the steps of the last compile of SKILL (a program, or the folder of a skill), a line each.

    Each step has its result, the mean on validation before and after, the examples that the candidate cured and broke,
    the size of the candidate, the tokens and the cost that the step paid, and what changed, or why not. `≤` is the
    best that a candidate could still have reached when its gates were decided. `show` has everything of one step, and
    `history` the proposed edits of every compile.

    Exit status: 0 done, 2 an error.
    """
    from skillc.review.log import log_json, log_table
    from skillc.review.run_view import read_run

    view = read_run(skill, run)
    if as_json:
        print_json(log_json(view))
    else:
        _print(log_table(view, _console().width))
    return 0


@click.command(epilog="Example: skillc show tickets.skill 3")
@click.argument("skill", type=ProgramPath())
@click.argument("step", required=False)
@click.option("--full", is_flag=True, help="Whole rationales.")
@run_option
@json_option
def show(skill: Path, step: str | None, full: bool, run: str | None, as_json: bool) -> int:
    """Show everything of one STEP of the last compile of SKILL, by default of the last step.

    STEP is `3`, `#5` for a decision by its number, another place of the log such as `"slow update 1"`, or the beginning
    of a candidate's digest. Shown are the candidates with their edits as a difference, the trial of each edit alone,
    every gate with its value (holds, fails, open), the examples that an edit is credited with, the proposed
    edits that were left out and why, and what the step paid.

    Exit status: 0 done, 2 an error.
    """
    from skillc.review.run_view import read_run
    from skillc.review.selecting import find_decisions
    from skillc.review.show import show_json, show_table

    view = read_run(skill, run)
    decisions = find_decisions(view, step)
    if as_json:
        print_json(show_json(view, decisions))
    else:
        _print(show_table(view, decisions, full=full))
    return 0


@click.command(epilog="Example: skillc why skills/route-tickets/SKILL.md:12")
@click.argument("line", metavar="FILE[:LINE]")
@run_option
@json_option
def why(line: str, run: str | None, as_json: bool) -> int:
    """Show which step wrote a line of a skill, on what evidence, and what removing it would cost.

    FILE is a SKILL.md, another file of the skill's folder, or the program, which means its SKILL.md. The line has the
    number that an editor shows. Without LINE every line is printed with the step that wrote it.

    Shown are the step, the edit, the failures behind it, its gain on validation, its earlier texts, and what is known
    of the skill without it from recorded results; no model is called. A line that was written by hand after the
    compile, and one that the program wrote, are reported as such.

    Exit status: 0 done, 2 an error.
    """
    from skillc.review.tracing import line_at, read_traced
    from skillc.review.why import blame_table, why_json, why_table

    view, lines, path, number = read_traced(line, run)
    wanted = [line_at(lines, number, path)] if number is not None else list(lines)
    if as_json:
        print_json(why_json(view, wanted, path))
    elif number is not None:
        _print(why_table(view, wanted[0], path))
    else:
        _print(blame_table(view, wanted, path, _console().width))
    return 0


@click.command(epilog="Example: skillc example tickets.skill t245")
@click.argument("skill", type=ProgramPath())
@click.argument("id", metavar="EXAMPLE")
@click.option("--full", is_flag=True, help="Whole inputs, outputs and feedback.")
@run_option
@json_option
def example(skill: Path, id: str, full: bool, run: str | None, as_json: bool) -> int:  # noqa: A002 - the user's word
    """Follow one example over all steps of the last compile of SKILL.

    EXAMPLE is an id, the beginning of one, or the number of a line in the data, also as `tickets.jsonl:12`. Shown is
    whether it was right, wrong or unmeasured under each skill that was run on it, with the answer, which edit changed
    that, and each edit that was written for it or credited with it.

    Exit status: 0 done, 2 an error.
    """
    from skillc.review.example import example_json, example_table
    from skillc.review.run_view import read_run
    from skillc.review.selecting import find_example

    view = read_run(skill, run)
    name, placed = find_example(view, id)
    if as_json:
        print_json(example_json(view, name, placed))
    else:
        _print(example_table(view, name, placed, full=full))
    return 0
