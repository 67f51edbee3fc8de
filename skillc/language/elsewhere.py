"""Names that a module lacks, found where they are: in another module, or under another alias."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from skillc.language.files import read_source
from skillc.language.modules import STD, Module
from skillc.resources import folder
from skillc.syntax import nodes
from skillc.syntax.parser import parse


def elsewhere(name: str, module: Module, home: Module | None = None) -> str | None:
    """The hint that says where a name is declared, for one that its module does not have.

    Args:
        name: the name that is missed.
        module: the file that speaks of it.
        home: the module that it was looked for in.
    """
    for alias, used in module.uses.items():
        if used is not None and used is not home and name in used.names():
            return f"`{name}` is in `{used.shown}`: write `{alias}.{name}`"
    for standard, names in standard_names().items():
        if name in names and (home is None or home.key != f"{STD}.{standard}"):
            return f"`{name}` is in `{STD}.{standard}`: write `use {STD}.{standard}`, and `{standard}.{name}`"
    return None


def renamed(name: str, module: Module) -> str | None:
    """The hint for a module that is spoken of by its own name, and was given another."""
    for alias, used in module.uses.items():
        if used is None:
            continue
        own = used.key.partition(".")[2] if not used.path else used.path.rpartition("/")[2].rpartition(".")[0]
        if own == name or used.shown == name:
            return f"`{used.shown}` is called `{alias}` in this file"
    return None


@cache
def standard_names() -> Mapping[str, frozenset[str]]:
    """What each module of the standard library declares."""
    found = {}
    for path in sorted(folder("stdlib").glob("*.skill")):
        statements = parse(read_source(path)).program.statements
        declared = (each for each in statements if isinstance(each, nodes.Declaration))
        found[path.stem] = frozenset(each.words[-1].text for each in declared)
    return found
