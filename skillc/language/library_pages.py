"""What `skillc std` says of the library: as text, and as data."""

from __future__ import annotations

import textwrap
from typing import Any

from skillc.diagnostics.render import printable
from skillc.diagnostics.suggest import meant
from skillc.errors import SkillcError
from skillc.language.library import Declared, Described, Library
from skillc.language.modules import STD

FORMAT_VERSION = 1
_WIDTH = 100


def page(library: Library, name: str | None) -> str:
    """All modules, one module, or one declaration.

    Raises:
        SkillcError: there is nothing of that name.
    """
    found = None if name is None else lookup(library, name)
    if found is None:
        text = _listing(library)
    else:
        text = _module(found) if isinstance(found, Described) else _declaration(found)
    # What a package says may hold signs that move the cursor.
    return "\n".join(printable(line) for line in text.split("\n"))


def as_data(library: Library, name: str | None) -> dict[str, Any]:
    """The same as values of JSON.

    Raises:
        SkillcError: there is nothing of that name.
    """
    if name is None:
        modules = [_module_data(each) for each in library.modules]
        return {"format_version": FORMAT_VERSION, "modules": modules, "problems": list(library.problems)}
    found = lookup(library, name)
    if isinstance(found, Described):
        return {"format_version": FORMAT_VERSION, "module": _module_data(found)}
    return {"format_version": FORMAT_VERSION, "declaration": _declaration_data(found)}


def lookup(library: Library, name: str) -> Described | Declared:
    """A module, or a declaration behind a module's name: `gates`, `std.gates`, `gates.strict`.

    Raises:
        SkillcError: there is none.
    """
    module = library.find(name)
    if module is not None:
        return module
    before, _, last = name.rpartition(".")
    home = library.find(before)
    found = home.find(last) if home is not None else None
    if found is not None:
        return found
    if home is not None:
        known = [each.name for each in home.declarations]
        message = f"`{home.name}` has no `{last}`"
        hint = _elsewhere(library, last) or meant(f"{before.rpartition('.')[2]}.{last}", known)
        raise SkillcError(message, hint=hint or f"`skillc std {before}` lists what it has")
    inside = [f"`{each.name}`" for each in library.modules if each.name.startswith(f"{name}.")]
    if inside:
        raise SkillcError(f"`{name}` is a package, and each of its modules is shown alone", hint=", ".join(inside[:8]))
    known = [_short(each.name) for each in library.modules]
    hint = _elsewhere(library, last) or meant(name, known)
    raise SkillcError(f"there is no module `{name}`", hint=hint or "`skillc std` lists all modules")


def _elsewhere(library: Library, name: str) -> str | None:
    found = next((module.name for module in library.modules if module.find(name) is not None), None)
    return f"`{name}` is in `{found}`: `skillc std {_short(found)}.{name}`" if found is not None else None


def _short(name: str) -> str:
    return name.removeprefix(f"{STD}.")


# ---- text -----------------------------------------------------------------------------------------


def _listing(library: Library) -> str:
    width = max(len(each.name) for each in library.modules)
    lines = [f"{each.name:<{width}}  {each.summary}".rstrip() for each in library.modules]
    return "\n".join(
        [*lines, "", "`skillc std gates` lists what a module declares, `skillc std gates.strict` explains it"]
    )


def _module(module: Described) -> str:
    lines = [module.name]
    for paragraph in module.about.split("\n\n"):
        lines += ["", *_wrapped(paragraph, "")]
    for each in module.declarations:
        lines += ["", f"  {each.signature}", *_wrapped(each.summary, "      ")]
    return "\n".join([*lines, "", f"use {module.name}"])


def _declaration(found: Declared) -> str:
    lines = [f"{found.name} ({found.module})", "", f"  {found.signature}"]
    for paragraph in found.doc.split("\n\n"):
        lines += ["", *_wrapped(paragraph, "")]
    if found.example:
        lines += ["", "Example:", "", f"    use {found.module}", *(f"    {line}" for line in found.example.split("\n"))]
    return "\n".join([*lines, "", "Source:", "", textwrap.indent(found.text, "    ")])


def _wrapped(text: str, indent: str) -> list[str]:
    plain = " ".join(text.split())
    return textwrap.wrap(
        plain, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


# ---- data -----------------------------------------------------------------------------------------


def _module_data(module: Described) -> dict[str, Any]:
    declared = [_declaration_data(each) for each in module.declarations]
    return {"name": module.name, "summary": module.summary, "about": module.about, "declarations": declared}


def _declaration_data(found: Declared) -> dict[str, Any]:
    return {
        "name": found.name,
        "module": found.module,
        "kind": found.kind,
        "signature": found.signature,
        "doc": found.doc,
        "example": found.example,
        "source": found.text,
    }
