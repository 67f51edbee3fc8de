"""The verbs before a compile: `new`, `plan` and `doctor`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillc.cli.arguments import ProgramPath, json_option, plan_options
from skillc.cli.output import print_error, print_json, show_diagnostics
from skillc.errors import SkillcError
from skillc.text import listed

if TYPE_CHECKING:
    from skillc.data.starter import StarterProgram
    from skillc.doctor.report import Finding
    from skillc.plan.existing import Existing


@click.command(epilog="Example: skillc new tickets.csv --answer team --input ticket")
@click.argument("data", type=click.Path(path_type=Path), required=False)
@click.option("--answer", "answers", multiple=True, metavar="COLUMN", help="The column to answer. Repeatable.")
@click.option("--input", "inputs", multiple=True, metavar="COLUMN", help="An input column. Repeatable.")
@click.option("--judge", "judged", metavar="OUTPUT", help="DATA has no right answers: a judge scores this output.")
@click.option("--group", metavar="COLUMN", help="Rows that share its value stay on one side of the split.")
@click.option("--from", "base", type=click.Path(path_type=Path), help="Start from this SKILL.md, or from its folder.")
@click.option(
    "--freeze", multiple=True, metavar="SECTION", help="A section of --from that must not change. Repeatable."
)
@click.option(
    "--model", metavar="NAME", help="The model: hosted_vllm/Qwen/Qwen3-4B is served here, openai/gpt-5-mini called."
)
@click.option("--output", "-o", type=click.Path(path_type=Path), help="The program to write; beside DATA by default.")
@click.option("--force", is_flag=True, help="Overwrite the program.")
@click.option("--from-sessions", is_flag=True, help="In place of DATA: labelled sessions, which become the data.")
@click.option("--skill", metavar="NAME", help="With --from-sessions: only sessions labelled with this skill.")
@click.option("--project", metavar="TEXT", help="With --from-sessions: only sessions whose project has this text.")
@click.option("--store", type=click.Path(path_type=Path), help="With --from-sessions: by default .skillc/sessions.db.")
@json_option
def new(
    data: Path | None,
    answers: tuple[str, ...],
    inputs: tuple[str, ...],
    judged: str | None,
    group: str | None,
    base: Path | None,
    freeze: tuple[str, ...],
    model: str | None,
    output: Path | None,
    force: bool,
    from_sessions: bool,
    skill: str | None,
    project: str | None,
    store: Path | None,
    as_json: bool,
) -> None:
    """Read DATA, or labelled sessions, and write a program that compiles, with --model or the embedded `rulebook`.

    DATA is a CSV, TSV, JSON, JSONL or Parquet file, or a folder saved by the Hugging Face `datasets` library. Inputs,
    answer, group and metric are guessed from the columns, and each guess is printed with its reason; an option such as
    --answer overrules it. With --judge the data needs no answers: the program has a rubric, by which a model judges the
    output.

    With --from, the program keeps the text of the SKILL.md. A section that is a list, of bullets or of steps, becomes
    rules, which the optimizer may edit; every other section, and each that --freeze names, is frozen.

    With --from-sessions, the sessions that `skillc sessions label` has labelled become NAME.skill, NAME.jsonl and
    evals/evals.json. Those that worked are the references, those that failed are kept as such. No file is overwritten.

    Exit status: 0 done, 2 an error.
    """
    from skillc.data.starter import RULEBOOK_MODELS, ColumnChoice, start
    from skillc.models.endpoint import model_statements
    from skillc.plan.existing import existing_skill

    if freeze and base is None:
        raise SkillcError("`--freeze` needs `--from`", hint="add `--from SKILL.md`")
    if from_sessions:
        _refuse_with_sessions(DATA=data, answer=answers, input=inputs, group=group, force=force)
        _new_from_sessions(skill, project, store, judged, base, freeze, model, output, as_json=as_json)
        return
    for name, value in (("skill", skill), ("project", project), ("store", store)):
        if value is not None:
            raise SkillcError(f"`--{name}` needs `--from-sessions`", hint="add `--from-sessions`")
    if data is None:
        raise SkillcError("no data is named", hint="name a data file, or use `--from-sessions`")
    target = output or data.with_suffix(".skill")
    if target.exists() and not force:
        raise SkillcError(f"`{target}` exists", hint="name another file with --output, or overwrite with --force")
    existing = existing_skill(base, freeze).with_folder(target, force=force) if base is not None else None
    models = model_statements(model) if model is not None else RULEBOOK_MODELS
    started = start(data, target.parent, ColumnChoice(answers, inputs, group, judged), existing, models)
    try:
        target.write_text(started.text, encoding="utf-8")
    except OSError as problem:
        raise SkillcError(f"`{target}` cannot be written: {problem.strerror}") from problem
    if as_json:
        print_json(_started_json(target, started, existing), indent=None)
    else:
        of, by = f"{started.rows:,} rows of {data.name}", "--answer, --input and --group, or in the program"
        click.echo("\n".join(_started_lines((target,), of, by, started, base, existing)))


def _refuse_with_sessions(**given: object) -> None:
    for name, value in given.items():
        if value:
            shown = name if name.isupper() else f"--{name}"
            raise SkillcError(f"`{shown}` cannot be used with `--from-sessions`", hint=f"leave out `{shown}`")


def _new_from_sessions(
    skill: str | None,
    project: str | None,
    store: Path | None,
    judged: str | None,
    base: Path | None,
    freeze: tuple[str, ...],
    model: str | None,
    output: Path | None,
    *,
    as_json: bool,
) -> None:
    """Write the program, the data and the evals of labelled sessions."""
    from skillc.data.starter import RULEBOOK_MODELS
    from skillc.models.endpoint import model_statements
    from skillc.plan.existing import existing_skill
    from skillc.sessions.examples import examples_of
    from skillc.sessions.starting import program_files, program_name, refuse_existing, write_program
    from skillc.sessions.store import DEFAULT, SessionStore

    named = output is not None and (skill is not None or project is not None)
    name = output.stem if output is not None and named else program_name(skill, project)
    folder = output.parent if output is not None else Path()
    files = program_files(name, folder)
    refuse_existing(files)
    with SessionStore(store or DEFAULT) as opened:
        found = examples_of(opened, skill=skill, project=project)
    existing = existing_skill(base, freeze).with_folder(files[0], force=False) if base is not None else None
    models = model_statements(model) if model is not None else RULEBOOK_MODELS
    written = write_program(name, found, folder, judged=judged, existing=existing, models=models)
    if as_json:
        more = {"files": [str(file) for file in written.files], "groups": dict(written.sides)}
        print_json({**_started_json(files[0], written.started, existing), **more}, indent=None)
        return
    of = f"{written.examples:,} labelled sessions"
    lines = _started_lines(written.files, of, "--judge, or in the program", written.started, base, existing)
    click.echo("\n".join(lines))


def _started_lines(
    files: tuple[Path, ...], of: str, by: str, started: StarterProgram, base: Path | None, existing: Existing | None
) -> Iterator[str]:
    from skillc.frontend import plan_file
    from skillc.plan.models import rulebook_limits

    target = files[0]
    for file in files:
        yield f"wrote {file}"
    yield ""
    yield f"from {of}:"
    width = max(len(reason.subject) for reason in started.reasons if reason.role != "not used")
    for reason in started.reasons:
        yield f"  {reason.role:<11} {reason.subject:<{width}}  {reason.why}"
    yield f"change these with {by}"
    if existing is not None:
        yield ""
        yield f"from {base}:"
        kept = ["the description", *(f"`{key}`" for key in existing.kept)] if existing.about else []
        if kept:
            yield f"  {'kept':<11} {', '.join(kept)}"
        for section in existing.sections:
            yield f"  {section.mode:<11} {section.shown}: {section.why}"
        if existing.folder is not None:
            yield f"  {'kept':<11} {listed(existing.files, most=4)}, copied to `{existing.folder}/`"
        for what in existing.left_out:
            yield f"  {'left out':<11} {what}"
    for limit in rulebook_limits(plan_file(target).plan):
        yield f"note: {limit}"
    yield ""
    yield f"next: read it, then `skillc plan {target}` and `skillc compile {target}`"


def _started_json(target: Path, started: StarterProgram, existing: Existing | None) -> dict[str, object]:
    values: dict[str, object] = {
        "format_version": 1,
        "program": str(target),
        "rows": started.rows,
        "guesses": [{"role": each.role, "subject": each.subject, "why": each.why} for each in started.reasons],
    }
    if existing is not None:
        values["sections"] = [
            {"name": each.name, "title": each.shown, "mode": each.mode, "why": each.why} for each in existing.sections
        ]
        values["kept"], values["left_out"] = list(existing.kept), list(existing.left_out)
        values["files"] = list(existing.files)
    return values


@click.command(epilog="Example: skillc plan tickets.skill --set budget.cost=1")
@click.argument("program", type=ProgramPath())
@plan_options
@json_option
def plan(program: Path, models: tuple[str, ...], settings: tuple[str, ...], offline: bool, as_json: bool) -> int:
    """Show models, data, gates and the bounds of calls, tokens and money of PROGRAM, stage by stage.

    Every default is filled in. Nothing is sent, and nothing is written.

    Exit status: 0 done, 2 an error, or a budget that cannot pay.
    """
    from skillc.budget.render import as_json as to_json
    from skillc.budget.render import as_text
    from skillc.frontend import estimate, plan_file
    from skillc.models.serving.installed import refused_seed

    planned = plan_file(program, models=models, settings=settings, offline=offline, runnable=True, every_model=False)
    estimated = estimate(planned)
    if as_json:
        print_json(to_json(planned.plan, estimated.bounds, estimated.diagnostics))
    else:
        click.echo(as_text(planned.plan, estimated.bounds, estimated.diagnostics))
    show_diagnostics([*planned.diagnostics, *estimated.diagnostics])
    for model in planned.plan.models.values():
        refused = refused_seed(model, planned.root)
        if refused is not None:
            print_error(refused)
    return 2 if estimated.failed else 0


@click.command(epilog="Example: skillc doctor tickets.skill --no-calls")
@click.argument("program", type=ProgramPath(), required=False)
@plan_options
@click.option("--no-calls", is_flag=True, help="Call no model; only check keys and addresses.")
@json_option
def doctor(
    program: Path | None,
    models: tuple[str, ...],
    settings: tuple[str, ...],
    offline: bool,
    no_calls: bool,
    as_json: bool,
) -> int:
    """Report what is installed, which models of PROGRAM answer, what a call costs, and whether disk and memory suffice.

    Each model gets one short prompt, whose cost is printed first; --no-calls leaves that out. Without PROGRAM only the
    installation is checked. Keys are never printed, only the names of their variables.

    Exit status: 0 nothing is missing, 1 something is, 2 an error.
    """
    from rich.console import Console

    from skillc.doctor.report import as_json as to_json
    from skillc.doctor.report import as_text, status_of

    findings = _examine(program, models, settings, offline=offline, no_calls=no_calls)
    if as_json:
        print_json(to_json(findings))
    else:
        console = Console(highlight=False)
        console.print(as_text(findings, console.width), soft_wrap=True)
    return status_of(findings)


def _examine(
    program: Path | None, models: tuple[str, ...], settings: tuple[str, ...], *, offline: bool, no_calls: bool
) -> list[Finding]:
    import asyncio

    from skillc.doctor.checks import check_installation, check_program, examine_program
    from skillc.doctor.reach import describe_cost, prepare_calls, send_calls, skip_calls
    from skillc.frontend import plan_file

    if program is None:
        if models or settings:
            raise SkillcError("`--model` and `--set` need a program", hint="name the program")
        return check_installation(Path())
    planned = plan_file(program, models=models, settings=settings, offline=offline)
    examined = examine_program(planned)
    calls = prepare_calls(planned.plan, planned.root)
    if no_calls or not calls.calls:
        return check_program(examined, calls, skip_calls(calls))
    click.echo(describe_cost(calls), err=True)
    return check_program(examined, calls, asyncio.run(send_calls(calls)))
