"""Modules and files that a program may name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from skillc.errors import SkillcError
from skillc.language.modules import STD, Loader, standard_names
from skillc.lsp.cursor import Cursor
from skillc.lsp.offers import ITEM, Offer
from skillc.lsp.workspace import Analysis

_DATA_SUFFIXES = (".jsonl", ".csv", ".json", ".tsv", ".parquet")
_FILES_LIMIT = 500


def used(analysis: Analysis, cursor: Cursor) -> Iterator[Offer]:
    """What may stand behind `use`: the standard library and installed packages, and their modules."""
    loader = analysis.work.loader
    if cursor.last == "USE":
        yield Offer(STD, ITEM.Module, "the standard library", snippet=f"{STD}.")
        for name in loader.claims:
            yield Offer(name, ITEM.Module, "an installed package", snippet=f"{name}.")
    elif cursor.before == (STD,):
        for name in standard_names():
            yield Offer(name, ITEM.Module, f"{STD}.{name}")
    elif cursor.before:
        yield from _packaged(loader, cursor.before)


def _packaged(loader: Loader, path: tuple[str, ...]) -> Iterator[Offer]:
    """The modules of an installed package, below a path in it."""
    below = "".join(f"{word}." for word in path[1:])
    with suppress(SkillcError, OSError):
        package = loader.package(path[0])
        for name in package.modules():
            if name.startswith(below):
                yield Offer(name.removeprefix(below), ITEM.Module, f"{package.name}.{name}")


def files(analysis: Analysis, cursor: Cursor) -> Iterator[Offer]:
    """Files beside the program, behind `use "` and behind the settings of `data` that name one."""
    using = cursor.words[:1] == ("use",)
    if not using and cursor.place.kind != "data":
        return
    path = Path(analysis.source.name)
    if not path.is_absolute():
        return
    suffixes = (".skill", ".md") if using else _DATA_SUFFIXES
    typed = cursor.quoted[1:].rpartition("/")[0]
    folder = path.parent / typed
    prefix = f"{typed}/" if typed else "./" if using else ""
    try:
        if not folder.resolve().is_relative_to(path.parent.resolve()):
            return
        entries = sorted(folder.iterdir())[:_FILES_LIMIT]
    except (OSError, ValueError):
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield Offer(f"{prefix}{entry.name}/", ITEM.Folder, rank=6)
        elif entry.suffix in suffixes and entry != path:
            yield Offer(f"{prefix}{entry.name}", ITEM.File)
