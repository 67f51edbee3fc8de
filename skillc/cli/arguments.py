"""Arguments and options that several verbs take, and what the shell completes. Runs at each press of the tab key."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillc.cli.output import print_json
from skillc.errors import SkillcError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from click.shell_completion import CompletionItem
    from pydantic import JsonValue
    from rich.console import Console, RenderableType

    from skillc.cli.running import Shown


Command = Callable[..., Any]
ANY_VERDICT = "none"
_VERDICTS = ("improved", ANY_VERDICT)


def _options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return a decorator that gives a verb several options."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
# `--set` and `--offline`: a program's plan, changed for one call.
settings = _options(
    click.option(
        "--set", "settings", multiple=True, metavar="BLOCK.NAME=VALUE", help="Change a setting: budget.cost=1."
    ),
    click.option("--offline", is_flag=True, help="Use the embedded `rulebook` model for every role; open no socket."),
)
# `--model`, `--set` and `--offline`.
changes = _options(
    click.option(
        "--model", "models", multiple=True, metavar="ROLE=NAME", help="Change a model: target=openai/gpt-5.5-mini."
    ),
    settings,
)
# Where a skill is written, and whether.
delivery = _options(
    click.option("--output", "-o", type=click.Path(path_type=Path), help="Write the skill's folder into this one."),
    click.option(
        "--require",
        type=click.Choice(_VERDICTS),
        help="Deliver the skill only with this verdict; `none` delivers it with any, whatever the program says.",
    ),
    click.option("--fresh", is_flag=True, help="Ask the models anew, whatever earlier runs were answered."),
    click.option(
        "--force",
        is_flag=True,
        help="Overwrite files that were edited by hand, that skillc did not write or that are another program's.",
    ),
)
# The arguments `style` and `as_json` of a verb that prints findings.
findings_format = _options(
    click.option(
        "--format",
        "style",
        type=click.Choice(("text", "concise", "json", "sarif", "github")),
        default="text",
        show_default=True,
        help="How findings are printed; sarif and github are for code scanning and workflows.",
    ),
    click.option("--json", "as_json", is_flag=True, help="The same as --format json."),
)
# The output of a verb that runs for long.
progress_output = _options(
    click.option("--quiet", "-q", is_flag=True, help="Print the result and errors, but no progress and no notes."),
    click.option("--json-lines", is_flag=True, help="Print one JSON object for each event, the result last."),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object; progress goes to standard error."),
)


def shown_on(console: Console, *, quiet: bool, as_json: bool, json_lines: bool) -> Shown:
    """Return how a run is shown.

    Raises:
        SkillcError: two of the options contradict each other.
    """
    from skillc.cli.running import Shown
    from skillc.errors import SkillcError

    for other, given in (("--json", as_json), ("--quiet", quiet)):
        if json_lines and given:
            raise SkillcError(f"`--json-lines` and `{other}` can't be used together", hint="leave one of them out")
    return Shown(console, quiet=quiet, json_lines=json_lines)


def print_result(
    summary: Callable[[], Mapping[str, JsonValue]],
    table: Callable[[], RenderableType],
    *,
    as_json: bool,
    json_lines: bool,
    soft_wrap: bool = True,
) -> None:
    """Print what came out: an object, the last event, or a table."""
    if json_lines:
        print_json({"event": "result", **summary()}, indent=None)
    elif as_json:
        print_json(summary())
    else:
        from rich.console import Console

        Console(highlight=False, soft_wrap=soft_wrap).print(table())


class ProgramPath(click.Path):
    """The path of a program: completed by folders and by files that end in `.skill`.

    Whether it can be read is for the verb to find out, so that one of several that can't leaves the others done.
    """

    def __init__(self) -> None:
        super().__init__(path_type=Path, readable=False)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Complete programs and folders that begin with what was typed."""
        from click.shell_completion import CompletionItem

        head, start = os.path.split(incomplete)
        programs, folders = [], []
        try:
            entries = sorted(os.scandir(head or "."), key=lambda entry: entry.name)
        except OSError:
            return []
        for entry in entries:
            if not entry.name.startswith(start) or entry.name.startswith(".") > start.startswith("."):
                continue
            if entry.is_dir():
                folders.append(os.path.join(head, entry.name, ""))  # noqa: PTH118 - what was typed stays as it was
            elif entry.name.endswith(".skill"):
                programs.append(os.path.join(head, entry.name))  # noqa: PTH118
        if not programs:
            # The shell goes into folders by itself, without a blank behind them.
            return [CompletionItem(incomplete, type="dir")]
        return [CompletionItem(path) for path in [*programs, *folders]]


def complete_codes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete diagnostic codes, with their titles if the shell shows them."""
    from click.shell_completion import CompletionItem

    from skillc.diagnostics.codes import CODES

    wanted = incomplete.upper()
    return [CompletionItem(code, help=CODES[code].title) for code in sorted(CODES) if code.startswith(wanted)]


def complete_library(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete modules of the standard library and of packages; behind a module's name, what it declares."""
    from click.shell_completion import CompletionItem

    from skillc.language.library import installed_library
    from skillc.language.modules import STD

    found = []
    for module in installed_library().modules:
        whole = incomplete.startswith(f"{STD}.")
        name = module.name if whole else module.name.removeprefix(f"{STD}.")
        if incomplete.startswith(f"{name}."):
            home = name.rpartition(".")[0]
            for each in module.declarations:
                found.append((f"{home}.{each.name}" if home else each.name, each.summary))
        else:
            found.append((name, module.summary))
    return [CompletionItem(name, help=told) for name, told in found if name.startswith(incomplete)]


SUFFIX = ".skill"


def programs(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Return each file once, in the order given; a folder becomes all `.skill` files below it, by name.

    Hidden folders, links to folders and `node_modules` are not entered. A file that is named is taken whatever its
    suffix, and whether or not it is there.

    Raises:
        SkillcError: a folder can't be read, or holds no program.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if not _is_folder(path):
            found[path] = None
            continue
        below = tuple(_below(path))
        if not below:
            raise SkillcError(f"no program lies in the folder `{path}`", hint=f"programs end in `{SUFFIX}`")
        found.update(dict.fromkeys(below))
    return tuple(found)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        # A folder above is not readable: opening the path reports it.
        return False


def _below(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder, onerror=_refuse):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
        for name in sorted(files):
            # `._name.skill` is what another system leaves beside a file.
            if name.endswith(SUFFIX) and not name.startswith("."):
                yield Path(place) / name


def _refuse(problem: OSError) -> None:
    reason = (problem.strerror or str(problem)).lower()
    raise SkillcError(f"the folder `{problem.filename}` can't be read: {reason}")
