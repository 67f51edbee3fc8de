"""The verbs that need no program: `explain`, `std`, `completion` and `lsp`."""

from __future__ import annotations

import click

from skillc.cli.arguments import complete_codes, complete_library, json_option
from skillc.cli.output import print_json
from skillc.errors import SkillcError


@click.command(epilog="Example: skillc explain SK409")
@click.argument("code", required=False, shell_complete=complete_codes)
@json_option
def explain(code: str | None, as_json: bool) -> None:
    """Explain CODE, with an example that triggers it and the fixed one. Without CODE: list all codes.

    Exit status: 0 done, 2 an unknown code.
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
            f"unknown code `{code}`",
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


@click.command(epilog="Example: skillc std gates.strict")
@click.argument("name", required=False, shell_complete=complete_library)
@json_option
def std(name: str | None, as_json: bool) -> None:
    """Show NAME: a module such as `gates`, or a declaration such as `gates.strict`.

    Without NAME: list all modules, including those of installed packages.

    Exit status: 0 done, 2 an unknown name.
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


@click.command(epilog='Example: eval "$(skillc completion bash)"')
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion(shell: str) -> None:
    """Print a script that completes verbs, options, programs and codes in SHELL.

    Add `eval "$(skillc completion bash)"` to ~/.bashrc, the same with zsh to ~/.zshrc, and for fish write the output
    to ~/.config/fish/completions/skillc.fish.

    Exit status: 0 done, 2 an unknown shell.
    """
    from click.shell_completion import get_completion_class

    from skillc.cli import skillc

    kind = get_completion_class(shell)
    assert kind is not None
    writer = kind(skillc, {}, "skillc", "_SKILLC_COMPLETE")
    # `source()` would start bash to ask for its version, and may fail without it.
    click.echo(writer.source_template % writer.source_vars(), nl=False)


@click.command(epilog="Example: skillc lsp --stdio")
@click.option("--stdio", is_flag=True, help="Use standard input and output. This is the default and the only way.")
def lsp(stdio: bool) -> int:
    """Run the language server over standard input and output.

    An editor starts it for diagnostics with quick fixes, formatting, definitions and references across files, renaming,
    symbols, hovers with the cost of a part of the program, completion and semantic tokens.

    Exit status: 0 after `exit`, 1 if the editor disconnects, 2 pygls is not installed.
    """
    from importlib.util import find_spec

    if find_spec("pygls") is None:
        raise SkillcError("the language server needs pygls, which is not installed", hint='pip install "skillc[lsp]"')
    from skillc.lsp.server import serve

    serve()
    return 0
