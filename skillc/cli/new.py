"""`skillc new`: a first program from a data file."""

from __future__ import annotations

import json
from pathlib import Path

import click

from skillc.errors import SkillcError


@click.command(
    short_help="write a first program from a CSV, JSON or JSONL file", epilog="Example: skillc new tickets.csv"
)
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--output", "-o", type=click.Path(path_type=Path), help="The program to write; beside DATA by default.")
@click.option(
    "--model", metavar="NAME", help="The model: hosted_vllm/Qwen/Qwen3-4B is served here, openai/gpt-5-mini called."
)
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def new(data: Path, output: Path | None, model: str | None, force: bool, as_json: bool) -> None:
    """Look at DATA (CSV, JSON or JSONL) and write a program that compiles: with --model, or the embedded `rulebook`.

    What goes in, what comes out and what groups the rows is guessed from the columns; read the program and correct it.

    Exit status: 0 done, 2 an error.
    """
    from skillc.data.starter import RULEBOOK_MODELS, starter_program

    target = output or data.with_suffix(".skill")
    if target.exists() and not force:
        raise SkillcError(f"`{target}` is there already", hint="name another file with --output, or say --force")
    text = starter_program(data, target.parent, _models(model) if model is not None else RULEBOOK_MODELS)
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise SkillcError(f"`{target}` cannot be written: {problem.strerror}") from problem
    if as_json:
        click.echo(json.dumps({"format_version": 1, "program": str(target)}, ensure_ascii=False))
        return
    click.echo(f"wrote {target}\nnext: read it, then `skillc plan {target}` and `skillc compile {target}`")


def _models(model: str) -> str:
    from skillc.models.starter import model_statements

    return model_statements(model)
