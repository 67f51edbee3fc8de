"""`skillc std`: what the standard library and installed packages declare."""

from __future__ import annotations

import click

from skillc.cli.completing import complete_library


@click.command(
    short_help="show the standard library, and the modules of installed packages",
    epilog="Example: skillc std gates.strict",
)
@click.argument("name", required=False, shell_complete=complete_library)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def std(name: str | None, as_json: bool) -> None:
    """Show what NAME declares: a module such as `gates`, or a declaration such as `gates.strict`.

    Without NAME: list all modules, those of installed packages included.

    Exit status: 0 when it is there, 2 when it is not.
    """
    import json

    from skillc.diagnostics.render import printable
    from skillc.language.library import as_data, installed, page

    library = installed()
    if as_json:
        click.echo(json.dumps(as_data(library, name), ensure_ascii=False, indent=2))
        return
    click.echo(page(library, name))
    for problem in library.problems if name is None else ():
        click.echo(f"warning: {printable(problem)}", err=True)
