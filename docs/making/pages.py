"""All generated pages: a template of prose for each, and the data that fills it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from docs.making import commands, functions, grammar, library, statements, types
from skillc import code_pages
from skillc.syntax.formatting import format_source
from skillc.syntax.source import Source

_BLOCK = re.compile(r"^```skill\n(?P<program>.*?)^```\n", re.MULTILINE | re.DOTALL)
_TEMPLATES = Path(__file__).with_name("templates")

_DATA: Mapping[str, Callable[[], Mapping[str, Any]]] = {
    "cli.md": commands.data,
    "optimizer.md": statements.loop,
    "reference/functions.md": functions.data,
    "reference/grammar.md": grammar.data,
    "reference/statements.md": statements.data,
    "reference/std.md": library.data,
    "reference/types.md": types.data,
}


def pages() -> dict[str, str]:
    """The text of each page that a template makes, by its path from the root of the repository."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters |= {"cell": cell}
    found = {}
    for name, data in _DATA.items():
        text = environment.get_template(f"{Path(name).name}.j2").render(data())
        found[f"docs/{name}"] = _BLOCK.sub(_laid_out, text.strip("\n") + "\n")
    return found


def _laid_out(block: re.Match[str]) -> str:
    """A block of the language in the form of `skillc fmt`."""
    made = format_source(Source("block.skill", block["program"])).text
    assert made is not None, block["program"]
    return f"```skill\n{made}```\n"


def all_pages() -> dict[str, str]:
    """The same with a page for each diagnostic code, whose examples are run for it."""
    return {**pages(), **code_pages.pages()}


def cell(text: object) -> str:
    """A text as it may stand in a table."""
    return str(text).replace("|", "\\|")
