"""`skillc new`: a first program from a data file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillc.cli.arguments import json_option
from skillc.cli.output import print_json
from skillc.errors import SkillcError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillc.data.starter import Started
    from skillc.plan.existing import Existing


@click.command(
    short_help="write a first program from a data file",
    epilog="Example: skillc new tickets.csv --answer team --input ticket",
)
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--answer", "answers", multiple=True, metavar="COLUMN", help="The column to answer. Repeatable.")
@click.option(
    "--input", "inputs", multiple=True, metavar="COLUMN", help="A column that the skill is given. Repeatable."
)
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
@json_option
def new(
    data: Path,
    answers: tuple[str, ...],
    inputs: tuple[str, ...],
    group: str | None,
    base: Path | None,
    freeze: tuple[str, ...],
    model: str | None,
    output: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Look at DATA and write a program that compiles: with --model, or the embedded `rulebook`.

    DATA is a CSV, TSV, JSON, JSONL or Parquet file, or a folder saved by the Hugging Face `datasets` library. Inputs,
    answer, group and metric are guessed from the columns; each guess is printed with its reason. --answer, --input and
    --group overrule it.

    With --from, the program keeps what the SKILL.md says. A section that is a list, of bullets or of steps, becomes
    rules, which the optimizer may edit; every other section, and each that --freeze names, stays as it is.

    Exit status: 0 done, 2 an error.
    """
    from skillc.data.starter import RULEBOOK_MODELS, Choice, start
    from skillc.plan.existing import existing_skill

    target = output or data.with_suffix(".skill")
    if target.exists() and not force:
        raise SkillcError(
            f"`{target}` exists already", hint="name another file with --output, or overwrite with --force"
        )
    if freeze and base is None:
        raise SkillcError("--freeze names a section of --from, which is missing", hint="add `--from SKILL.md`")
    existing = existing_skill(base, freeze) if base is not None else None
    models = _models(model) if model is not None else RULEBOOK_MODELS
    started = start(data, target.parent, Choice(answers, inputs, group), existing, models)
    try:
        target.write_text(started.text, encoding="utf-8")
    except OSError as problem:
        raise SkillcError(f"`{target}` cannot be written: {problem.strerror}") from problem
    if as_json:
        print_json(_values(target, started, existing), indent=None)
        return
    click.echo("\n".join(_lines(target, data, started, base, existing)))


def _models(model: str) -> str:
    from skillc.models.endpoint import model_statements

    return model_statements(model)


def _lines(target: Path, data: Path, started: Started, base: Path | None, existing: Existing | None) -> Iterator[str]:
    yield f"wrote {target}"
    yield ""
    yield f"from {started.rows:,} rows of {data.name}:"
    wide = max(len(reason.subject) for reason in started.reasons if reason.role != "not used")
    for reason in started.reasons:
        yield f"  {reason.role:<11} {reason.subject:<{wide}}  {reason.why}"
    yield "change these with --answer, --input and --group, or in the program"
    if existing is not None:
        yield ""
        yield f"from {base}:"
        kept = ["the description", *(f"`{key}`" for key in existing.kept)] if existing.about else []
        if kept:
            yield f"  {'kept':<11} {', '.join(kept)}"
        for section in existing.sections:
            yield f"  {section.mode:<11} {section.shown}: {section.why}"
        for what in existing.left_out:
            yield f"  {'left out':<11} {what}"
    for limit in _limits(target):
        yield f"note: {limit}"
    yield ""
    yield f"next: read it, then `skillc plan {target}` and `skillc compile {target}`"


def _values(target: Path, started: Started, existing: Existing | None) -> dict[str, object]:
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
    return values


def _limits(program: Path) -> list[str]:
    """What the models of the program cannot learn."""
    from skillc.frontend import plan_file
    from skillc.plan.models import rulebook_limits

    return rulebook_limits(plan_file(program).plan)
