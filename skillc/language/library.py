"""Describe the modules of the standard library and of installed packages, for `skillc std` and the reference."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from typing import Any

from skillc.dataclass import dataclass
from skillc.diagnostics.render import printable
from skillc.diagnostics.suggest import spelling_hint
from skillc.errors import SkillcError
from skillc.language.kinds import KINDS
from skillc.language.modules import STD, Loader, standard, standard_names
from skillc.syntax import nodes
from skillc.syntax.parser import Parsed, parse
from skillc.syntax.source import Source, Span

FORMAT_VERSION = 1
_WIDTH = 100
_INDENT = "    "


@dataclass(frozen=True, slots=True)
class LibraryDeclaration:
    """A declaration of a module.

    Attributes:
        name: `gates.strict`.
        module: its name after `use`: `std.gates`.
        kind: the word of the kinds table: `gate`, `metric`, `budget`.
        signature: the text before its value or block, on one line.
        doc: its documentation without the example, in markdown.
        example: a use of it; empty if the documentation has none.
        source: its text.
    """

    name: str
    module: str
    kind: str
    signature: str
    doc: str
    example: str
    source: str

    @property
    def summary(self) -> str:
        """The first sentence of its documentation, on one line."""
        line = " ".join(self.doc.split("\n\n")[0].split())
        end = line.find(". ")
        return line if end < 0 else line[: end + 1]


@dataclass(frozen=True, slots=True)
class LibraryModule:
    """A module; `about` is its leading comment."""

    name: str
    about: str
    declarations: tuple[LibraryDeclaration, ...]

    @property
    def summary(self) -> str:
        """The first line of `about`."""
        return self.about.partition("\n")[0]

    def find(self, name: str) -> LibraryDeclaration | None:
        """Find a declaration by its name."""
        return next((each for each in self.declarations if each.name.rpartition(".")[2] == name), None)


@dataclass(frozen=True, slots=True)
class Library:
    """All modules that a program can use without a path, and the problems of packages."""

    modules: tuple[LibraryModule, ...]
    problems: tuple[str, ...] = ()

    def find(self, name: str) -> LibraryModule | None:
        """Find a module by its name, with or without `std`."""
        by_name = {each.name: each for each in self.modules}
        return by_name.get(name) or by_name.get(f"{STD}.{name}")


def standard_library() -> Library:
    """Describe the standard library."""
    return Library(tuple(describe_module(f"{STD}.{name}", standard(name)) for name in standard_names()))


def installed_library() -> Library:
    """Describe the standard library and the modules of installed packages."""
    from skillc.language.skill_packages import PackageError, claims, importable_names, locate

    modules, problems = list(standard_library().modules), []
    found = claims()
    for name in found:
        if name not in importable_names(found):
            why = "is the name of the standard library" if name == STD else "can't be written after `use`"
            problems.append(f"`{name}` of {found[name][0].label} {why}")
            continue
        try:
            package = locate(name, found)
        except PackageError as error:
            problems.append(error.message + (f"; {error.hint}" if error.hint else ""))
            continue
        loader = Loader(package.folder)
        for dotted in package.modules():
            try:
                source = loader.source(f"{dotted.replace('.', '/')}.skill", package)
            except SkillcError as error:
                problems.append(error.message)
            else:
                modules.append(describe_module(f"{package.name}.{dotted}", source))
    return Library(tuple(modules), tuple(problems))


def describe_module(name: str, source: Source) -> LibraryModule:
    """Describe a module; skip statements that can't be read."""
    parsed = parse(source)
    statements = [each for each in parsed.program.statements if isinstance(each, nodes.Declaration)]
    declared = [found for each in statements if (found := _declared(name, each, source)) is not None]
    return LibraryModule(name, _head(parsed), tuple(declared))


def _declared(module: str, node: nodes.Declaration, source: Source) -> LibraryDeclaration | None:
    at = next((i for i, word in enumerate(node.words) if word.text in KINDS), None)
    if at is None or at + 1 >= len(node.words):
        return None
    end = node.words[-1].span.end
    if node.parameters is not None:
        # Defaults are literals, so the last bracket closes the parameters.
        stop = node.value.span.start if node.value is not None else node.span.end
        end = source.text.rfind(")", end, stop) + 1 or end
    signature = " ".join(source.slice(Span(node.span.start, end)).split())
    doc, example = _split_example(node.doc or "")
    name = f"{module.rpartition('.')[2]}.{node.words[at + 1].text}"
    return LibraryDeclaration(name, module, node.words[at].text, signature, doc, example, source.slice(node.span))


def _split_example(doc: str) -> tuple[str, str]:
    """Split documentation from its example: the indented lines."""
    lines = doc.split("\n")
    example = [line.removeprefix(_INDENT) for line in lines if line.startswith(_INDENT)]
    prose = [line for line in lines if not line.startswith(_INDENT)]
    return "\n".join(prose).strip(), "\n".join(example)


def _head(parsed: Parsed) -> str:
    """The leading comment of a file."""
    found: list[str] = []
    for comment in parsed.program.comments:
        if comment.documents or (parsed.program.statements and comment.span > parsed.program.statements[0].span):
            break
        found.append(comment.text.removeprefix("#").strip())
    return "\n".join(found).strip()


# ---- `skillc std` -----------------------------------------------------------------------------------


def render_page(library: Library, name: str | None) -> str:
    """Render all modules, one module, or one declaration as text.

    Raises:
        SkillcError: the name is unknown.
    """
    found = None if name is None else lookup(library, name)
    if found is None:
        text = _listing(library)
    else:
        text = _module(found) if isinstance(found, LibraryModule) else _declaration(found)
    # Documentation of packages may contain control characters.
    return "\n".join(printable(line) for line in text.split("\n"))


def to_json(library: Library, name: str | None) -> dict[str, Any]:
    """Return all modules, one module, or one declaration as JSON values.

    Raises:
        SkillcError: the name is unknown.
    """
    if name is None:
        modules = [_module_data(each) for each in library.modules]
        return {"format_version": FORMAT_VERSION, "modules": modules, "problems": list(library.problems)}
    found = lookup(library, name)
    if isinstance(found, LibraryModule):
        return {"format_version": FORMAT_VERSION, "module": _module_data(found)}
    return {"format_version": FORMAT_VERSION, "declaration": asdict(found)}


def lookup(library: Library, name: str) -> LibraryModule | LibraryDeclaration:
    """Find a module or a declaration of one: `gates`, `std.gates`, `gates.strict`.

    Raises:
        SkillcError: the name is unknown.
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
        message = f"`{home.name}` has no declaration `{last}`"
        hint = _elsewhere(library, last) or spelling_hint(f"{before.rpartition('.')[2]}.{last}", known)
        raise SkillcError(message, hint=hint or f"`skillc std {before}` lists its declarations")
    inside = [f"`{each.name}`" for each in library.modules if each.name.startswith(f"{name}.")]
    if inside:
        hint = f"valid options: {', '.join(inside[:8])}"
        raise SkillcError(f"`{name}` is a package: name one of its modules", hint=hint)
    known = [_short(each.name) for each in library.modules]
    hint = _elsewhere(library, last) or spelling_hint(name, known)
    raise SkillcError(f"unknown module `{name}`", hint=hint or "`skillc std` lists all modules")


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
        [*lines, "", "`skillc std gates` lists the declarations of a module, `skillc std gates.strict` explains one"]
    )


def _module(module: LibraryModule) -> str:
    lines = [module.name]
    for paragraph in module.about.split("\n\n"):
        lines += ["", *_wrapped(paragraph, "")]
    for each in module.declarations:
        lines += ["", f"  {each.signature}", *_wrapped(each.summary, "      ")]
    return "\n".join([*lines, "", f"use {module.name}"])


def _declaration(found: LibraryDeclaration) -> str:
    lines = [f"{found.name} ({found.module})", "", f"  {found.signature}"]
    for paragraph in found.doc.split("\n\n"):
        lines += ["", *_wrapped(paragraph, "")]
    if found.example:
        lines += ["", "Example:", "", f"    use {found.module}", *(f"    {line}" for line in found.example.split("\n"))]
    return "\n".join([*lines, "", "Source:", "", textwrap.indent(found.source, "    ")])


def _wrapped(text: str, indent: str) -> list[str]:
    plain = " ".join(text.split())
    return textwrap.wrap(
        plain, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


# ---- data -----------------------------------------------------------------------------------------


def _module_data(module: LibraryModule) -> dict[str, Any]:
    declared = [asdict(each) for each in module.declarations]
    return {"name": module.name, "summary": module.summary, "about": module.about, "declarations": declared}
