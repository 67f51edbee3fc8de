"""`skillc completion`: what a shell needs to complete verbs, options, programs and codes."""

from __future__ import annotations

import click

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
