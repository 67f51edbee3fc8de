"""`skillc tidy`: take out what does not help."""

from __future__ import annotations

from pathlib import Path

import click

from skillc.cli.completing import ProgramPath
from skillc.cli.options import changes, delivery, print_result, progress_output, shown_on


@click.command(
    short_help="take rules without support out of a skill, and shorten the rest",
    epilog="Example: skillc tidy tickets.skill --offline",
)
@click.argument("program", type=ProgramPath())
@click.option("--skill", type=click.Path(path_type=Path), help="Tidy this skill file in place of the compiled skill.")
@changes
@delivery
@progress_output
def tidy(
    program: Path,
    skill: Path | None,
    models: tuple[str, ...],
    settings: tuple[str, ...],
    offline: bool,
    output: Path | None,
    require: str | None,
    fresh: bool,
    force: bool,
    as_json: bool,
    json_lines: bool,
    quiet: bool,
) -> int:
    """Take rules without support out of the compiled skill of PROGRAM, join and order the rest, and write it.

    Two candidates are tried: its open sections as the optimizer writes them anew, and the skill without the rules that
    cured nothing on validation. One is taken only if it has fewer tokens and no lower goal on validation, and if the
    gates of PROGRAM hold that do not ask for a gain. Then it is tested on held-out examples and written with its lock
    and history, as a compile does; the look at the test split is counted. If none is taken, no file is changed and
    nothing is tested.

    A SKILL.md that was edited by hand is never overwritten unasked: the tidying stops before the first call.

    Exit status: 0 delivered, or nothing to leave out; 1 not delivered because of the verdict, 2 an error, 3 stopped by
    the budget or by a model that stayed out of reach, 130 interrupted (the same command goes on).
    """
    from rich.console import Console

    from skillc.cli.errors import show_diagnostics
    from skillc.cli.running import exit_status, planned_for, run_tidy
    from skillc.frontend import estimate
    from skillc.tidying import TIDIED, tidied_json, tidied_text

    shown = shown_on(Console(stderr=True, highlight=False), quiet=quiet, as_json=as_json, json_lines=json_lines)
    planned = planned_for(program, models, settings, offline=offline, require=require)
    estimated = estimate(planned)
    if not quiet:
        show_diagnostics([*planned.diagnostics, *(() if estimated.failed else estimated.diagnostics)])
    found = run_tidy(planned, estimated, shown, skill, output=output, offline=offline, fresh=fresh, force=force)
    print_result(
        lambda: tidied_json(found),
        lambda: tidied_text(found, planned.plan.goal.name),
        as_json=as_json,
        json_lines=json_lines,
    )
    if found.compiled is not None:
        return exit_status(found.compiled)
    if found.stopped == "interrupted":
        return 130
    return 0 if found.stopped == TIDIED else 3
