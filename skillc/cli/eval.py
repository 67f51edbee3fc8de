"""`skillc eval`: skills and models side by side on one split."""

from __future__ import annotations

from pathlib import Path

import click

from skillc.cli.arguments import ProgramPath, print_result, progress_output, shown_on
from skillc.cli.arguments import settings as settings_options


@click.command(
    "eval",
    short_help="score skills on a split, with one model or several side by side",
    epilog="Example: skillc eval tickets.skill --skill other/SKILL.md --split test",
)
@click.argument("program", type=ProgramPath())
@click.option("--skill", "skills", multiple=True, type=click.Path(path_type=Path), help="Score this skill file too.")
@click.option(
    "--without", multiple=True, type=click.Choice(("none", "initial", "compiled")), help="Leave one of these out."
)
@click.option(
    "--against",
    metavar="SKILL",
    help="What the others are compared with: none, initial, compiled, or a file. Default: initial.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="MODEL",
    help="A model to try in place of the target: a role of the program, provider/name, or role=provider/name.",
)
@click.option(
    "--split",
    type=click.Choice(("validation", "train", "test")),
    default="validation",
    show_default=True,
    help="The examples; a look at test is counted in the lock.",
)
@click.option("--samples", type=click.IntRange(min=1), help="Rollouts per example, for a temperature above 0.")
@settings_options
@progress_output
def eval(  # noqa: A001 - the verb's name
    program: Path,
    skills: tuple[Path, ...],
    without: tuple[str, ...],
    against: str | None,
    models: tuple[str, ...],
    split: str,
    samples: int | None,
    settings: tuple[str, ...],
    offline: bool,
    as_json: bool,
    json_lines: bool,
    quiet: bool,
) -> int:
    """Score the skills of PROGRAM: no skill, the initial one, the compiled one, and each --skill FILE.

    Each skill is compared with the one that --against names, or with the initial skill: paired by example, with an
    interval and a p-value. With several --model all skills are scored under each of them. Replies that are known, from
    a compile or an earlier eval, are not asked for again.

    Exit status: 0 done, 2 an error, 3 stopped by the budget or by a model that stayed out of reach, 130 interrupted
    (the same command goes on).
    """
    from rich.console import Console

    from skillc.cli.output import show_diagnostics
    from skillc.cli.running import run_eval
    from skillc.evaluate.job import EvalOptions, prepare_eval
    from skillc.evaluate.report import eval_json, eval_table
    from skillc.frontend import plan_file

    shown = shown_on(Console(stderr=True, highlight=False), quiet=quiet, as_json=as_json, json_lines=json_lines)
    planned = plan_file(program, settings=settings, offline=offline, runnable=True, complete=False)
    if not quiet:
        show_diagnostics(planned.diagnostics)
    options = EvalOptions(split, models, skills, without, samples, offline, against)  # type: ignore[arg-type]  # click has checked it
    found = run_eval(planned, prepare_eval(planned, options), shown, offline=offline)
    print_result(
        lambda: eval_json(found), lambda: eval_table(found), as_json=as_json, json_lines=json_lines, soft_wrap=False
    )
    if found.stopped is None:
        return 0
    return 130 if found.stopped == "interrupted" else 3
