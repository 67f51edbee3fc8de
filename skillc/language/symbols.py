"""Symbols: what a name can stand for, and what a file declares, for editors."""

from __future__ import annotations

from dataclasses import dataclass, field

from skillc.diagnostics.diagnostic import Reporter
from skillc.gates.functions import Builtin
from skillc.gates.functions import Parameter as BuiltinParameter
from skillc.language.forms import SettingKind
from skillc.language.kinds import Kind
from skillc.language.modules import Module
from skillc.language.statements import Sorter, Stated
from skillc.syntax import nodes
from skillc.syntax.source import Source, Span

Origin = Stated | SettingKind | Kind | Builtin | BuiltinParameter | Module | nodes.Parameter | nodes.LabelType | None


@dataclass(frozen=True, slots=True)
class Symbol:
    """Something that a name can stand for; two are the same where all but `origin` and `source` is.

    Attributes:
        kind: the word of the kinds table, or `module`, `file`, `heading`, `parameter`, `label`; of the language's own
            `statement`, `setting`, `word`, `type`, `state`, `function`, `option`.
        file: the name of the source that declares it; None for what is the language's own, and for a file.
        span: where its name stands in that file.
        owner: the function of a parameter or option, the kind that has a setting.
        origin: what declares it.
    """

    kind: str
    name: str
    file: str | None = None
    span: Span | None = None
    owner: str = ""
    source: Source | None = field(default=None, compare=False, repr=False)
    origin: Origin = field(default=None, compare=False, repr=False)


def declared(stated: Stated) -> Symbol | None:
    """What a declaration with a name declares."""
    if stated.name is None:
        return None
    return at(stated.kind.word, stated.name, stated.source, stated)


def fields_in(module: Module) -> dict[str, Stated]:
    """Fields of task and data by name, the first of two that are alike."""
    found: dict[str, Stated] = {}
    for parent in ("task", "data"):
        for stated in _children(module, parent):
            if stated.name is not None:
                found.setdefault(stated.name.text, stated)
    return found


def sections_in(module: Module) -> dict[str, Stated]:
    """Sections that another may reuse: of skills, and of the file itself."""
    inside = {s.name.text: s for s in _children(module, "skill") if s.name is not None and s.kind.word == "section"}
    return {**inside, **module.named("section")}


def metrics_in(module: Module) -> dict[str, Stated]:
    """Metrics without parameters, the goal included."""
    found = {**module.named("goal"), **module.named("metric")}
    return {name: stated for name, stated in found.items() if stated.node.parameters is None}


def _children(module: Module, parent: str) -> list[Stated]:
    found: list[Stated] = []
    for stated in module.stated:
        if stated.kind.word == parent and stated.node.block is not None:
            sorter = Sorter(Reporter(), module.source, parent, stated.kind.settings or (), stated.kind.passes)
            for statement in stated.node.block.statements:
                found += sorter.sort([statement]).kinds
    return found


def at(kind: str, name: nodes.Name, source: Source, origin: Origin, owner: str = "") -> Symbol:
    """What a name declares where it stands."""
    return Symbol(kind, name.text, source.name, name.span, owner, source, origin)


def parameter_of(module: Module, stated: Stated, parameter: nodes.Parameter) -> Symbol:
    """A parameter of a function."""
    owner = stated.name.text if stated.name is not None else ""
    return at("parameter", parameter.name, module.source, parameter, owner)
