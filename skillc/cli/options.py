"""Options that several verbs take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

Command = Callable[..., Any]


def settings(command: Command) -> Command:
    """`--set` and `--offline`: a program's plan, changed for one call."""
    for option in (
        click.option(
            "--offline", is_flag=True, help="Use the embedded `rulebook` model for every role; open no socket."
        ),
        click.option(
            "--set", "settings", multiple=True, metavar="BLOCK.NAME=VALUE", help="Change a setting: budget.cost=1."
        ),
    ):
        command = option(command)
    return command


def changes(command: Command) -> Command:
    """`--model`, `--set` and `--offline`."""
    option = click.option(
        "--model", "models", multiple=True, metavar="ROLE=NAME", help="Change a model: target=openai/gpt-5.5-mini."
    )
    return option(settings(command))


def findings_format(command: Command) -> Command:
    """`--format` and `--json` of a verb that prints findings, as its arguments `style` and `as_json`."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="The same as --format json."),
        click.option(
            "--format",
            "style",
            type=click.Choice(("text", "concise", "json", "sarif", "github")),
            default="text",
            show_default=True,
            help="How findings are printed; sarif and github are for code scanning and workflows.",
        ),
    ):
        command = option(command)
    return command
