"""Completion items: declared names, modules, files, and the arguments of a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lsprotocol import types

from skillc.errors import SkillcError
from skillc.gates.functions import Builtin, Takes
from skillc.language.arguments import REFERENCES
from skillc.language.kinds import STATES
from skillc.language.links import fields_in
from skillc.language.modules import STD, Loader, Module, standard_names
from skillc.language.statements import KindDeclaration
from skillc.lsp.cursor import CallContext, Cursor
from skillc.lsp.hover import function_of, head, parameter_texts, signature
from skillc.lsp.workspace import Analysis

ITEM = types.CompletionItemKind


@dataclass(frozen=True, slots=True)
class Offer:
    """One completion; editors with snippet support insert `snippet`."""

    label: str
    kind: types.CompletionItemKind
    detail: str = ""
    text: str = ""
    snippet: str = ""
    rank: int = 5


def declared(decl: KindDeclaration, kind: types.CompletionItemKind) -> Offer:
    """Offer the name of a declaration."""
    name = decl.name.text if decl.name is not None else ""
    return Offer(name, kind, decl.kind.word, decl.node.doc or "", rank=2)


def called(name: str, decl: KindDeclaration) -> Offer:
    """Offer a function of the program or a module, with parentheses."""
    text = f"```skill\n{head(decl)}\n```\n\n{decl.node.doc or ''}".strip()
    return Offer(name, ITEM.Function, signature(decl), text, f"{name}($1)", rank=3)


# ---- modules and files ----------------------------------------------------------------------------


_DATA_SUFFIXES = (".jsonl", ".csv", ".json", ".tsv", ".parquet")
_FILES_LIMIT = 500


def used(analysis: Analysis, cursor: Cursor) -> Iterator[Offer]:
    """Offer the standard library, installed packages, and their modules."""
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
    """Offer the modules of an installed package below a path."""
    below = "".join(f"{word}." for word in path[1:])
    with suppress(SkillcError, OSError):
        package = loader.package(path[0])
        for name in package.modules():
            if name.startswith(below):
                yield Offer(name.removeprefix(below), ITEM.Module, f"{package.name}.{name}")


def files(analysis: Analysis, cursor: Cursor) -> Iterator[Offer]:
    """Offer files beside the program, for `use "` and the settings of `data` that name a file."""
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


# ---- arguments ------------------------------------------------------------------------------------


def options(module: Module, call: CallContext, *, run: bool) -> Iterator[Offer]:
    """Offer the named arguments of a call."""
    called = function_of(module, call, run=run)
    if isinstance(called, Builtin):
        for option in called.options:
            yield Offer(option.name, ITEM.Property, f"option of {called.name}", snippet=f"{option.name} = ", rank=1)
    elif called is not None:
        pairs = zip(called.node.parameters or (), parameter_texts(called), strict=True)
        for parameter, detail in list(pairs)[call.index :]:
            name = parameter.name.text
            yield Offer(name, ITEM.Property, detail, snippet=f"{name} = ", rank=4)


def taken(module: Module, call: CallContext, *, run: bool) -> Takes | str | None:
    """Return what the argument at the cursor takes."""
    called = function_of(module, call, run=run)
    if isinstance(called, Builtin):
        if call.option is not None:
            return next((each.takes for each in called.options if each.name == call.option), None)
        wanted = called.positional
        return wanted[min(call.index, len(wanted) - 1)].takes if wanted else None
    if called is None:
        return None
    parameters = called.node.parameters or ()
    named = [each for each in parameters if each.name.text == call.option] if call.option else []
    found = named or list(parameters[call.index : call.index + 1])
    written = found[0].type if found else None
    return getattr(written, "name", None)


def _of_kind(kind: str) -> Callable[[Module], Iterator[Offer]]:
    return lambda module: (declared(each, ITEM.Value) for each in module.named(kind).values())


def _word(word: str) -> Callable[[Module], Iterator[Offer]]:
    return lambda module: iter((Offer(word, ITEM.EnumMember),))


def _fields(module: Module, *, outputs: bool) -> Iterator[Offer]:
    fields = fields_in(module).values()
    return (declared(each, ITEM.Field) for each in fields if (each.kind.word == "output") == outputs)


BY_TAKES: Mapping[str | None, Callable[[Module], Iterator[Offer]]] = {
    "field": lambda module: _fields(module, outputs=False),
    "output": lambda module: _fields(module, outputs=True),
    "state": lambda module: (Offer(state, ITEM.Constant, about) for state, about in STATES.items()),
    "candidate": _word("candidate"),
    "batch": _word("batch"),
    "run": _word("run"),
    "model": _of_kind("model"),
    "rubric": _of_kind("rubric"),
    "judged": _of_kind("rubric"),
    "skill": _of_kind("skill"),
    "models": _of_kind("model"),
    "reference": lambda module: (Offer(word, ITEM.EnumMember) for word in REFERENCES),
}
