"""The verbs that write a skill, `compile`, `tidy` and `ablate`, and `serve`. What they share is in `running.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from skillc.cli.arguments import (
    ProgramPath,
    RunOptions,
    delivery_options,
    plan_options,
    progress_options,
)
from skillc.cli.output import print_json, print_result
from skillc.errors import SkillcError


@click.command("compile", epilog="Example: skillc compile tickets.skill --offline --require improved")
@click.argument("program", type=ProgramPath())
@plan_options
@delivery_options
@click.option("--take-edits", is_flag=True, help="First copy the edits made by hand in SKILL.md into the program.")
@click.option(
    "--kb",
    "base",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="SKILLC_KB",
    show_envvar=True,
    help="Add the compile to the knowledge base in this folder.",
)
@click.option("--sanity", is_flag=True, help="Only check whether feedback reaches the skill; write nothing.")
@progress_options
def compile(  # noqa: A001 - the verb's name
    program: Path, take_edits: bool, base: Path | None, sanity: bool, **values: Any
) -> int:
    """Improve the skill of PROGRAM, test it on held-out examples, and write it with its lock and history.

    A SKILL.md that was edited by hand is not overwritten: the compile stops before the first call and shows the
    difference. With --take-edits the edits become part of PROGRAM, which this compile and later ones start from.

    With --sanity it trains and validates on the same few training examples, in two steps and a handful of calls. If
    the skill does not change, it reports which stage is broken: status 0 or 1. Nothing is written.

    With --require improved, or `require improved` in PROGRAM, the skill is delivered only if the final test shows an
    improvement. With any other verdict, or none because the run was stopped, SKILL.md, module and lock are not changed
    (the lock counts the look at the test split), and the skill is written to skills.candidate, which agents do not
    load.

    With --kb a compile that was completed is added to a knowledge base, delivered or not; see `skillc export kb`.

    Exit status: 0 delivered, 1 not delivered because of the verdict, 2 an error, 3 stopped by the budget or because a
    model stayed out of reach, 130 interrupted (run the same command to resume).
    """
    from skillc.cli.running import exit_status, plan_run, run_compile
    from skillc.pipeline.report import compile_json, compile_table

    options = RunOptions(**values)
    if take_edits:
        _take_edits(program, options.output)
    if sanity:
        return _check_sanity(program, options)
    planned, estimated = plan_run(program, options)
    compiled = run_compile(planned, estimated, options)
    print_result(lambda: compile_json(compiled), lambda: compile_table(compiled, planned.plan.goal.name), options)
    status = exit_status(compiled)
    if base is not None and status in (0, 1):
        from skillc.export.knowledge_base import export_entry

        done = export_entry(compiled.artifact.parent, base)
        click.echo(f"{done.entry} is there already" if done.known else f"wrote {done.entry}", err=True)
    return status


def _take_edits(program: Path, output: Path | None) -> None:
    """Copy the edits made by hand in SKILL.md into the program, and print what changed in it."""
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


def _check_sanity(program: Path, options: RunOptions) -> int:
    from skillc.cli.running import plan_run, run_sanity
    from skillc.pipeline.report import sanity_json, sanity_text

    planned, estimated = plan_run(program, options)
    if options.require is not None:
        raise SkillcError("`--sanity` has no verdict for `--require`", hint="leave one of them out")
    found = run_sanity(planned, estimated, options)
    print_result(lambda: sanity_json(found), lambda: sanity_text(found, planned.plan.goal.name), options)
    if found.stopped == "interrupted":
        return 130
    return 0 if found.broken is None else 1


@click.command(epilog="Example: skillc tidy tickets.skill --offline")
@click.argument("program", type=ProgramPath())
@click.option("--skill", type=click.Path(path_type=Path), help="Tidy this skill file instead of the compiled skill.")
@plan_options
@delivery_options
@progress_options
def tidy(program: Path, skill: Path | None, **values: Any) -> int:
    """Remove unsupported rules from the compiled skill of PROGRAM, merge and reorder the rest, and write it.

    There are two candidates: the trainable sections as the optimizer rewrites them, and the skill without the rules
    that cured nothing on validation. One is accepted only if it has fewer tokens and no lower goal on validation, and
    passes the gates of PROGRAM that do not ask for a gain. It is then tested on held-out examples and written with its
    lock and history, as by a compile; the look at the test split is counted. If none is accepted, no file is changed
    and nothing is tested.

    A SKILL.md that was edited by hand is not overwritten: the command stops before the first call.

    Exit status: 0 delivered, or nothing to remove; 1 not delivered because of the verdict, 2 an error, 3 stopped by
    the budget or because a model stayed out of reach, 130 interrupted (run the same command to resume).
    """
    from skillc.cli.running import exit_status, plan_run, run_tidy
    from skillc.pipeline.tidy import TIDIED, tidy_json, tidy_report

    options = RunOptions(**values)
    planned, estimated = plan_run(program, options)
    found = run_tidy(planned, estimated, skill, options)
    print_result(lambda: tidy_json(found), lambda: tidy_report(found, planned.plan.goal.name), options)
    if found.compiled is not None:
        return exit_status(found.compiled)
    if found.stopped == "interrupted":
        return 130
    return 0 if found.stopped == TIDIED else 3


@click.command(epilog="Example: skillc ablate tickets.skill --calls 2000 --dry-run")
@click.argument("program", type=ProgramPath())
@click.option("--skill", type=click.Path(path_type=Path), help="Take this skill file instead of the compiled skill.")
@click.option("--calls", type=click.IntRange(min=1), help="At most so many calls, instead of the program's cap.")
@click.option("--cost", metavar="DOLLARS", help="At most so many dollars, instead of the program's cap.")
@click.option("--rules", type=click.IntRange(min=1), help="Leave out at most so many rules, the least supported first.")
@click.option(
    "--keep", type=click.IntRange(min=1), multiple=True, metavar="N", help="Keep rule N of the skill. Repeatable."
)
@click.option("--dry-run", is_flag=True, help="Only measure what each rule adds; drop and write nothing.")
@plan_options
@delivery_options
@progress_options
def ablate(
    program: Path,
    skill: Path | None,
    calls: int | None,
    cost: str | None,
    rules: int | None,
    keep: tuple[int, ...],
    dry_run: bool,
    **values: Any,
) -> int:
    """Measure the compiled skill of PROGRAM without each rule, and drop the rules that do not pay their tokens.

    Rules are left out one after the other, the least supported first, all measured on the same validation examples. A
    rule is measured until the rest of the examples can change neither what is claimed of it nor whether it can go. It
    pays or harms if that holds at 5 % for all rules together (Holm). It is dropped if nothing is lost on validation
    without it and the gates of PROGRAM that do not ask for a gain accept it. What remains is tested on held-out
    examples and written with its lock and history, as by a compile; the look at the test split is counted. If no rule
    is dropped, no file is changed and nothing is tested.

    A SKILL.md that was edited by hand is not overwritten: the command stops before the first call.

    Exit status: 0 delivered, or nothing to drop; 1 not delivered because of the verdict, 2 an error, 3 stopped by the
    budget or because a model stayed out of reach, 130 interrupted (run the same command to resume).
    """
    from skillc.ablate.job import ABLATED, AblateOptions
    from skillc.ablate.report import ablate_json, ablate_report
    from skillc.cli.running import exit_status, plan_run, run_ablate

    options = RunOptions(**values)
    given = {"budget.calls": None if calls is None else str(calls), "budget.cost": cost}
    caps = {name: value for name, value in given.items() if value is not None}
    planned, estimated = plan_run(program, options)
    found = run_ablate(planned, estimated, skill, AblateOptions(rules, keep, dry_run), caps, options)
    print_result(
        lambda: ablate_json(found), lambda: ablate_report(found, planned.plan.goal.name), options, soft_wrap=False
    )
    done = found.shortened
    if done.compiled is not None:
        return exit_status(done.compiled)
    if done.stopped == "interrupted":
        return 130
    return 0 if done.stopped == ABLATED else 3


@click.command(epilog="Example: skillc serve tickets.skill")
@click.argument("program", type=ProgramPath())
@click.option(
    "--model", "models", multiple=True, metavar="ROLE=NAME", help="Change a model: target=hosted_vllm/Qwen/Qwen3.5-4B."
)
@click.option("--stop", is_flag=True, help="Stop the program's servers that are still running.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; progress goes to standard error.")
def serve(program: Path, models: tuple[str, ...], stop: bool, as_json: bool) -> int:
    """Start the servers of PROGRAM's `serve` blocks, print their addresses, and run until Ctrl-C.

    A compile of the same program uses them. --stop ends servers with `keep = on` that a compile left running.

    Exit status: 0 ended by Ctrl-C, 2 an error, 130 interrupted before the servers answered.
    """
    from skillc.cli.running import ServerStatus, run_servers, status_console, stop_servers
    from skillc.frontend import plan_file

    console = status_console()
    planned = plan_file(program, models=models, runnable=True)
    if stop:
        ended = stop_servers(planned.root)
        for name in ended:
            console.print(f"stopped {name}", markup=False)
        if as_json:
            print_json({"format_version": 1, "stopped": ended}, indent=None)
        elif not ended:
            console.print("no server runs")
        return 0

    def report(servers: list[dict[str, Any]]) -> None:
        if as_json:
            print_json({"format_version": 1, "servers": servers}, indent=None)
            return
        for each in servers:
            click.echo(f"served    {each['model']} at {each['url']}")
            click.echo(f"names     {', '.join(each['names'])}")
            click.echo(f"key       {each['key']}")
            if each["log"] is not None:
                click.echo(f"log       {each['log']}")

    with ServerStatus(console) as status:
        run_servers(planned, status, report)
    return 0
