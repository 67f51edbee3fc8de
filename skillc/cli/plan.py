"""The verbs on what a compile needs: `plan` and `doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillc.cli.arguments import ProgramPath, changes, json_option
from skillc.cli.output import print_json

if TYPE_CHECKING:
    from skillc.doctor.report import Finding


@click.command(
    short_help="show what a compile would use and what it may spend",
    epilog="Example: skillc plan tickets.skill --set budget.cost=1",
)
@click.argument("program", type=ProgramPath())
@changes
@json_option
def plan(program: Path, models: tuple[str, ...], settings: tuple[str, ...], offline: bool, as_json: bool) -> int:
    """Show models, data, gates and the bounds of calls, tokens and money of PROGRAM, stage by stage.

    Every default is filled in. Nothing is sent, and nothing is written.

    Exit status: 0 done, 2 an error, or a budget that cannot pay.
    """
    from skillc.budget.render import as_json as to_json
    from skillc.budget.render import as_text
    from skillc.cli.output import say_error, show_diagnostics
    from skillc.frontend import estimate, plan_file
    from skillc.models.serving.interpreter import refused_seed

    planned = plan_file(program, models=models, settings=settings, offline=offline, runnable=True, every_model=False)
    estimated = estimate(planned)
    if as_json:
        print_json(to_json(planned.plan, estimated.bounds, estimated.diagnostics))
    else:
        click.echo(as_text(planned.plan, estimated.bounds, estimated.diagnostics))
    show_diagnostics([*planned.diagnostics, *estimated.diagnostics])
    for model in planned.plan.models.values():
        refused = refused_seed(model, planned.root)
        if refused is not None:
            say_error(refused)
    return 2 if estimated.failed else 0


@click.command(
    short_help="say what is missing for a compile, and the command that mends it",
    epilog="Example: skillc doctor tickets.skill --no-calls",
)
@click.argument("program", type=ProgramPath(), required=False)
@changes
@click.option("--no-calls", is_flag=True, help="Ask no model anything; only look for keys and addresses.")
@json_option
def doctor(
    program: Path | None,
    models: tuple[str, ...],
    settings: tuple[str, ...],
    offline: bool,
    no_calls: bool,
    as_json: bool,
) -> int:
    """Say what is installed, which models of PROGRAM answer, what a call costs, and whether disk and memory suffice.

    Each model is asked one small question, whose cost is said before; --no-calls leaves that out. Without PROGRAM only
    what is installed is looked at. Keys are never shown, only the names of their variables.

    Exit status: 0 nothing is missing, 1 something is, 2 an error.
    """
    from rich.console import Console

    from skillc.doctor.report import as_json as to_json
    from skillc.doctor.report import as_text, status_of

    findings = _examined(program, models, settings, offline, no_calls)
    if as_json:
        print_json(to_json(findings))
    else:
        console = Console(highlight=False)
        console.print(as_text(findings, console.width), soft_wrap=True)
    return status_of(findings)


def _examined(
    program: Path | None, models: tuple[str, ...], settings: tuple[str, ...], offline: bool, no_calls: bool
) -> list[Finding]:
    import asyncio

    from skillc.doctor.examine import examined, prepared, read_program, without_program
    from skillc.doctor.reach import ask, cost_told, unasked
    from skillc.errors import SkillcError
    from skillc.frontend import plan_file

    if program is None:
        if models or settings:
            raise SkillcError("`--model` and `--set` change a program, and none is named", hint="name the program")
        return without_program(Path())
    patient = read_program(plan_file(program, models=models, settings=settings, offline=offline))
    ready = prepared(patient)
    if no_calls or not ready.questions:
        return examined(patient, ready, unasked(ready, "not asked"))
    click.echo(cost_told(ready), err=True)
    return examined(patient, ready, asyncio.run(ask(ready)))
