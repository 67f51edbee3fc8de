"""The command line: verbs are imported only when they are used, so that `check` stays quick."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

import click

from skillc import __version__
from skillc.cli import output
from skillc.errors import SkillcError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# verb -> what it does, in the order of a user's first day
VERBS = {
    "new": "write a first program from a data file",
    "check": "find mistakes in a program, without opening its data",
    "fmt": "lay programs out in the one canonical form",
    "plan": "show what a compile would use and what it may spend",
    "compile": "improve the skill and write SKILL.md",
    "tidy": "take rules without support out of a skill, and shorten the rest",
    "install": "copy a compiled skill to where an agent reads it",
    "history": "show what became of every candidate and every proposed edit",
    "diff": "show what changed in meaning, not in lines",
    "breaking": "say what got weaker since another version",
    "resolve": "put a compiled skill together again after a merge",
    "eval": "score skills on a split, with one model or several side by side",
    "serve": "start the models that a program serves itself",
    "doctor": "say what is missing for a compile, and the command that mends it",
    "cache": "show, prune, export and import the replies that are kept",
    "explain": "tell what a diagnostic code means",
    "std": "show the standard library, and the modules of installed packages",
    "completion": "print the completion script of a shell",
    "lsp": "answer an editor: the language server",
}


# verbs that share a module with others; every other verb is in the module of its name
_MODULES = {
    **dict.fromkeys(("diff", "breaking", "resolve"), "versions"),
    **dict.fromkeys(("install", "history"), "skills"),
    **dict.fromkeys(("explain", "std", "completion", "lsp"), "pages"),
    "doctor": "plan",
    "tidy": "compile",
}


class Verbs(click.Group):
    """A group whose verbs are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the table's order."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a verb."""
        if cmd_name not in VERBS:
            return None
        module = importlib.import_module(f"skillc.cli.{_MODULES.get(cmd_name, cmd_name)}")
        command = getattr(module, cmd_name)
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete verbs from the table, so that only the typed one is imported."""
        from click.shell_completion import CompletionItem

        verbs = [CompletionItem(verb, help=does) for verb, does in VERBS.items() if verb.startswith(incomplete)]
        return [*verbs, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs from the table, so that help imports none of them."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="skillc")
def skillc() -> None:
    """A compiler for agent skills.

    A .skill program says what a skill is for, what may change, what it may cost and what a change must prove.
    """


def main() -> None:
    """Run a verb. An error that the user can fix becomes a message, never a traceback."""
    output.prepare()
    try:
        status = _run()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output is gone.
        status = 141
    except OSError:
        # Neither the output nor the error could be written.
        status = SkillcError.status
    output.abandon()
    sys.exit(status)


def _run() -> int:
    """Run the verb and return its exit status."""
    before = sys.stdout
    try:
        status = skillc.main(standalone_mode=False)
    except SkillcError as problem:
        output.report_error(problem)
        status = problem.status
    except click.exceptions.NoArgsIsHelpError as problem:
        click.echo(problem.format_message())
        status = 2
    except click.ClickException as problem:
        output.report_error(SkillcError(_message(problem), hint=_hint(problem)))
        status = 2
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        status = 130
    except SystemExit:
        # How click answers a broken pipe, with status 1, which is that of findings.
        if sys.stdout is not before:
            raise BrokenPipeError from None
        raise
    except BrokenPipeError:
        raise
    except Exception as problem:
        known = output.full(problem) if isinstance(problem, OSError) else None
        if known is not None:
            output.report_error(known)
            return known.status
        output.report_bug(problem)
        status = 70
    return status if isinstance(status, int) else 0


def _message(problem: click.ClickException) -> str:
    text = problem.format_message().rstrip(".").replace("'", "`")
    return text[:1].lower() + text[1:]


def _hint(problem: click.ClickException) -> str | None:
    ctx = getattr(problem, "ctx", None)
    return f"`{ctx.command_path} --help` lists what it takes" if ctx is not None else None
