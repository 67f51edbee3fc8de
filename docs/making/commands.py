"""The page of the command line, made from its help."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import click

from skillc.cli import VERBS, skillc

# What click leaves of the 80 columns of a terminal.
WIDTH = 78
_STATUS = re.compile(r"Exit status: (.*?)(?:\n\n|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb, or one of a group of verbs: how it is called, what `--help` prints, its exit statuses in one line."""

    path: str
    help: str
    statuses: str
    level: int


def verbs() -> Iterator[Verb]:
    """Every verb, in the order of `skillc --help`, each group before its own verbs."""
    top = click.Context(
        skillc, info_name="skillc", terminal_width=WIDTH, max_content_width=WIDTH, **skillc.context_settings
    )
    for name in VERBS:
        command = skillc.get_command(top, name)
        assert command is not None
        yield from _verb(command, name, top, 2)


def _verb(command: click.Command, name: str, parent: click.Context, level: int) -> Iterator[Verb]:
    context = click.Context(command, parent=parent, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH)
    lines = [line.rstrip() for line in command.get_help(context).splitlines()]
    yield Verb(context.command_path, "\n".join(lines), statuses(command), level)
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            assert found is not None
            yield from _verb(found, inner, context, level + 1)


def statuses(command: click.Command) -> str:
    """The exit statuses that a verb's help names: `0 clean, 1 findings`. Empty where it names none."""
    found = _STATUS.search(command.help or "")
    return " ".join(found[1].split()).rstrip(".") if found else ""


def data() -> Mapping[str, Any]:
    """What the page of verbs is made of."""
    return {"verbs": list(verbs()), "about": VERBS}
