"""The verbs on versions of a program: `diff`, `breaking` and `resolve`."""

from __future__ import annotations

from pathlib import Path

import click

from skillc.cli.arguments import ProgramPath, findings_format, json_option
from skillc.cli.output import colored, print_json


@click.command(
    "diff", short_help="show what changed in meaning, not in lines", epilog="Example: skillc diff tickets.skill"
)
@click.argument("program", type=ProgramPath())
@click.argument("new", required=False, type=ProgramPath())
@click.option("--against", metavar="REF", help="A branch, tag or commit; HEAD by default.")
@click.option("--exit-code", is_flag=True, help="Exit with status 1 where something changed.")
@json_option
def diff(program: Path, new: Path | None, against: str | None, exit_code: bool, as_json: bool) -> int:
    """Show what changed in meaning in PROGRAM since REF, or between the two programs PROGRAM and NEW.

    A folder stands for all programs in it. Comments, layout, order, and defaults that are written out are no change.
    `(looser)` stands where the program asks less of a skill than it did, `(stricter)` where it asks more.

    Exit status: 0 done, 1 with --exit-code where something changed, 2 an error.
    """
    from skillc.errors import SkillcError
    from skillc.versions.findings import compare_programs, diff_json, diff_text

    if new is not None and against is not None:
        raise SkillcError("two programs and `--against` are too much", hint="leave one of them out")
    ref = str(program) if new is not None else against or "HEAD"
    compared = compare_programs([new or program], ref)
    here = str(new) if new is not None else "the working tree"
    if as_json:
        print_json(diff_json(compared, ref, here))
    else:
        click.echo(diff_text(compared, ref, here, color=colored()))
    changed = any(each.changes or each.state != "compared" for each in compared)
    return 1 if exit_code and changed else 0


@click.command(
    short_help="say what got weaker since another version",
    epilog="Example: skillc breaking . --against origin/main",
)
@click.argument("programs", nargs=-1, required=True, type=ProgramPath())
@click.option(
    "--against", required=True, metavar="REF", help="A branch, tag or commit; or a file with the other version."
)
@findings_format
def breaking(programs: tuple[Path, ...], against: str, style: str, as_json: bool) -> int:
    """Report by rule what got weaker in PROGRAMS since REF: gates, budgets, the test split, frozen sections, metrics.

    Each of PROGRAMS is a program, or a folder whose programs are all compared. Meaning is compared, not text, and the
    files that a program uses are read at REF too; `std` is this skillc's in both. Warnings say what could not be
    compared. `skillc diff` shows all that changed.

    Exit status: 0 nothing got weaker, 1 something did, 2 an error.
    """
    from skillc.checking import CheckedFile
    from skillc.cli.check import show
    from skillc.versions.findings import compare_programs, diff_json

    compared = compare_programs(programs, against)
    if as_json or style == "json":
        print_json(diff_json(compared, against, "the working tree"))
    else:
        for each in compared:
            if each.state == "new":
                click.echo(f"`{each.program}` is new since `{against}`: there is nothing to compare it with", err=True)
        show([CheckedFile(Path(each.program), each.findings) for each in compared], style)
    return 1 if any(each.weaker for each in compared) else 0


@click.command(
    short_help="put a compiled skill together again after a merge",
    epilog="Example: skillc resolve tickets.skill --keep better",
)
@click.argument("program", type=ProgramPath())
@click.option(
    "--keep",
    required=True,
    type=click.Choice(["ours", "theirs", "better"]),
    help="The side to keep: `better` is the one with the higher goal on validation.",
)
@click.option("--force", is_flag=True, help="Overwrite files that were edited by hand since the merge.")
@json_option
def resolve(program: Path, keep: str, force: bool, as_json: bool) -> int:
    """Put the compiled skill of PROGRAM (or of a skill's folder) together after two branches compiled it.

    One side's SKILL.md, module and lock are written whole, never a mixture that no gate has seen. The history and the
    looks at the test split of both are kept. Nothing is added to git's index: it says what to do next. In a rebase
    `ours` is the branch that is rebased onto, as everywhere in git.

    Exit status: 0 done, 2 an error.
    """
    from skillc.versions.resolve import merge_json, merge_text, resolve_merge

    resolved = resolve_merge(program, keep, force=force)  # type: ignore[arg-type]  # click has checked it
    if as_json:
        print_json(merge_json(resolved))
    else:
        click.echo(merge_text(resolved))
    return 0
