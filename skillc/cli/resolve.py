"""`skillc resolve`: a compiled skill that a git merge left open, put together again."""

from __future__ import annotations

from pathlib import Path

import click

from skillc.cli.completing import ProgramPath


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
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def resolve(program: Path, keep: str, force: bool, as_json: bool) -> int:
    """Put the compiled skill of PROGRAM (or of a skill's folder) together after two branches compiled it.

    One side's SKILL.md, module and lock are written whole, never a mixture that no gate has seen. The history and the
    looks at the test split of both are kept. Nothing is added to git's index: it says what to do next. In a rebase
    `ours` is the branch that is rebased onto, as everywhere in git.

    Exit status: 0 done, 2 an error.
    """
    import json

    from skillc.versions.resolve import as_json as to_json
    from skillc.versions.resolve import as_text
    from skillc.versions.resolve import resolve as put_together

    found = put_together(program, keep, force=force)  # type: ignore[arg-type]  # click has checked it
    click.echo(json.dumps(to_json(found), ensure_ascii=False, indent=2) if as_json else as_text(found))
    return 0
