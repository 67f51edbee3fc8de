"""The standard library and installed packages as data: what each module declares, with its documentation.

`skillc std` shows it, and the site's reference of the library is made of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skillc.errors import SkillcError
from skillc.language.folders import Folder
from skillc.language.kinds import KINDS
from skillc.language.modules import STD, Loader
from skillc.syntax import nodes
from skillc.syntax.parser import Parsed, parse
from skillc.syntax.source import Source, Span

if TYPE_CHECKING:
    from skillc.skill_packages import Claim, Package

_INDENT = "    "


@dataclass(frozen=True, slots=True)
class Declared:
    """A declaration of a module.

    Attributes:
        module: as `use` says it: `std.gates`.
        name: as it is spoken of: `gates.strict`.
        kind: the word of the kinds table: `gate`, `metric`, `budget`.
        signature: what stands before its value or block, on one line.
        doc: its documentation without the example, markdown.
        example: the line that shows it in use; empty where there is none.
        text: the declaration as it is written.
    """

    module: str
    name: str
    kind: str
    signature: str
    doc: str
    example: str
    text: str

    @property
    def summary(self) -> str:
        """The first sentence of its documentation, on one line."""
        line = " ".join(self.doc.split("\n\n")[0].split())
        end = line.find(". ")
        return line if end < 0 else line[: end + 1]


@dataclass(frozen=True, slots=True)
class Described:
    """A module: `about` is the comment at its head, of which the first line is the summary."""

    name: str
    about: str
    declarations: tuple[Declared, ...]

    @property
    def summary(self) -> str:
        """One line."""
        return self.about.partition("\n")[0]

    def find(self, name: str) -> Declared | None:
        """The declaration of a name."""
        return next((each for each in self.declarations if each.name.rpartition(".")[2] == name), None)


@dataclass(frozen=True, slots=True)
class Library:
    """All modules that a program can use without a path, and what is wrong with packages that bring some."""

    modules: tuple[Described, ...]
    problems: tuple[str, ...] = ()

    def find(self, name: str) -> Described | None:
        """A module by its whole name, or without the `std`."""
        by_name = {each.name: each for each in self.modules}
        return by_name.get(name) or by_name.get(f"{STD}.{name}")


def reference() -> Library:
    """The standard library alone, the same on every machine."""
    loader = Loader(Path())
    found = []
    for name in loader.standard_names():
        source = loader.standard(name)
        assert source is not None
        found.append(described(f"{STD}.{name}", source))
    return Library(tuple(found))


def installed() -> Library:
    """The standard library, and the modules of installed packages."""
    from skillc.skill_packages import PackageError, claims, locate, usable

    modules, problems = list(reference().modules), []
    found = claims()
    for name in found:
        if name not in usable(found):
            problems.append(_unusable(name, found[name]))
            continue
        try:
            package = locate(name, found)
        except PackageError as error:
            problems.append(error.message + (f"; {error.hint}" if error.hint else ""))
            continue
        for each in _of_package(package):
            if isinstance(each, Described):
                modules.append(each)
            else:
                problems.append(each)
    return Library(tuple(modules), tuple(problems))


def described(name: str, source: Source) -> Described:
    """What a module says of itself; statements that can't be read are left out."""
    parsed = parse(source)
    statements = [each for each in parsed.program.statements if isinstance(each, nodes.Declaration)]
    declared = [found for each in statements if (found := _declared(name, each, source)) is not None]
    return Described(name, _head(parsed), tuple(declared))


def _unusable(name: str, found: Sequence[Claim]) -> str:
    why = "the standard library's name" if name == STD else "a name that `use` can't say"
    return f"`{name}` of {found[0].shown} is {why}"


def _of_package(package: Package) -> Iterator[Described | str]:
    folder = Folder(package.folder, "the package's folder")
    for dotted in package.modules():
        try:
            source = folder.source(f"{dotted.replace('.', '/')}.skill")
        except SkillcError as error:
            yield error.message
            continue
        yield described(f"{package.name}.{dotted}", source)


def _declared(module: str, node: nodes.Declaration, source: Source) -> Declared | None:
    at = next((i for i, word in enumerate(node.words) if word.text in KINDS), None)
    if at is None or at + 1 >= len(node.words):
        return None
    end = node.words[-1].span.end
    if node.parameters is not None:
        # Brackets within are those of nothing: defaults are literals.
        stop = node.value.span.start if node.value is not None else node.span.end
        end = source.text.rfind(")", end, stop) + 1 or end
    signature = " ".join(source.slice(Span(node.span.start, end)).split())
    doc, example = _apart(node.doc or "")
    name = f"{module.rpartition('.')[2]}.{node.words[at + 1].text}"
    return Declared(module, name, node.words[at].text, signature, doc, example, source.slice(node.span))


def _apart(doc: str) -> tuple[str, str]:
    """The documentation, and the indented lines in it, which are its example."""
    lines = doc.split("\n")
    example = [line.removeprefix(_INDENT) for line in lines if line.startswith(_INDENT)]
    told = [line for line in lines if not line.startswith(_INDENT)]
    return "\n".join(told).strip(), "\n".join(example)


def _head(parsed: Parsed) -> str:
    """The comment lines that a file begins with."""
    found: list[str] = []
    for trivia in parsed.program.trivia:
        if trivia.kind != "comment" or (parsed.program.statements and trivia.span > parsed.program.statements[0].span):
            break
        found.append(trivia.text.removeprefix("#").strip())
    return "\n".join(found).strip()
