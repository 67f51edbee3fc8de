"""The verb `judge`: how far the judges of a program can be trusted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from skillc.cli.arguments import ProgramPath, RunOptions, plan_options, progress_options
from skillc.cli.output import print_result, show_diagnostics


@click.group(epilog="Example: skillc judge check tickets.skill")
def judge() -> None:
    """Measure the models that judge answers in a program, before a run relies on them.

    Exit status: 0 done, 1 a `require` on a flip rate fails, 2 an error, 3 stopped by the budget, 130 interrupted.
    """


@judge.command(
    short_help="measure noise, biases and agreement of a program's judges",
    epilog="Example: skillc judge check tickets.skill --labels labels.jsonl",
)
@click.argument("program", type=ProgramPath())
@click.option("--metric", help="Check only the judges that this metric reads.")
@click.option("--labels", type=click.Path(path_type=Path), help="Labels of people: a file as `--sheet` writes it.")
@click.option("--truth", metavar="METRIC", help="Take this metric, which reads no judge, as the label of each rollout.")
@click.option("--sheet", type=click.Path(path_type=Path), help="Write the answers into this file for labels, and stop.")
@click.option("--repeats", type=click.IntRange(min=2), default=3, show_default=True, help="Judgements of each answer.")
@click.option(
    "--split",
    type=click.Choice(("validation", "train")),
    default="validation",
    show_default=True,
    help="The examples to run.",
)
@click.option(
    "--examples", type=click.IntRange(min=1), default=100, show_default=True, help="At most so many, evenly spread."
)
@click.option("--samples", type=click.IntRange(min=1), help="Rollouts per example. Default: the program's.")
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="MODEL",
    help="A model that answers: a role, provider/name, or role=provider/name. Two show whether a judge prefers its own "
    "family. Default: target.",
)
@click.option("--skill", type=click.Path(path_type=Path), help="Judge answers with the skill in this file instead.")
@click.option("--strict", is_flag=True, help="Exit with status 1 for a bias, and for a judge that is a coin, too.")
@click.option("--fresh", is_flag=True, help="Call the models again, even where a reply is cached.")
@click.option(
    "--format", "style", type=click.Choice(("text", "json")), default="text", show_default=True, help="Output format."
)
@plan_options
@progress_options
def check(
    program: Path,
    metric: str | None,
    labels: Path | None,
    truth: str | None,
    sheet: Path | None,
    repeats: int,
    split: str,
    examples: int,
    samples: int | None,
    targets: tuple[str, ...],
    skill: Path | None,
    strict: bool,
    style: str,
    **values: Any,
) -> int:
    """Measure how far the judges of PROGRAM can be trusted.

    Answers of the compiled skill, or of the initial one before the first compile, are judged several times: as they
    are, with the rubric in another order or the two answers exchanged, with padding, and with texts that ask for the
    best verdict. The report has the share of judgements that differ, and each bias with an interval; a bias is found
    if it holds at 5 % for all tests of a judge together (Holm). With labels it has the agreement overall, by
    criterion, by score and on contested examples and, with 30 labels or more, the mean corrected by them. The caps of
    the program's budget hold; nothing is written but the cache of replies.

    Exit status: 0 done; 1 a `require` on a flip rate fails (with --strict also a bias or a coin); 2 an error, or no
    answer could be judged; 3 stopped by the budget, 130 interrupted (run the same command to resume).
    """
    from dataclasses import replace

    from skillc.cli.running import run_judge_check, run_judge_sheet
    from skillc.evaluate.judge_check.job import JudgeCheckOptions, prepare_judge_check
    from skillc.evaluate.judge_check.report import judge_check_json, judge_check_table
    from skillc.frontend import plan_file

    options = RunOptions(**values)
    if style == "json":
        options = replace(options, as_json=True)
    planned = plan_file(
        program,
        models=options.models,
        settings=options.settings,
        offline=options.offline,
        runnable=True,
        complete=False,
        # A target may be any model of the program.
        every_model=bool(targets),
    )
    if not options.quiet:
        show_diagnostics(planned.diagnostics)
    asked = JudgeCheckOptions(
        metric=metric,
        labels=labels,
        truth=truth,
        repeats=repeats,
        split=split,  # type: ignore[arg-type]  # click has checked it
        examples=examples,
        samples=samples,
        targets=targets,
        skill=skill,
        sheet=sheet is not None,
        offline=options.offline,
    )
    job = prepare_judge_check(planned, asked)
    if sheet is not None:
        click.echo(run_judge_sheet(planned, job, sheet, options))
        return 0
    found = run_judge_check(planned, job, options)
    print_result(lambda: judge_check_json(found, strict=strict), lambda: judge_check_table(found), options)
    return found.status(strict=strict)
