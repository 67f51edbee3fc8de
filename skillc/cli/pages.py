"""The verbs that need no program: `explain`, `std`, `completion` and `lsp`."""

from __future__ import annotations

import click

from skillc.cli.arguments import complete_codes, complete_library, json_option
from skillc.cli.output import print_json
from skillc.errors import SkillcError


@click.command(short_help="tell what a diagnostic code means", epilog="Example: skillc explain SK409")
@click.argument("code", required=False, shell_complete=complete_codes)
@json_option
def explain(code: str | None, as_json: bool) -> None:
    """Tell what CODE means, with an example that shows it and the mended one. Without CODE: list all codes.

    Exit status: 0 done, 2 there is no such code.
    """
    from skillc.code_pages import example_finding, format_examples, plain
    from skillc.diagnostics.codes import CODES, code_named
    from skillc.diagnostics.suggest import suggest

    if code is None:
        codes = sorted(CODES)
        if as_json:
            entries = [{"code": c, "title": CODES[c].title} for c in codes]
            print_json({"format_version": 1, "codes": entries})
        else:
            click.echo("\n".join(f"{c}  {CODES[c].title}" for c in codes))
        return
    entry = code_named(code.upper())
    if entry is None:
        near = suggest(code.upper(), CODES)
        raise SkillcError(
            f"there is no code `{code}`",
            hint=f"did you mean `{near}`?" if near else "`skillc explain` lists all codes",
        )
    entry = format_examples(entry)
    finding = example_finding(entry)
    if as_json:
        page = {
            "format_version": 1,
            "code": entry.code,
            "title": entry.title,
            "explanation": entry.explanation,
            "found_by": entry.found_by,
            "severity": finding.severity if finding else None,
            "fix": finding.fix if finding else None,
            "says": finding.text if finding else None,
            "files": dict(entry.files),
            "bad": entry.bad,
            "good": entry.good,
            "mended": dict(entry.fixed_files),
        }
        print_json(page)
    else:
        click.echo(plain(entry, finding))


@click.command(
    short_help="show the standard library, and the modules of installed packages",
    epilog="Example: skillc std gates.strict",
)
@click.argument("name", required=False, shell_complete=complete_library)
@json_option
def std(name: str | None, as_json: bool) -> None:
    """Show what NAME declares: a module such as `gates`, or a declaration such as `gates.strict`.

    Without NAME: list all modules, those of installed packages included.

    Exit status: 0 when it is there, 2 when it is not.
    """
    from skillc.diagnostics.render import printable
    from skillc.language.library import installed_library, render_page, to_json

    library = installed_library()
    if as_json:
        print_json(to_json(library, name))
        return
    click.echo(render_page(library, name))
    for problem in library.problems if name is None else ():
        click.echo(f"warning: {printable(problem)}", err=True)


SHELLS = ("bash", "zsh", "fish")


@click.command(
    short_help="print the completion script of a shell",
    epilog='Example: eval "$(skillc completion bash)"',
)
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script that completes verbs, options, programs and codes in SHELL.

    Put `eval "$(skillc completion bash)"` into ~/.bashrc, the same with zsh into ~/.zshrc, and for fish write the
    output into ~/.config/fish/completions/skillc.fish.

    Exit status: 0 done, 2 an unknown shell.
    """
    from click.shell_completion import get_completion_class

    from skillc.cli import skillc

    kind = get_completion_class(shell)
    assert kind is not None
    writer = kind(skillc, {}, "skillc", "_SKILLC_COMPLETE")
    # `source()` would start bash to ask for its version, and may fail where there is none.
    click.echo(writer.source_template % writer.source_vars(), nl=False)


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
    from skillc.lsp.server import serve

    serve()
    return 0
