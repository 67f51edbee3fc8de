"""Names of modules that are legal, since position tells them apart, and that a reader may take for something else."""

from __future__ import annotations

from skillc.diagnostics.diagnostic import Label, Report
from skillc.gates.functions import NAMES
from skillc.language.modules import Module
from skillc.syntax import nodes

_RENAME = "give the module another name with `as`"


def note_shadows(report: Report, module: Module, statements: tuple[nodes.Statement, ...]) -> None:
    """Adds a note for each module whose name stands for something else too.

    Fields are let pass: `input text: text` beside `use std.text` is common, and a field never stands before a dot.
    """
    for alias, place in module.places.items():
        if module.uses.get(alias) is None:
            continue
        meaning, where = _other_meaning(module, alias)
        if meaning is None:
            continue
        message = f"`{alias}` is a module before a `.`, and {meaning} elsewhere"
        report.note("SK118", module.source, place, message, hint=_RENAME, secondary=where)
    _note_twice(report, module)
    _note_package(report, module, statements)


def _other_meaning(module: Module, alias: str) -> tuple[str | None, tuple[Label, ...]]:
    for stated in module.stated:
        if stated.name is not None and stated.name.text == alias and stated.kind.word != "skill":
            kind = "the goal" if stated.kind.word == "goal" else f"a {stated.kind.word}"
            return kind, (Label(module.source, stated.name.span, "declared here"),)
        for parameter in stated.node.parameters or ():
            if parameter.name.text == alias:
                return "a parameter", (Label(module.source, parameter.name.span, "declared here"),)
    if alias in NAMES:
        return "a function of the language", ()
    return None, ()


def _note_twice(report: Report, module: Module) -> None:
    """One module under two names."""
    first: dict[str, str] = {}
    for alias, used in module.uses.items():
        if used is None:
            continue
        other = first.setdefault(used.key, alias)
        if other != alias and alias in module.places and other in module.places:
            label = Label(module.source, module.places[other], "the first is here")
            message = f"`{alias}` and `{other}` are one module, `{used.shown}`"
            hint = "keep one of the lines"
            report.note("SK118", module.source, module.places[alias], message, hint=hint, secondary=(label,))


def _note_package(report: Report, module: Module, statements: tuple[nodes.Statement, ...]) -> None:
    """A file that is called like a package that the same program uses."""
    paths = [use.path for use in statements if isinstance(use, nodes.Use) and use.path is not None]
    for path in paths:
        used = module.uses.get(path[0].text)
        if used is None or (len(path) > 1 and used.package is not None and used.package.name == path[0].text):
            continue
        label = Label(module.source, path[0].span, "the package")
        message = f"`{path[0].text}` is a module of this file, and the name of a package"
        report.note("SK118", module.source, module.places[path[0].text], message, hint=_RENAME, secondary=(label,))
