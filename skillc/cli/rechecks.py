"""The verb `recheck`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from skillc.cli.arguments import ProgramPath, RunOptions, progress_options, setting_options
from skillc.cli.output import print_result, show_diagnostics


@click.command(epilog="Example: skillc recheck tickets.skill --model target=openai/gpt-5.5-mini")
@click.argument("program", metavar="SKILL", type=ProgramPath())
@click.option(
    "--model",
    metavar="MODEL",
    help="The model to recheck with: a role of the program, provider/name, or role=provider/name. Default: target.",
)
@click.option(
    "--split",
    type=click.Choice(("validation", "train", "test")),
    default="validation",
    show_default=True,
    help="The examples; test counts one look in the lock.",
)
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
    fresh: bool,
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
    from dataclasses import replace

    from skillc.artifacts.loading import program_and_skill
    from skillc.cli.running import run_recheck
    from skillc.evaluate.recheck.job import RecheckOptions, prepare_recheck
    from skillc.evaluate.recheck.report import (
        plan_json,
        plan_table,
        recheck_json,
        recheck_markdown,
        recheck_table,
    )
    from skillc.frontend import plan_file

    options = RunOptions(**values, fresh=fresh)
    if style == "json":
        options = replace(options, as_json=True)
    file, folder = program_and_skill(program, "name the program instead: `skillc recheck PROGRAM`")
    planned = plan_file(file, settings=options.settings, offline=options.offline, runnable=True, complete=False)
    if not options.quiet:
        show_diagnostics(planned.diagnostics)
    asked = RecheckOptions(split, model, samples, examples, rules, every, options.offline)  # type: ignore[arg-type]  # click has checked it
    job = prepare_recheck(planned, asked, folder)
    if only_plan:
        print_result(lambda: plan_json(job), lambda: plan_table(job), options, soft_wrap=False)
        return 0
    found = run_recheck(planned, job, options)
    if style == "md" and not (options.as_json or options.json_lines):
        click.echo(recheck_markdown(found))
    else:
        print_result(lambda: recheck_json(found), lambda: recheck_table(found), options, soft_wrap=False)
    return found.status
