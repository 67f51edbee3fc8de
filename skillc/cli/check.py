"""`skillc check`: what is wrong with programs, without opening their data unless asked to."""

from __future__ import annotations

from pathlib import Path

import click

from skillc.cli.completing import ProgramPath
from skillc.cli.options import findings_format


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
    from skillc.checking import look, status, with_data
    from skillc.cli.findings import show, show_differences, write
    from skillc.cli.paths import programs
    from skillc.errors import SkillcError

    if unsafe_fixes and not (fix or diff):
        raise SkillcError("`--unsafe-fixes` goes with `--fix` or `--diff`", hint="add one of them")
    if diff and (data or locked):
        message = f"`--{'data' if data else 'locked'}` reads the program as it is, so it does not go with `--diff`"
        raise SkillcError(message, hint="leave one out")
    looked = [
        look(path, "none" if not (fix or diff) else "unsafe" if unsafe_fixes else "safe") for path in programs(paths)
    ]
    if diff:
        return max(show_differences(looked), status(looked) if not all(each.readable for each in looked) else 0)
    write(looked)
    looked = [with_data(each) for each in looked] if data else looked
    if locked:
        from skillc.versions.locked import with_lock

        looked = [with_lock(each) for each in looked]
    show(looked, "json" if as_json else style)
    return status(looked)
