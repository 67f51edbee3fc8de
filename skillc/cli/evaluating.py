"""The verbs that measure skills side by side and write none: `eval` and `compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from skillc.cli.arguments import ProgramPath, RunOptions, progress_options, setting_options, split_option
from skillc.cli.output import print_error, print_result

ARM_NAMES = ("none", "initial", "one_shot", "compiled", "base", "skill", "lora", "skill+lora")


class Names(click.ParamType[tuple[str, ...]]):
    """Some of several names, with commas between them."""

    name = "names"

    def __init__(self, *choices: str) -> None:
        self._choices = choices

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Return the names, each once."""
        if isinstance(value, tuple):
            return value
        names = tuple(dict.fromkeys(part.strip() for part in str(value).split(",") if part.strip()))
        unknown = next((name for name in names if name not in self._choices), None)
        if unknown is not None or not names:
            self.fail(f"`{unknown or value}` is none of {', '.join(self._choices)}", param, ctx)
        return names


@click.command("eval", epilog="Example: skillc eval tickets.skill --skill other/SKILL.md --split test")
@click.argument("program", type=ProgramPath())
@click.option("--skill", "skills", multiple=True, type=click.Path(path_type=Path), help="Score this skill file too.")
@click.option(
    "--arms",
    type=Names(*ARM_NAMES),
    help="The skills of the program to score: none (or base), initial, one_shot, compiled (or skill); with an adapter "
    "base, skill, lora, skill+lora, which are all of its default. one_shot is written by the optimizer model, once. "
    "Default: none,initial,compiled.",
)
@click.option(
    "--adapter",
    "adapters",
    multiple=True,
    metavar="[NAME=]FOLDER",
    help="A LoRA adapter for a target that skillc serves: does training beat the skill? Repeatable.",
)
@click.option(
    "--adapter-model",
    "adapter_models",
    multiple=True,
    metavar="MODEL",
    help="An adapter that a server already has, as a model: hosted_vllm/NAME. Repeatable.",
)
@click.option(
    "--judge-check",
    type=click.Path(path_type=Path),
    help="What `skillc judge check --json` printed: the judge's flip rate is said beside the answer about an adapter.",
)
@click.option("--allow-trained", is_flag=True, help="Score adapters on examples that they were trained on, and say so.")
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
@click.option(
    "--rollout",
    "rollouts",
    multiple=True,
    metavar="KIND",
    help="Measure with this kind of rollout too: react, or 'react { turns = 5 }'. Repeatable.",
)
@click.option(
    "--on",
    "programs",
    multiple=True,
    type=ProgramPath(),
    metavar="PROGRAM",
    help="Measure on the data of this related program too. Repeatable.",
)
@click.option(
    "--split",
    type=click.Choice(("validation", "train", "test", "all")),
    help="The examples; the lock counts each look at test. Default: validation; with an adapter test.",
)
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
    arms: tuple[str, ...] | None,
    adapters: tuple[str, ...],
    adapter_models: tuple[str, ...],
    judge_check: Path | None,
    allow_trained: bool,
    without: tuple[str, ...],
    against: str | None,
    models: tuple[str, ...],
    rollouts: tuple[str, ...],
    programs: tuple[Path, ...],
    split: str | None,
    samples: int | None,
    by: str | None,
    csv_file: Path | None,
    junit_file: Path | None,
    **values: Any,
) -> int:
    """Score the skills of PROGRAM: no skill, the initial one, the compiled one, and each --skill FILE.

    Each skill is compared with the one that --against names: paired by example, with an interval, a p-value, and the
    examples that it wins, loses and ties. Latency and cost are those of one rollout and of one right answer. With
    several --model, with --rollout and with --on all skills are scored there too, and a table shows which share of the
    compiled skill's gain survives. `--split all` scores every split apart. Replies of a compile or an earlier eval come
    from the cache.

    With --adapter or --adapter-model the base model and its LoRA adapter are scored without and with the skill, on the
    same held-out examples, and the answer is one sentence: did training beat the skill?

    Exit status: 0 done, 2 an error, 3 stopped by the budget or because a model stayed out of reach, 130 interrupted
    (run the same command to resume).
    """
    from skillc.cli.running import exit_status_measured, plan_measured, run_measured
    from skillc.evaluate.adapters.job import asks_for_adapters, prepare_arms
    from skillc.evaluate.adapters.report import arms_json, arms_preview_lines, arms_table
    from skillc.evaluate.adapters.run import evaluate_arms
    from skillc.evaluate.files import write_files
    from skillc.evaluate.job import EvalOptions
    from skillc.evaluate.several import evaluate_run, prepare_run
    from skillc.evaluate.several_report import run_json, run_preview_lines, run_table

    options = RunOptions(**values)
    planned = plan_measured(program, options)
    asked = EvalOptions(
        split=split,  # type: ignore[arg-type]  # click has checked it
        models=models,
        skills=skills,
        without=without,
        samples=samples,
        offline=options.offline,
        against=against,
        by=by,
        arms=arms or (),
        rollouts=rollouts,
        programs=programs,
        settings=options.settings,
        adapters=adapters,
        adapter_models=adapter_models,
        allow_trained=allow_trained,
        judge_check=judge_check,
        junit=junit_file is not None,
    )
    if asks_for_adapters(asked):
        job = prepare_arms(planned, asked)
        scored = run_measured("eval", job, arms_preview_lines(job), options, evaluate_arms)
        for note in write_files([scored], csv_file, None):
            click.echo(note, err=True)
        print_result(lambda: arms_json(scored), lambda: arms_table(scored), options, soft_wrap=False)
        return exit_status_measured(scored)
    run = prepare_run(planned, asked)
    found = run_measured("eval", run, run_preview_lines(run), options, evaluate_run)
    for note in write_files(found.each, csv_file, junit_file):
        click.echo(note, err=True)
    print_result(lambda: run_json(found), lambda: run_table(found), options, soft_wrap=False)
    for _, problem in found.failed:
        print_error(problem)
    return exit_status_measured(found) or (2 if found.failed else 0)


@click.command(epilog="Example: skillc compare tickets.skill other/skills/route-tickets --split test")
@click.argument("one", metavar="A", type=ProgramPath())
@click.argument("other", metavar="B", type=ProgramPath())
@click.option("--program", type=ProgramPath(), help="The program with the examples, where no lock names one.")
@click.option(
    "--model",
    metavar="MODEL",
    help="The model to use as the target: a role of the program, provider/name, or role=provider/name.",
)
@split_option("test", "validation", "train", help="The examples; the locks count each look at test.")
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
def compare(
    one: Path,
    other: Path,
    program: Path | None,
    model: str | None,
    split: str,
    samples: int | None,
    by: str | None,
    csv_file: Path | None,
    junit_file: Path | None,
    **values: Any,
) -> int:
    """Compare two skills, B against A: a program (its compiled skill), a lock, or a SKILL.md.

    Both are scored on the same examples, paired, with the verdict of a compile. Skills of different tasks are refused.
    If both compiles have recorded all outcomes on these examples, these are compared and no model is called.

    Exit status: 0 done, 2 an error, 3 stopped by the budget or because a model stayed out of reach, 130 interrupted
    (run the same command to resume).
    """
    from skillc.cli.running import exit_status_measured, plan_measured, run_measured
    from skillc.evaluate.compare.job import CompareOptions, prepare_compare
    from skillc.evaluate.compare.report import compare_json, compare_preview_lines, compare_table
    from skillc.evaluate.compare.sides import program_for, side_of
    from skillc.evaluate.files import write_files
    from skillc.evaluate.run import evaluate

    options = RunOptions(**values)
    sides = side_of(one), side_of(other)
    planned = plan_measured(program_for(sides, program), options)
    asked = CompareOptions(split, model, samples, by, options.offline)  # type: ignore[arg-type]  # click has checked it
    job = prepare_compare(planned, sides, asked)
    found = run_measured("compare", job, compare_preview_lines(job), options, evaluate)
    for note in write_files([found], csv_file, junit_file):
        click.echo(note, err=True)
    print_result(lambda: compare_json(job, found), lambda: compare_table(job, found), options, soft_wrap=False)
    return exit_status_measured(found)
