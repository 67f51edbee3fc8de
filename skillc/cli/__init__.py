"""The command line. A verb is imported when it is called, so that `check` starts quickly."""

from __future__ import annotations

import gc
import importlib
import sys
from typing import TYPE_CHECKING

import click

from skillc import __version__
from skillc.cli import output
from skillc.errors import SkillcError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# New objects until the first garbage collection.
_COLLECT_AFTER = 50_000

# Verb -> help, in the order of a user's first day.
VERBS = {
    "new": "write a first program from a data file",
    "check": "find mistakes in programs, without opening their data",
    "fmt": "format programs",
    "plan": "show what a compile would use and what it may cost",
    "compile": "improve the skill and write SKILL.md",
    "tidy": "remove unsupported rules from a skill and shorten the rest",
    "ablate": "measure the skill without each rule, and drop what does not pay its tokens",
    "evolve": "learn from new sessions night by night, under an error budget, and roll back what falls",
    "install": "copy a compiled skill to where an agent reads it",
    "installed": "list the installed skills: version, state, what is staged",
    "update": "stage newly compiled skills, and show what they change",
    "adopt": "install a staged skill, or take or keep edits by hand",
    "reject": "drop a staged skill for good",
    "rollback": "go back to an earlier version of an installed skill",
    "uninstall": "remove an installed skill from agents' folders",
    "emit": "write a compiled skill in the form that a host reads",
    "log": "list the steps of a compile, a line each",
    "show": "show everything of one step: edits, gates, credit, spend",
    "why": "show the step that wrote a line of a skill, and what removing it would cost",
    "example": "follow one example over all steps of a compile",
    "history": "show every candidate and edit of a compile, and why it was kept or dropped",
    "watch": "show a running or finished compile on the terminal",
    "report": "write a page about the last compile: scores, examples, candidates, lines and spend",
    "export": "write rollouts, evals and runs in the formats of other tools",
    "distill": "train a LoRA adapter from exported examples",
    "diff": "show what changed in meaning since another version",
    "breaking": "report what got weaker since another version",
    "resolve": "resolve a merge conflict in a compiled skill",
    "audit": "list the files of a skill that fresh rollouts never open",
    "eval": "score skills on a split, with one model or several",
    "compare": "compare two skills on the same examples, paired",
    "recheck": "find which rules of a compiled skill still pay, with a newer or another model",
    "adherence": "find which rules the target follows where they apply, and whether that helps",
    "noise": "measure how much a skill differs from itself, from run to run and under load",
    "judge": "measure how far the judges of a program can be trusted",
    "sessions": "read recorded sessions of agents, without secrets and personal data",
    "serve": "start the model servers that a program declares",
    "doctor": "report what a compile lacks, and the command that fixes it",
    "cache": "manage cached model replies",
    "explain": "explain a diagnostic code",
    "std": "show the standard library and the modules of installed packages",
    "completion": "print a shell completion script",
    "lsp": "run the language server",
}


_MODULES = {
    "programs": ("check", "fmt"),
    "preparation": ("new", "plan", "doctor"),
    "runs": ("compile", "tidy", "ablate", "serve"),
    "evaluating": ("eval", "compare"),
    "measuring": ("recheck", "adherence", "noise", "judge", "audit"),
    "watching": ("watch",),
    "skills": ("install", "history", "report", "diff", "breaking", "resolve"),
    "evolving": ("evolve",),
    "emitting": ("emit",),
    "publishing": ("installed", "update", "adopt", "reject", "rollback", "uninstall"),
    "reading": ("log", "show", "why", "example"),
    "sessions": ("sessions",),
    "cache": ("cache",),
    "export": ("export",),
    "training": ("distill",),
    "pages": ("explain", "std", "completion", "lsp"),
}


class Verbs(click.Group):
    """A group that imports a verb when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the table's order."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a verb."""
        for module, verbs in _MODULES.items():
            if cmd_name in verbs:
                command: click.Command = getattr(importlib.import_module(f"skillc.cli.{module}"), cmd_name)
                return command
        return None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete verbs from the table, so that only the typed one is imported."""
        from click.shell_completion import CompletionItem

        verbs = [CompletionItem(verb, help=text) for verb, text in VERBS.items() if verb.startswith(incomplete)]
        return [*verbs, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs from the table, so that help imports none of them."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="skillc")
def skillc() -> None:
    """A compiler for agent skills.

    A .skill program states what a skill is for, what may change, what it may cost and what a change must prove.
    """


def main() -> None:
    """Run a verb. An error that the user can fix becomes a message, never a traceback."""
    # Imports make many objects that stay; by default the collector looks through them every 700 new ones.
    gc.set_threshold(_COLLECT_AFTER)
    output.prepare_streams()
    try:
        status = _run()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of standard output has closed it.
        status = 141
    except OSError:
        # Neither the output nor the error could be written.
        status = SkillcError.status
    output.discard_unwritten()
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
        # Click exits with status 1 at a broken pipe, which is the status of findings.
        if sys.stdout is not before:
            raise BrokenPipeError from None
        raise
    except BrokenPipeError:
        raise
    except Exception as problem:
        disk_full = output.disk_full_error(problem) if isinstance(problem, OSError) else None
        if disk_full is not None:
            output.report_error(disk_full)
            return disk_full.status
        output.report_bug(problem)
        status = 70
    return status if isinstance(status, int) else 0


def _message(problem: click.ClickException) -> str:
    text = problem.format_message().rstrip(".").replace("'", "`")
    return text[:1].lower() + text[1:]


def _hint(problem: click.ClickException) -> str | None:
    ctx = getattr(problem, "ctx", None)
    return f"`{ctx.command_path} --help` lists commands and options" if ctx is not None else None
