"""Modules: where their texts come from, and what each declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from skillc.errors import SkillcError
from skillc.files import shipped_folder
from skillc.language.statements import KindDeclaration
from skillc.language.types import Broken
from skillc.syntax import nodes
from skillc.syntax.files import Folder, read_source
from skillc.syntax.parser import parse
from skillc.syntax.source import Source, Span

if TYPE_CHECKING:
    from skillc.language.skill_packages import Package, PackageClaim

STD = "std"
_FUNCTIONS = "functions"


class Loader:
    """Reads files below one folder, the standard library, and the files of installed packages.

    Args:
        root: the main program's folder; nothing outside it can be read, the library and packages excepted.
        skill_sections: reads the sections of a markdown skill, by heading; without it none can be used.
    """

    def __init__(self, root: Path, skill_sections: Callable[[Path], Mapping[str, str]] | None = None) -> None:
        self.root = root
        self.skill_sections = skill_sections
        self._packages: dict[str, Package] = {}

    def folder(self, package: Package | None = None) -> Folder:
        """The folder that files are read from: the program's, or a package's."""
        return Folder(self.root) if package is None else Folder(package.folder, "the package's folder")

    def source(self, path: str, package: Package | None = None) -> Source:
        """Read a file, its path relative to the folder.

        Raises:
            SkillcError: it can't be read, or a link leads out of the folder.
        """
        return self.folder(package).source(path)

    def sections(self, path: str, package: Package | None = None) -> Mapping[str, str]:
        """Read the sections of a markdown skill.

        Raises:
            SkillcError: it can't be read.
        """
        if self.skill_sections is None:
            raise SkillcError(f"`{path}` can't be read here: nothing was given that reads markdown skills")
        place = self.folder(package).file(path)
        read_source(place)  # a pipe would wait for ever, and a device never end
        try:
            return self.skill_sections(place)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is no text in UTF-8"
            raise SkillcError(f"`{path}` can't be read: {reason.lower()}") from None

    def package(self, name: str) -> Package:
        """An installed package that carries `.skill` files.

        Raises:
            PackageError: nothing can be used of it.
        """
        from skillc.language.skill_packages import locate

        if name not in self._packages:
            self._packages[name] = locate(name, self.claims)
        return self._packages[name]

    @cached_property
    def claims(self) -> Mapping[str, tuple[PackageClaim, ...]]:
        """What installed distributions declare, looked up when a program first names a package."""
        from skillc.language.skill_packages import claims

        return claims()

    def hidden_by(self, package: Package) -> str | None:
        """What lies beside the program and would be imported in place of a package's own code."""
        bare = self.root / package.module
        for place in (bare.with_name(f"{package.module}.py"), bare / "__init__.py"):
            try:
                if place.is_file() and not place.resolve().is_relative_to(package.folder.resolve()):
                    return place.relative_to(self.root).as_posix()
            except (OSError, RuntimeError):
                continue
        return None


@dataclass(eq=False)
class Module:
    """One file of a program: its declarations, and what it uses.

    Attributes:
        key: its path below the root, `std.gates`, or `acme:gates.skill` in a package; no two are alike.
        declarations: its statements of known kinds, in order.
        dropped: words of statements that could not be read.
        uses: by alias; None where the module could not be loaded, which has been reported.
        places: where each alias is declared.
        used: the aliases that something spoke of.
        reached: what a program used of it, by kind and name; metrics and gates with parameters are of kind `function`.
        sections: of a markdown skill, which has nothing else.
        verified: whether a function's body is right for any argument; None while that is being found out.
        path: its path below the root that it lies in; empty in the standard library.
        package: the installed package that it is part of.
    """

    key: str
    source: Source
    declarations: tuple[KindDeclaration, ...] = ()
    dropped: frozenset[str] = frozenset()
    uses: dict[str, Module | None] = field(default_factory=dict)
    places: dict[str, Span] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    reached: set[tuple[str, str]] = field(default_factory=set)
    sections: Mapping[str, str] | None = None
    verified: dict[str, bool | None] = field(default_factory=dict)
    path: str = ""
    package: Package | None = None
    _index: dict[str, dict[str, KindDeclaration]] = field(default_factory=dict, repr=False)
    _indexed: tuple[KindDeclaration, ...] = field(default=(), repr=False)

    @property
    def shown(self) -> str:
        """Its name in messages: as `use` says it."""
        if self.package is None:
            return self.key
        return shown_in(self.package.name, self.path)

    def named(self, kind: str) -> Mapping[str, KindDeclaration]:
        """The declarations of a kind by name; the first of two that are alike."""
        return self._by_kind().get(kind, {})

    def functions(self) -> Mapping[str, KindDeclaration]:
        """Metrics and gates with parameters."""
        return self._by_kind().get(_FUNCTIONS, {})

    def _by_kind(self) -> dict[str, dict[str, KindDeclaration]]:
        """Every expression asks, so the answer is kept for as long as the statements are the same."""
        if self._indexed is not self.declarations:
            self._index, self._indexed = {}, self.declarations
            for decl in self.declarations:
                if decl.name is not None:
                    self._index.setdefault(decl.kind.word, {}).setdefault(decl.name.text, decl)
            both = {**self._index.get("gate", {}), **self._index.get("metric", {})}
            self._index[_FUNCTIONS] = {name: each for name, each in both.items() if each.node.parameters is not None}
        return self._index

    def alias(self, name: str) -> Module | None:
        """A module that this one uses, by the name that it is used under.

        Raises:
            Broken: it could not be loaded, which has been reported.
        """
        if name not in self.uses:
            return None
        self.used.add(name)
        module = self.uses[name]
        if module is None:
            raise Broken
        return module

    def names(self) -> list[str]:
        """All names that another file may speak of."""
        if self.sections is not None:
            return list(self.sections)
        return [decl.name.text for decl in self.declarations if decl.name is not None]


def shown_in(package: str, path: str) -> str:
    """A package's file as `use` says it: `acme.judging.strict`."""
    stem, dot, suffix = path.rpartition(".")
    return f"{package}.{stem.replace('/', '.')}" if dot and suffix == "skill" else f"{package}:{path}"


# ---- the standard library ----------------------------------------------------------------------------


def standard_names() -> list[str]:
    """The modules of `std`."""
    return sorted(path.stem for path in shipped_folder("stdlib").glob("*.skill"))


def standard(name: str) -> Source:
    """The text of a module of the standard library."""
    return read_source(shipped_folder("stdlib") / f"{name}.skill")


@cache
def _declared_in_std() -> Mapping[str, frozenset[str]]:
    """What each module of the standard library declares."""
    found = {}
    for name in standard_names():
        statements = parse(standard(name)).program.statements
        declared = (each for each in statements if isinstance(each, nodes.Declaration))
        found[name] = frozenset(each.words[-1].text for each in declared)
    return found


# ---- hints ------------------------------------------------------------------------------------------


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
    for std, names in _declared_in_std().items():
        if name in names and (home is None or home.key != f"{STD}.{std}"):
            return f"`{name}` is in `{STD}.{std}`: write `use {STD}.{std}`, and `{std}.{name}`"
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


def use_first(name: str) -> str:
    """The hint for a module that is not used."""
    file = f'`use "./{name}.skill" as {name}`'
    return f"write `use {STD}.{name}`, or {file}, first" if name in standard_names() else f"write {file} first"
