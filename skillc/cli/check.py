"""The verb `check`: findings in programs, without opening their data unless asked to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from skillc.checking import CheckedFile
from skillc.cli.arguments import ProgramPath, findings_format
from skillc.cli.output import colored, print_json
from skillc.diagnostics import render
from skillc.text import counted


@click.command(
    short_help="find mistakes in a program, without opening its data",
    epilog="Example: skillc check tickets.skill --format concise",
)
@click.argument("paths", metavar="PROGRAMS...", nargs=-1, required=True, type=ProgramPath())
@findings_format
@click.option("--fix", is_flag=True, help="Apply the safe fixes, and report what is left.")
@click.option("--unsafe-fixes", is_flag=True, help="With --fix: apply those too that may change what a program means.")
@click.option("--diff", is_flag=True, help="Show what --fix would change, and write nothing.")
@click.option("--data", is_flag=True, help="Read the data too, and say what its examples give reason to say.")
@click.option("--locked", is_flag=True, help="Also find where program, data or skill no longer fit the lock.")
def check(
    paths: tuple[Path, ...],
    style: str,
    as_json: bool,
    fix: bool,
    unsafe_fixes: bool,
    diff: bool,
    data: bool,
    locked: bool,
) -> int:
    """Find mistakes in PROGRAMS: files, and folders with all programs below them.

    Exit status: 0 clean (notes are no mistakes), 1 findings, or a diff that is not empty, 2 a file that cannot be
    read or written.
    """
    from skillc.checking import check_and_fix, exit_status, with_data
    from skillc.cli.arguments import programs
    from skillc.errors import SkillcError

    if unsafe_fixes and not (fix or diff):
        raise SkillcError("`--unsafe-fixes` goes with `--fix` or `--diff`", hint="add one of them")
    if diff and (data or locked):
        message = f"`--{'data' if data else 'locked'}` reads the program as it is, so it does not go with `--diff`"
        raise SkillcError(message, hint="leave one out")
    looked = [
        check_and_fix(path, "none" if not (fix or diff) else "unsafe" if unsafe_fixes else "safe")
        for path in programs(paths)
    ]
    if diff:
        return max(_show_differences(looked), exit_status(looked) if not all(each.readable for each in looked) else 0)
    _write(looked)
    looked = [with_data(each) for each in looked] if data else looked
    if locked:
        from skillc.versions.locked import with_lock

        looked = [with_lock(each) for each in looked]
    show(looked, "json" if as_json else style)
    return exit_status(looked)


def _write(looked: Sequence[CheckedFile]) -> None:
    """Write the fixed files, and report them on standard error.

    Raises:
        SkillcError: one of them can't be written; those before it were.
    """
    for each in looked:
        if each.after != each.before:
            from skillc.syntax.files import write_source

            write_source(each.path, each.after)
            click.echo(f"fixed {counted(each.fixed, 'finding')} in {each.path}", err=True)
        _left_out(each)


def _show_differences(looked: Sequence[CheckedFile]) -> int:
    """Print what fixes would change; return 1 if they would change anything, else 0."""
    from skillc.diagnostics.render import difference

    for each in looked:
        click.echo(difference(each.path.as_posix(), each.before, each.after), nl=False)
        if each.after != each.before:
            click.echo(f"would fix {counted(each.fixed, 'finding')} in {each.path}", err=True)
        elif not each.readable:
            click.echo(render.concise(each.diagnostics[0]), err=True)
        _left_out(each)
    return int(any(each.after != each.before for each in looked))


def show(looked: Sequence[CheckedFile], style: str) -> None:
    """Print all findings in a format; standard output holds nothing else."""
    found = [diagnostic for each in looked for diagnostic in each.diagnostics]
    suppressed = [one for each in looked for one in each.suppressed]
    if style == "json":
        from skillc.diagnostics.formats import as_json

        print_json(as_json(found, suppressed))
    elif style == "sarif":
        from skillc import __version__
        from skillc.diagnostics.formats import log

        print_json(log(found, suppressed, version=__version__))
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


def _left_out(looked: CheckedFile) -> None:
    if looked.refused:
        fixes = f"{counted(looked.refused, 'fix', 'fixes')} {'was' if looked.refused == 1 else 'were'}"
        click.echo(f"{fixes} left out in {looked.path}: it would have left a new error", err=True)
