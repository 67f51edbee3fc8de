"""`skillc plan`: what a compile would use, and the most that it may spend."""

from __future__ import annotations

from pathlib import Path

import click

from skillc.cli.completing import ProgramPath
from skillc.cli.options import changes


@click.command(
    short_help="show what a compile would use and what it may spend",
    epilog="Example: skillc plan tickets.skill --set budget.cost=1",
)
@click.argument("program", type=ProgramPath())
@changes
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def plan(program: Path, models: tuple[str, ...], settings: tuple[str, ...], offline: bool, as_json: bool) -> int:
    """Show models, data, gates and the bounds of calls, tokens and money of PROGRAM, stage by stage.

    Every default is filled in. Nothing is sent, and nothing is written.

    Exit status: 0 done, 2 an error, or a budget that cannot pay.
    """
    import json

    from skillc.budget.render import as_json as to_json
    from skillc.budget.render import as_text
    from skillc.cli.errors import say_error, show_diagnostics
    from skillc.frontend import estimate, plan_file
    from skillc.models.serving.interpreter import refused_seed

    planned = plan_file(program, models=models, settings=settings, offline=offline, runnable=True, every_model=False)
    estimated = estimate(planned)
    if as_json:
        click.echo(json.dumps(to_json(planned.plan, estimated.bounds), ensure_ascii=False, indent=2))
    else:
        click.echo(as_text(planned.plan, estimated.bounds))
    show_diagnostics([*planned.diagnostics, *estimated.diagnostics])
    for model in planned.plan.models.values():
        refused = refused_seed(model, planned.root)
        if refused is not None:
            say_error(refused)
    return 2 if estimated.failed else 0
