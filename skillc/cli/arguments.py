"""Arguments and options of several verbs, and shell completion, which imports this at each press of the tab key."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillc.dataclass import dataclass
from skillc.errors import SkillcError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_Command = Callable[..., Any]
ANY_VERDICT = "none"
SUFFIX = ".skill"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a verb that calls models.

    Raises:
        SkillcError: two of them contradict each other.
    """

    settings: tuple[str, ...]
    offline: bool
    quiet: bool
    json_lines: bool
    as_json: bool
    models: tuple[str, ...] = ()
    output: Path | None = None
    require: str | None = None
    fresh: bool = False
    force: bool = False
    otel: bool = False

    def __post_init__(self) -> None:
        for other, is_set in (("--json", self.as_json), ("--quiet", self.quiet)):
            if self.json_lines and is_set:
                raise SkillcError(f"`--json-lines` and `{other}` can't be used together", hint="leave one of them out")


def _group(*options: Callable[[_Command], _Command]) -> Callable[[_Command], _Command]:
    """Return a decorator that adds several options to a verb."""

    def decorate(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
store_option = click.option(
    "--store",
    type=click.Path(path_type=Path, dir_okay=False),
    default=".skillc/sessions.db",
    show_default=True,
    help="The store.",
)
setting_options = _group(
    click.option(
        "--set", "settings", multiple=True, metavar="BLOCK.NAME=VALUE", help="Change a setting: budget.cost=1."
    ),
    click.option("--offline", is_flag=True, help="Use the embedded `rulebook` model for every role; open no socket."),
)
plan_options = _group(
    click.option(
        "--model", "models", multiple=True, metavar="ROLE=NAME", help="Change a model: target=openai/gpt-5.5-mini."
    ),
    setting_options,
)
delivery_options = _group(
    click.option("--output", "-o", type=click.Path(path_type=Path), help="Write the skill's folder into this one."),
    click.option(
        "--require",
        type=click.Choice(("improved", ANY_VERDICT)),
        help="Deliver the skill only with this verdict; `none` delivers it with any verdict.",
    ),
    click.option("--fresh", is_flag=True, help="Call the models again, even where a reply is cached."),
    click.option(
        "--force", is_flag=True, help="Overwrite files that were edited by hand or belong to another tool or program."
    ),
)
findings_options = _group(
    click.option(
        "--format",
        "style",
        type=click.Choice(("text", "concise", "json", "sarif", "github")),
        default="text",
        show_default=True,
        help="Output format; sarif and github are for code scanning and workflows.",
    ),
    click.option("--json", "as_json", is_flag=True, help="The same as --format json."),
)
progress_options = _group(
    click.option(
        "--otel", is_flag=True, help="Send OpenTelemetry spans to a collector, as OTEL_EXPORTER_OTLP_ENDPOINT does."
    ),
    click.option("--quiet", "-q", is_flag=True, help="Print the result and errors, but no progress and no notes."),
    click.option("--json-lines", is_flag=True, help="Print one JSON object for each event, the result last."),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object; progress goes to standard error."),
)


def split_option(*splits: str, help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # noqa: A002 - as click
    """Return the option for the split to run; the first one is the default."""
    return click.option("--split", type=click.Choice(splits), default=splits[0], show_default=True, help=help)


class ProgramPath(click.Path):
    """The path of a program, completed by folders and by files that end in `.skill`.

    The verb finds out whether it can be read, so that an unreadable file does not stop the others.
    """

    def __init__(self) -> None:
        super().__init__(path_type=Path, readable=False)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Complete programs and folders."""
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
                folders.append(os.path.join(head, entry.name, ""))  # noqa: PTH118 - keeps what was typed
            elif entry.name.endswith(SUFFIX):
                programs.append(os.path.join(head, entry.name))  # noqa: PTH118
        if not programs:
            # The shell completes folders without a blank behind them.
            return [CompletionItem(incomplete, type="dir")]
        return [CompletionItem(path) for path in [*programs, *folders]]


def complete_codes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete diagnostic codes, with their titles if the shell shows them."""
    from click.shell_completion import CompletionItem

    from skillc.diagnostics.codes import CODES

    prefix = incomplete.upper()
    return [CompletionItem(code, help=CODES[code].title) for code in sorted(CODES) if code.startswith(prefix)]


def complete_library(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete modules of the standard library and of packages; after a module's name, its declarations."""
    from click.shell_completion import CompletionItem

    from skillc.language.library import installed_library
    from skillc.language.modules import STD

    found = []
    for module in installed_library().modules:
        qualified = incomplete.startswith(f"{STD}.")
        name = module.name if qualified else module.name.removeprefix(f"{STD}.")
        if incomplete.startswith(f"{name}."):
            parent = name.rpartition(".")[0]
            for each in module.declarations:
                found.append((f"{parent}.{each.name}" if parent else each.name, each.summary))
        else:
            found.append((name, module.summary))
    return [CompletionItem(name, help=summary) for name, summary in found if name.startswith(incomplete)]


def programs(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Return each file once, in the order given; a folder becomes all `.skill` files below it, by name.

    Hidden folders, links to folders and `node_modules` are skipped. A named file is taken whatever its suffix.

    Raises:
        SkillcError: a folder can't be read, or contains no program.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if not _is_folder(path):
            found[path] = None
            continue
        below = tuple(_programs_below(path))
        if not below:
            raise SkillcError(f"the folder `{path}` contains no program", hint=f"programs end in `{SUFFIX}`")
        found.update(dict.fromkeys(below))
    return tuple(found)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        # A parent folder is not readable: opening the path reports it.
        return False


def _programs_below(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder, onerror=_raise_unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
        for name in sorted(files):
            # macOS leaves `._name.skill` beside a file.
            if name.endswith(SUFFIX) and not name.startswith("."):
                yield Path(parent) / name


def _raise_unreadable(problem: OSError) -> None:
    reason = (problem.strerror or str(problem)).lower()
    raise SkillcError(f"the folder `{problem.filename}` can't be read: {reason}")
