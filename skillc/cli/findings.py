"""What `skillc check` prints, in each of its formats, and what it writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from skillc.checking import Looked
from skillc.cli.streams import colored
from skillc.diagnostics import render
from skillc.text import counted


def write(looked: Sequence[Looked]) -> None:
    """Writes the files that were mended, and says so on standard error.

    Raises:
        SkillcError: one of them can't be written; those before it were.
    """
    for each in looked:
        if each.after != each.before:
            from skillc.syntax.files import write_source

            write_source(each.path, each.after)
            click.echo(f"fixed {counted(each.fixed, 'finding')} in {each.path}", err=True)
        _left_out(each)


def show_differences(looked: Sequence[Looked]) -> int:
    """Prints what fixes would change; 1 if they would change anything, else 0."""
    from skillc.diagnostics.render import difference

    for each in looked:
        click.echo(difference(each.path.as_posix(), each.before, each.after), nl=False)
        if each.after != each.before:
            click.echo(f"would fix {counted(each.fixed, 'finding')} in {each.path}", err=True)
        elif not each.readable:
            click.echo(render.concise(each.diagnostics[0]), err=True)
        _left_out(each)
    return int(any(each.after != each.before for each in looked))


def show(looked: Sequence[Looked], style: str) -> None:
    """Prints all findings in a format; standard output holds nothing else."""
    found = [diagnostic for each in looked for diagnostic in each.diagnostics]
    suppressed = [one for each in looked for one in each.suppressed]
    if style == "json":
        from skillc.diagnostics.formats import as_json

        _object(as_json(found, suppressed))
    elif style == "sarif":
        from skillc import __version__
        from skillc.diagnostics.formats import log

        _object(log(found, suppressed, version=__version__))
    elif style == "github":
        from skillc.diagnostics.formats import annotation

        for diagnostic in found:
            click.echo(annotation(diagnostic))
    elif style == "concise":
        for diagnostic in found:
            click.echo(render.concise(diagnostic))
    else:
        color = colored()
        for each in looked:
            for diagnostic in each.diagnostics:
                click.echo(render.text(diagnostic, color=color) + "\n", err=not each.readable)
        click.echo(render.summary(found, len(suppressed)))


def _object(value: dict[str, Any]) -> None:
    import json

    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def _left_out(looked: Looked) -> None:
    if looked.refused:
        fixes = f"{counted(looked.refused, 'fix', 'fixes')} {'was' if looked.refused == 1 else 'were'}"
        click.echo(f"{fixes} left out in {looked.path}: it would have left a new error", err=True)
