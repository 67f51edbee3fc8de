"""The verbs that write a skill: `compile` and `tidy`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillc.cli.arguments import ProgramPath, changes, delivery, print_result, progress_output, shown_on

if TYPE_CHECKING:
    from skillc.cli.running import Shown
    from skillc.frontend import Estimated, Planned


@click.command(
    "compile",
    short_help="improve the skill and write SKILL.md",
    epilog="Example: skillc compile tickets.skill --offline --require improved",
)
@click.argument("program", type=ProgramPath())
@changes
@delivery
@click.option("--take-edits", is_flag=True, help="First write the edits made by hand in SKILL.md into the program.")
@click.option("--sanity", is_flag=True, help="Only see whether feedback reaches the skill; writes nothing.")
@progress_output
def compile(  # noqa: A001 - the verb's name
    program: Path,
    models: tuple[str, ...],
    settings: tuple[str, ...],
    offline: bool,
    output: Path | None,
    require: str | None,
    fresh: bool,
    take_edits: bool,
    force: bool,
    sanity: bool,
    as_json: bool,
    json_lines: bool,
    quiet: bool,
) -> int:
    """Improve the skill of PROGRAM, test it on held-out examples, and write it with its lock and history.

    A SKILL.md that was edited by hand is never overwritten unasked: the compile stops before the first call and shows
    the difference. With --take-edits the edits become part of PROGRAM, which this compile and later ones start from.

    With --sanity it trains and validates on the same few training examples, in two steps and a handful of calls, and
    says which stage is broken where the skill does not change: status 0 or 1. Nothing is written.

    With --require improved, or `require improved` in PROGRAM, the skill is delivered only if the final test shows an
    improvement. With any other verdict, or none because the run was stopped, SKILL.md, module and lock stay as they
    are (the lock counts the look at the test split), and the skill is written to skills.candidate, which agents do not
    load.

    Exit status: 0 delivered, 1 not delivered because of the verdict, 2 an error, 3 stopped by the budget or by a model
    that stayed out of reach, 130 interrupted (the same command goes on).
    """
    from rich.console import Console

    from skillc.cli.output import show_diagnostics
    from skillc.cli.running import exit_status, planned_for, run_job
    from skillc.errors import SkillcError
    from skillc.frontend import estimate
    from skillc.pipeline.report import compile_json, compile_table

    shown = shown_on(Console(stderr=True, highlight=False), quiet=quiet, as_json=as_json, json_lines=json_lines)
    if take_edits:
        _take_edits(program, output)
    planned = planned_for(program, models, settings, offline=offline, require=require)
    estimated = estimate(planned)
    if sanity:
        if require is not None:
            raise SkillcError("`--sanity` proves nothing, so `--require` has nothing to ask", hint="leave one out")
        return _sanity(planned, estimated, shown, offline=offline, as_json=as_json)
    if not quiet:
        # Those of a budget that can't pay are shown with the error that they are.
        show_diagnostics([*planned.diagnostics, *(() if estimated.failed else estimated.diagnostics)])
    compiled = run_job(planned, estimated, shown, output=output, offline=offline, fresh=fresh, force=force)
    print_result(
        lambda: compile_json(compiled),
        lambda: compile_table(compiled, planned.plan.goal.name),
        as_json=as_json,
        json_lines=json_lines,
    )
    return exit_status(compiled)


def _take_edits(program: Path, output: Path | None) -> None:
    """Write the edits made by hand in SKILL.md into the program, and print what changed in it."""
    from skillc.artifact_paths import OUTPUT, ArtifactPaths
    from skillc.frontend import plan_file
    from skillc.versions.hand_edits import edit_of_skill
    from skillc.versions.taking import take_edits

    base = output or program.parent / OUTPUT
    paths = ArtifactPaths(base, plan_file(program, complete=False).plan.skill.artifact)
    edit = edit_of_skill(program, paths)
    taken = take_edits(program, paths, edit) if edit is not None else None
    if taken is None:
        click.echo(f"`{paths.skill}` has no edits that `{program}` lacks", err=True)
        return
    click.echo(taken.difference, err=True)
    parts = ", ".join(f"`{part}`" for part in taken.parts)
    click.echo(f"took the edits of {parts} into `{program}`", err=True)


def _sanity(planned: Planned, estimated: Estimated, shown: Shown, *, offline: bool, as_json: bool) -> int:
    from skillc.cli.running import run_sanity
    from skillc.pipeline.report import sanity_json, sanity_text
    from skillc.pipeline.sanity import plan_for_sanity

    found = run_sanity(plan_for_sanity(planned, estimated), estimated, shown, offline=offline)
    print_result(
        lambda: sanity_json(found),
        lambda: sanity_text(found, planned.plan.goal.name),
        as_json=as_json,
        json_lines=shown.json_lines,
    )
    if found.stopped == "interrupted":
        return 130
    return 0 if found.broken is None else 1


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

    from skillc.cli.output import show_diagnostics
    from skillc.cli.running import exit_status, planned_for, run_tidy
    from skillc.frontend import estimate
    from skillc.pipeline.tidy import TIDIED, tidy_json, tidy_report

    shown = shown_on(Console(stderr=True, highlight=False), quiet=quiet, as_json=as_json, json_lines=json_lines)
    planned = planned_for(program, models, settings, offline=offline, require=require)
    estimated = estimate(planned)
    if not quiet:
        show_diagnostics([*planned.diagnostics, *(() if estimated.failed else estimated.diagnostics)])
    found = run_tidy(planned, estimated, shown, skill, output=output, offline=offline, fresh=fresh, force=force)
    print_result(
        lambda: tidy_json(found),
        lambda: tidy_report(found, planned.plan.goal.name),
        as_json=as_json,
        json_lines=json_lines,
    )
    if found.compiled is not None:
        return exit_status(found.compiled)
    if found.stopped == "interrupted":
        return 130
    return 0 if found.stopped == TIDIED else 3
