"""The verb `audit`."""

from __future__ import annotations

from pathlib import Path

import click

from skillc.cli.arguments import ProgramPath, json_option, plan_options
from skillc.cli.output import print_json, show_diagnostics


@click.command(epilog="Example: skillc audit tickets.skill --rollouts 4")
@click.argument("program", metavar="SKILL", type=ProgramPath())
@click.option("--skill", "folder", type=click.Path(path_type=Path), help="Audit the skill in this folder instead.")
@click.option(
    "--split",
    type=click.Choice(("train", "validation", "test")),
    default="train",
    show_default=True,
    help="The examples to run.",
)
@click.option("--rollouts", type=click.IntRange(min=1), default=8, show_default=True, help="How many of them.")
@click.option("--exit-code", is_flag=True, help="Exit with status 1 if a file was never opened.")
@plan_options
@json_option
def audit(
    program: Path,
    folder: Path | None,
    split: str,
    rollouts: int,
    exit_code: bool,
    models: tuple[str, ...],
    settings: tuple[str, ...],
    offline: bool,
    as_json: bool,
) -> int:
    """List which files and sections of SKILL (a program, or the folder of a skill) fresh rollouts never open.

    A few examples run with the compiled skill, or the initial one before the first compile. A file counts as opened if
    a call of a tool names it or returns its text; a section counts as quoted if five words in a row of it are in what
    the agent wrote. Rollouts without a folder read all sections, and the report says so. The caps of the program's
    budget hold. Nothing is scored, and nothing is written but the cache of replies.

    Exit status: 0 done, 1 with --exit-code if a file was never opened, 2 an error.
    """
    from rich.console import Console

    from skillc.audit.report import audit_json, audit_table
    from skillc.audit.run import audit as run_audit
    from skillc.audit.run import audited, skill_of
    from skillc.frontend import plan_file
    from skillc.models.client import Client

    file, found = audited(program)
    planned = plan_file(file, models=models, settings=settings, offline=offline, runnable=True, every_model=False)
    show_diagnostics(planned.diagnostics)
    document = skill_of(planned, folder or found)
    cache = planned.root / ".skillc" / "cache"
    with Client(planned.plan, cache_folder=cache, offline=offline, root=planned.root) as client:
        result = run_audit(planned, document, client, split=split, count=rollouts)  # type: ignore[arg-type]
    if as_json:
        print_json(audit_json(result))
    else:
        Console(highlight=False).print(audit_table(result))
    return 1 if exit_code and result.never_opened else 0
