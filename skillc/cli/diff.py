"""`skillc diff`: what changed in meaning, not in lines."""

from __future__ import annotations

from pathlib import Path

import click

from skillc.cli.completing import ProgramPath
from skillc.cli.streams import colored


@click.command(
    "diff", short_help="show what changed in meaning, not in lines", epilog="Example: skillc diff tickets.skill"
)
@click.argument("program", type=ProgramPath())
@click.argument("new", required=False, type=ProgramPath())
@click.option("--against", metavar="REF", help="A branch, tag or commit; HEAD by default.")
@click.option("--exit-code", is_flag=True, help="Exit with status 1 where something changed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def diff(program: Path, new: Path | None, against: str | None, exit_code: bool, as_json: bool) -> int:
    """Show what changed in meaning in PROGRAM since REF, or between the two programs PROGRAM and NEW.

    A folder stands for all programs in it. Comments, layout, order, and defaults that are written out are no change.
    `(looser)` stands where the program asks less of a skill than it did, `(stricter)` where it asks more.

    Exit status: 0 done, 1 with --exit-code where something changed, 2 an error.
    """
    import json

    from skillc.errors import SkillcError
    from skillc.versions.findings import compare
    from skillc.versions.show import as_json as to_json
    from skillc.versions.show import as_text

    if new is not None and against is not None:
        raise SkillcError("two programs and `--against` are too much", hint="leave one of them out")
    ref = str(program) if new is not None else against or "HEAD"
    compared = compare([new or program], ref)
    here = str(new) if new is not None else "the working tree"
    if as_json:
        click.echo(json.dumps(to_json(compared, ref, here), ensure_ascii=False, indent=2))
    else:
        click.echo(as_text(compared, ref, here, color=colored()))
    changed = any(each.changes or each.state != "compared" for each in compared)
    return 1 if exit_code and changed else 0
