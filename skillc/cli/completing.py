"""What the shell offers behind a verb. Runs at each press of the tab key, so it imports next to nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class ProgramPath(click.Path):
    """The path of a program: completed by folders and by files that end in `.skill`.

    Whether it can be read is for the verb to find out, so that one of several that can't leaves the others done.
    """

    def __init__(self) -> None:
        super().__init__(path_type=Path, readable=False)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Programs and folders that begin with what was typed."""
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
    """Diagnostic codes, with their titles where the shell shows them."""
    from click.shell_completion import CompletionItem

    from skillc.diagnostics.codes import CODES

    wanted = incomplete.upper()
    return [CompletionItem(code, help=CODES[code].title) for code in sorted(CODES) if code.startswith(wanted)]


def complete_library(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Modules of the standard library and of installed packages; behind a module's name, what it declares."""
    from click.shell_completion import CompletionItem

    from skillc.language.library import installed
    from skillc.language.modules import STD

    found = []
    for module in installed().modules:
        whole = incomplete.startswith(f"{STD}.")
        name = module.name if whole else module.name.removeprefix(f"{STD}.")
        if incomplete.startswith(f"{name}."):
            home = name.rpartition(".")[0]
            for each in module.declarations:
                found.append((f"{home}.{each.name}" if home else each.name, each.summary))
        else:
            found.append((name, module.summary))
    return [CompletionItem(name, help=told) for name, told in found if name.startswith(incomplete)]
