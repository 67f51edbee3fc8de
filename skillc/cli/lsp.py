"""`skillc lsp`: the language server, for editors."""

from __future__ import annotations

import click


@click.command(
    short_help="answer an editor: the language server",
    epilog="Example: skillc lsp --stdio",
)
@click.option("--stdio", is_flag=True, help="Speak over standard input and output; it is the only way, said or not.")
def lsp(stdio: bool) -> int:
    """Speak the Language Server Protocol over standard input and output.

    An editor starts it, and gets diagnostics with quick fixes, formatting, definitions and references across files,
    renaming, symbols, hovers with what a part of the program costs, completion and semantic tokens.

    Exit status: 0 the editor has said goodbye, 1 it has hung up, 2 pygls is not installed.
    """
    from importlib.util import find_spec

    from skillc.errors import SkillcError

    if find_spec("pygls") is None:
        raise SkillcError("the language server needs pygls, which is not installed", hint='pip install "skillc[lsp]"')
    from skillc.lsp.stdio import serve

    serve()
    return 0
