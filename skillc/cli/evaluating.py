"""The verbs that measure skills side by side and write none: `eval`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from skillc.cli.arguments import ProgramPath, RunOptions, progress_options, setting_options, split_option
from skillc.cli.output import print_result


@click.command("eval", epilog="Example: skillc eval tickets.skill --skill other/SKILL.md --split test")
@click.argument("program", type=ProgramPath())
@click.option("--skill", "skills", multiple=True, type=click.Path(path_type=Path), help="Score this skill file too.")
@click.option(
    "--without", multiple=True, type=click.Choice(("none", "initial", "compiled")), help="Leave one of these out."
)
@click.option(
    "--against",
    metavar="SKILL",
    help="The skill to compare the others with: none, initial, compiled, or a file. Default: initial.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="MODEL",
    help="A model to use as the target: a role of the program, provider/name, or role=provider/name. Repeatable.",
)
@split_option("validation", "train", "test", help="The examples; the lock counts each look at test.")
@click.option("--samples", type=click.IntRange(min=1), help="Rollouts per example, for a temperature above 0.")
@click.option("--by", metavar="FIELD", help="Show the scores for each value of a field of the data too.")
@click.option("--csv", "csv_file", type=click.Path(path_type=Path), help="Write a row for each rollout into this file.")
@click.option(
    "--junit",
    "junit_file",
    type=click.Path(path_type=Path),
    help="Write JUnit XML into this file, a test case for each example.",
)
@setting_options
@progress_options
def eval(  # noqa: A001 - the verb's name
    program: Path,
    skills: tuple[Path, ...],
    without: tuple[str, ...],
    against: str | None,
    models: tuple[str, ...],
    split: str,
    samples: int | None,
    by: str | None,
    csv_file: Path | None,
    junit_file: Path | None,
    **values: Any,
) -> int:
    """Score the skills of PROGRAM: no skill, the initial one, the compiled one, and each --skill FILE.

    Each skill is compared with the one that --against names: paired by example, with an interval, a p-value, and the
    examples that it wins, loses and ties. Latency and cost are those of one rollout and of one right answer. With
    several --model all skills are scored under each of them. Replies of a compile or an earlier eval come from the
    cache.

    Exit status: 0 done, 2 an error, 3 stopped by the budget or because a model stayed out of reach, 130 interrupted
    (run the same command to resume).
    """
    from skillc.cli.running import exit_status_measured, plan_measured, run_measured
    from skillc.evaluate.as_json import eval_json
    from skillc.evaluate.files import write_files
    from skillc.evaluate.job import EvalOptions, prepare_eval
    from skillc.evaluate.report import eval_table, preview_lines
    from skillc.evaluate.run import evaluate

    options = RunOptions(**values)
    planned = plan_measured(program, options)
    asked = EvalOptions(split, models, skills, without, samples, options.offline, against, by)  # type: ignore[arg-type]  # click has checked it
    job = prepare_eval(planned, asked)
    found = run_measured("eval", job, preview_lines(job), options, evaluate)
    for note in write_files([found], csv_file, junit_file):
        click.echo(note, err=True)
    print_result(lambda: eval_json(found), lambda: eval_table(found), options, soft_wrap=False)
    return exit_status_measured(found)
