"""The verbs that measure one skill or its judges and write none: `recheck`, `adherence`, `noise`, `judge`, `audit`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from skillc.cli.arguments import (
    ProgramPath,
    RunOptions,
    json_option,
    plan_options,
    progress_options,
    setting_options,
    split_option,
)
from skillc.cli.output import print_json, print_result, show_diagnostics


@click.command(epilog="Example: skillc recheck tickets.skill --model target=openai/gpt-5.5-mini")
@click.argument("program", metavar="SKILL", type=ProgramPath())
@click.option(
    "--model",
    metavar="MODEL",
    help="The model to recheck with: a role of the program, provider/name, or role=provider/name. Default: target.",
)
@split_option("validation", "train", "test", help="The examples; test counts one look in the lock.")
@click.option("--rules", type=click.IntRange(min=0), help="Measure at most so many rules.")
@click.option("--all", "every", is_flag=True, help="Measure the rules of the initial skill too.")
@click.option("--examples", type=click.IntRange(min=1), help="Use at most so many examples of the split.")
@click.option("--samples", type=click.IntRange(min=1), help="Rollouts per example, for a temperature above 0.")
@click.option("--fresh", is_flag=True, help="Call the model again, even where a reply is cached.")
@click.option("--plan", "only_plan", is_flag=True, help="Print what would be measured and what it may cost, and stop.")
@click.option(
    "--format",
    "style",
    type=click.Choice(("text", "json", "md")),
    default="text",
    show_default=True,
    help="Output format.",
)
@setting_options
@progress_options
def recheck(
    program: Path,
    model: str | None,
    split: str,
    rules: int | None,
    every: bool,
    examples: int | None,
    samples: int | None,
    only_plan: bool,
    style: str,
    **values: Any,
) -> int:
    """Find which rules of a compiled skill still pay, and which harm, with a newer or another model.

    SKILL is a program or the folder of its compiled skill. The skill is compared with no skill, and with itself without
    each rule that it has learned, paired on the same examples. A rule pays or harms if that holds at 5 % for all
    comparisons together (Holm). The goal is compared with the one in the lock. Rules that more examples may concern are
    measured first. The caps of the program's budget hold; nothing is written but the cache of replies and, with
    `--split test`, the look in the lock.

    Exit status: 0 the skill holds; 1 a rule or the skill harms, or the goal is lower than in the lock; 2 an error, or
    not measurable; 3 stopped by the budget, 130 interrupted (run the same command to resume).
    """
    from skillc.artifacts.loading import program_and_skill
    from skillc.cli.running import plan_measured, run_measured
    from skillc.evaluate.recheck import report
    from skillc.evaluate.recheck.job import RecheckOptions, prepare_recheck
    from skillc.evaluate.recheck.run import recheck as run_recheck

    options = _with_style(RunOptions(**values), style)
    file, folder = program_and_skill(program, "name the program instead: `skillc recheck PROGRAM`")
    planned = plan_measured(file, options)
    asked = RecheckOptions(split, model, samples, examples, rules, every, options.offline)  # type: ignore[arg-type]  # click has checked it
    job = prepare_recheck(planned, asked, folder)
    if only_plan:
        print_result(lambda: report.plan_json(job), lambda: report.plan_table(job), options, soft_wrap=False)
        return 0
    found = run_measured("recheck", job, report.preview_lines(job), options, run_recheck)
    if style == "md" and not (options.as_json or options.json_lines):
        click.echo(report.recheck_markdown(found))
    else:
        print_result(lambda: report.recheck_json(found), lambda: report.recheck_table(found), options, soft_wrap=False)
    return found.status


@click.command(epilog="Example: skillc adherence tickets.skill --judge openai/gpt-5.5 --split test")
@click.argument("program", type=ProgramPath())
@click.option(
    "--judge",
    metavar="MODEL",
    help="The model that marks: a role of the program, provider/name, or role=provider/name. Default: the program's "
    "judge, else its optimizer.",
)
@click.option("--judge-all", is_flag=True, help="Ask the model about rules too that code can check.")
@click.option("--skill", type=click.Path(path_type=Path), help="Check the skill in this file instead.")
@split_option("validation", "train", "test", help="The examples; test counts one look in the lock.")
@click.option("--examples", type=click.IntRange(min=1), help="At most so many examples, evenly spread.")
@click.option("--samples", type=click.IntRange(min=1), help="Rollouts per example, for a temperature above 0.")
@click.option("--calls", type=click.IntRange(min=1), help="At most so many calls, instead of the program's cap.")
@click.option("--cost", metavar="DOLLARS", help="At most so many dollars, instead of the program's cap.")
@click.option("--marks", type=click.Path(path_type=Path), help="Write a line for each rule and rollout into this file.")
@click.option("--fresh", is_flag=True, help="Call the models again, even where a reply is cached.")
@click.option("--plan", "only_plan", is_flag=True, help="Print what would be marked and what it may cost, and stop.")
@setting_options
@progress_options
def adherence(
    program: Path,
    judge: str | None,
    judge_all: bool,
    skill: Path | None,
    split: str,
    examples: int | None,
    samples: int | None,
    calls: int | None,
    cost: str | None,
    marks: Path | None,
    only_plan: bool,
    **values: Any,
) -> int:
    """Report for each rule of the compiled skill of PROGRAM whether the target followed it, and whether that helped.

    The rollouts of a compile are read again, or run. Code marks the rules whose condition and answer it can check, a
    model marks the others: all rules of one rollout in one call, without the right answer. The report has for each
    rule in how many rollouts it applies, how often it was followed there, the goal where it was and was not, and the
    goal with the initial skill on the same examples. A judge that fails is no mark. The caps of the program's budget
    hold; nothing is written but the cache of replies, --marks and, with `--split test`, the look in the lock.

    Exit status: 0 done, 2 an error, or nothing could be marked; 3 stopped by the budget, 130 interrupted (run the same
    command to resume).
    """
    from skillc.cli.running import plan_measured, run_measured
    from skillc.evaluate.adherence import report
    from skillc.evaluate.adherence.job import AdherenceOptions, prepare_adherence
    from skillc.evaluate.adherence.run import check_adherence

    options = RunOptions(**values)
    planned = plan_measured(program, options)
    given = {"budget.calls": None if calls is None else str(calls), "budget.cost": cost}
    caps = {name: value for name, value in given.items() if value is not None}
    asked = AdherenceOptions(split, judge, skill, examples, samples, judge_all, caps, options.offline)  # type: ignore[arg-type]  # click has checked it
    job = prepare_adherence(planned, asked)
    if only_plan:
        print_result(lambda: report.plan_json(job), lambda: report.plan_table(job), options, soft_wrap=False)
        return 0
    found = run_measured("adherence", job, report.preview_lines(job), options, check_adherence)
    print_result(lambda: report.adherence_json(found), lambda: report.adherence_table(found), options, soft_wrap=False)
    if marks is not None:
        click.echo(report.write_marks(found, marks), err=True)
    return found.status


def _with_style(options: RunOptions, style: str) -> RunOptions:
    """Return the options with `--format json` as `--json`."""
    from dataclasses import replace

    return replace(options, as_json=True) if style == "json" else options


class Counts(click.ParamType[tuple[int, ...]]):
    """Whole numbers from 1, with commas between them."""

    name = "counts"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Return the numbers."""
        if isinstance(value, tuple):
            return value
        parts = [part.strip() for part in str(value).split(",")]
        if not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
            self.fail(f"`{value}` is no list of whole numbers above 0 such as `1,16`", param, ctx)
        return tuple(int(part) for part in parts)


@click.command(epilog="Example: skillc noise tickets.skill --repeats 5 --concurrency 1,16,64")
@click.argument("program", type=ProgramPath())
@click.option("--skill", type=click.Path(path_type=Path), help="Measure the skill in this file instead.")
@click.option(
    "--repeats",
    type=click.IntRange(min=2),
    help="Rollouts of each example at each concurrency. Default: 3, or twice the program's `samples`.",
)
@click.option(
    "--concurrency", type=Counts(), default="1,16", show_default=True, help="Rollouts in flight, a measurement each."
)
@split_option("validation", "train", help="The examples to run.")
@click.option("--examples", type=click.IntRange(min=1), help="How many of them, evenly spread. Default: all.")
@click.option("--fresh", is_flag=True, help="Call the model again, even where an earlier measurement is cached.")
@plan_options
@progress_options
def noise(
    program: Path,
    skill: Path | None,
    repeats: int | None,
    concurrency: tuple[int, ...],
    split: str,
    examples: int | None,
    **values: Any,
) -> int:
    """Measure how much a skill of PROGRAM differs from itself: the same skill on the same examples, several times.

    The compiled skill runs, or the initial one before the first compile. The report has the share of repeats in which
    an example scores differently, the standard deviation of the mean, the same between concurrencies, the gain that
    chance alone exceeds in 5 % of comparisons, and how often the program's gates accept the skill against itself. No
    repeat is answered from another one's replies. The caps of the program's budget hold.

    Exit status: 0 done, 2 an error, 3 stopped by the budget or because a model stayed out of reach, 130 interrupted
    (run the same command to resume).
    """
    from skillc.cli.running import exit_status_measured, plan_measured, run_measured
    from skillc.noise.report import noise_json, noise_table, preview_line
    from skillc.noise.run import NoiseOptions, measure_noise, prepare_noise

    options = RunOptions(**values)
    planned = plan_measured(program, options, every_model=False)
    asked = NoiseOptions(split, repeats, concurrency, examples, skill, options.offline)  # type: ignore[arg-type]  # click has checked it
    job = prepare_noise(planned, asked)
    found = run_measured("noise", job, [preview_line(job)], options, measure_noise)
    print_result(lambda: noise_json(found), lambda: noise_table(found), options)
    return exit_status_measured(found)


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
@split_option("validation", "train", help="The examples to run.")
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
    criterion, by score and on contested examples, the number of examples that show a gain with exact labels and with
    this judge and, with 30 labels or more, the mean corrected by them. The caps of the program's budget hold; nothing
    is written but the cache of replies.

    Exit status: 0 done; 1 a `require` on a flip rate fails (with --strict also a bias or a coin); 2 an error, or no
    answer could be judged; 3 stopped by the budget, 130 interrupted (run the same command to resume).
    """
    from skillc.cli.running import plan_measured, run_measured
    from skillc.evaluate.judge_check.job import JudgeCheckOptions, prepare_judge_check
    from skillc.evaluate.judge_check.report import judge_check_json, judge_check_table, preview_lines
    from skillc.evaluate.judge_check.run import check_judges, fill_sheet

    options = _with_style(RunOptions(**values), style)
    # A target may be any model of the program.
    planned = plan_measured(program, options, every_model=bool(targets))
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
        sheet=sheet,
        offline=options.offline,
    )
    job = prepare_judge_check(planned, asked)
    if sheet is not None:
        click.echo(run_measured("judge check", job, preview_lines(job), options, fill_sheet))
        return 0
    found = run_measured("judge check", job, preview_lines(job), options, check_judges)
    print_result(lambda: judge_check_json(found, strict=strict), lambda: judge_check_table(found), options)
    return found.status(strict=strict)


@click.command(epilog="Example: skillc audit tickets.skill --rollouts 4")
@click.argument("program", metavar="SKILL", type=ProgramPath())
@click.option("--skill", "folder", type=click.Path(path_type=Path), help="Audit the skill in this folder instead.")
@split_option("train", "validation", "test", help="The examples to run.")
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

    from skillc.artifacts.loading import program_and_skill
    from skillc.audit import audit as run_audit
    from skillc.audit import audit_json, audit_table, skill_of
    from skillc.frontend import plan_file
    from skillc.models.client import Client

    file, found = program_and_skill(program, "name the program and the folder: `skillc audit PROGRAM --skill {}`")
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
