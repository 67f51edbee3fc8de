"""Options that several verbs take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue
    from rich.console import Console, RenderableType

    from skillc.cli.running import Shown

Command = Callable[..., Any]
ANY_VERDICT = "none"
_VERDICTS = ("improved", ANY_VERDICT)


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


def delivery(command: Command) -> Command:
    """`--output`, `--require`, `--fresh` and `--force`: where a skill is written, and whether."""
    for option in (
        click.option(
            "--force",
            is_flag=True,
            help="Overwrite files that were edited by hand, that skillc did not write or that are another program's.",
        ),
        click.option("--fresh", is_flag=True, help="Ask the models anew, whatever earlier runs were answered."),
        click.option(
            "--require",
            type=click.Choice(_VERDICTS),
            help="Deliver the skill only with this verdict; `none` delivers it with any, whatever the program says.",
        ),
        click.option("--output", "-o", type=click.Path(path_type=Path), help="Write the skill's folder into this one."),
    ):
        command = option(command)
    return command


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


def progress_output(command: Command) -> Command:
    """`--json`, `--json-lines` and `--quiet` of a verb that runs for long."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object; progress goes to standard error."),
        click.option("--json-lines", is_flag=True, help="Print one JSON object for each event, the result last."),
        click.option("--quiet", "-q", is_flag=True, help="Print the result and errors, but no progress and no notes."),
    ):
        command = option(command)
    return command


def shown_on(console: Console, *, quiet: bool, as_json: bool, json_lines: bool) -> Shown:
    """How a run is shown.

    Raises:
        SkillcError: two of the options contradict each other.
    """
    from skillc.cli.running import Shown
    from skillc.errors import SkillcError

    for other, given in (("--json", as_json), ("--quiet", quiet)):
        if json_lines and given:
            raise SkillcError(f"`--json-lines` and `{other}` can't be used together", hint="leave one of them out")
    return Shown(console, quiet=quiet, json_lines=json_lines)


def print_result(
    summary: Callable[[], Mapping[str, JsonValue]],
    table: Callable[[], RenderableType],
    *,
    as_json: bool,
    json_lines: bool,
    soft_wrap: bool = True,
) -> None:
    """Print what came out: an object, the last event, or a table."""
    import json

    if json_lines:
        click.echo(json.dumps({"event": "result", **summary()}, ensure_ascii=False))
    elif as_json:
        click.echo(json.dumps(summary(), ensure_ascii=False, indent=2))
    else:
        from rich.console import Console

        Console(highlight=False, soft_wrap=soft_wrap).print(table())
