"""The verb `distill`: a LoRA adapter from exported examples."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from skillc.cli.arguments import ProgramPath, json_option
from skillc.cli.output import print_json
from skillc.errors import SkillcError

_FOLDER = click.Path(path_type=Path, file_okay=False)
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(epilog="Example: skillc distill tickets.skill --base model --sft sft.jsonl --out adapter")
@click.argument("skill", type=ProgramPath())
@click.option("--base", required=True, type=_FOLDER, help="The folder of the base model.")
@click.option("--sft", type=_FILE, help="Chat examples, from `skillc export sft`.")
@click.option("--dpo", type=_FILE, help="Preference pairs, from `skillc export dpo`; trained after SFT.")
@click.option("--out", "-o", "output", required=True, type=_FOLDER, help="The folder of the adapter.")
@click.option("--epochs", type=click.IntRange(min=1), default=3, show_default=True, help="Of SFT.")
@click.option("--learning-rate", "rate", type=float, default=2e-4, show_default=True, help="Of SFT.")
@click.option("--dpo-epochs", type=click.IntRange(min=1), default=1, show_default=True, help="Of DPO.")
@click.option("--dpo-learning-rate", "dpo_rate", type=float, default=2e-5, show_default=True, help="Of DPO.")
@click.option("--rank", type=click.IntRange(min=1), default=16, show_default=True, help="Of LoRA; alpha is twice that.")
@click.option("--target-modules", metavar="NAMES", help="Comma-separated. Default: all linear layers but the output.")
@click.option("--batch", type=click.IntRange(min=1), default=8, show_default=True, help="Rows of a step.")
@click.option("--max-length", type=click.IntRange(min=16), default=2048, show_default=True, help="Tokens of a row.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of weights and order.")
@click.option("--hours", type=click.FloatRange(min=0, min_open=True), help="Refuse a training with a longer estimate.")
@click.option("--price-per-hour", "price", type=click.FloatRange(min=0), help="Dollars an hour of this machine.")
@click.option("--check", "only", is_flag=True, help="Only check and estimate.")
@click.option("--yes", "-y", is_flag=True, help="Train without asking.")
@json_option
def distill(
    skill: Path,
    base: Path,
    sft: Path | None,
    dpo: Path | None,
    output: Path,
    target_modules: str | None,
    hours: float | None,
    price: float | None,
    only: bool,
    yes: bool,
    as_json: bool,
    rank: int,
    **values: Any,
) -> int:
    """Train a LoRA adapter for the task of SKILL, by SFT, then DPO, with TRL.

    Everything is checked before anything is spent: number of rows, test examples among them, learning rates, lengths,
    chat template, files of the base model, memory and disk. A timed step gives the hours. A training that was stopped
    resumes from its last checkpoint with the same command.

    TRL runs in an environment of its own: `.venv-train` beside the program, or SKILLC_TRAIN_PYTHON.

    Exit status: 0 done, 1 not started because of --hours, 2 an error.
    """
    from skillc.training.distill import Distillation, Settings

    names = tuple(filter(None, (each.strip() for each in (target_modules or "").split(","))))
    settings = Settings(
        epochs=values["epochs"],
        rate=values["rate"],
        dpo_epochs=values["dpo_epochs"],
        dpo_rate=values["dpo_rate"],
        batch=values["batch"],
        max_length=values["max_length"],
        seed=values["seed"],
        rank=rank,
        alpha=2 * rank,
        modules=names,
    )
    made = Distillation(skill, base, out=output, settings=settings, sft=sft, dpo=dpo)
    for warning in made.warnings:
        click.echo(f"warning: {warning}", err=True)
    found = made.estimate(price)
    _print_estimate(made, found)
    if hours is not None and found.hours > hours:
        click.echo(f"not started: the estimate is above `--hours {hours:g}`", err=True)
        return 1
    if only:
        if as_json:
            print_json({"hours": found.hours, "dollars": found.dollars, "warnings": made.warnings})
        return 0
    if not yes and hours is None:
        if as_json:
            raise SkillcError("`--json` does not ask", hint="use `--yes`, or a limit with `--hours`")
        click.confirm("train?", abort=True, err=True)
    path = made.train(found, price=price, report=_print_event)
    if as_json:
        click.echo(path.read_text(encoding="utf-8"), nl=False)
        return 0
    import json

    record = json.loads(path.read_text(encoding="utf-8"))
    cost = "" if record["dollars"] is None else f", ${record['dollars']:.2f}"
    click.echo(f"wrote {output}: {_duration(record['hours'])}{cost}, estimated {_duration(found.hours)}")
    return 0


def _print_estimate(made: Any, found: Any) -> None:
    rows = ", ".join(f"{len(file.rows)} {file.kind.upper()} rows" for file in made.files)
    click.echo(f"base      {found.architecture}, {found.parameters / 1e6:.1f}M parameters, on {found.device}", err=True)
    click.echo(f"lora      rank {made.settings.rank} on {', '.join(found.target_modules)}", err=True)
    click.echo(f"data      {rows}, {found.tokens:,} tokens over all epochs", err=True)
    cost = "" if found.dollars is None else f", ${found.dollars:.2f}"
    click.echo(f"estimate  {_duration(found.hours)}{cost}, {found.memory / 1e9:.1f} GB of memory", err=True)


def _print_event(event: Mapping[str, Any]) -> None:
    if event["event"] == "stage":
        first, last = (f"{event[name]:.3f}" for name in ("loss_first", "loss_last"))
        margin = (
            f", margin {event['margin_first']:+.3f} → {event['margin_last']:+.3f}" if "margin_last" in event else ""
        )
        click.echo(f"{event['stage']:<10}{event['steps']} steps, loss {first} → {last}{margin}", err=True)
    elif event["event"] == "begin" and event["checkpoint"]:
        click.echo(f"{event['stage']:<10}resumes from {event['checkpoint']}", err=True)


def _duration(hours: float) -> str:
    return f"{hours * 60:.1f} min" if hours < 1 else f"{hours:.1f} h"
