"""Modules: how their files are read, and the declarations of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from skillc.dataclass import dataclass
from skillc.diagnostics.diagnostic import Reporter
from skillc.errors import SkillcError
from skillc.files import shipped_folder
from skillc.language.statements import Classifier, KindDeclaration
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
    """Read files of the program's folder, the standard library, and installed packages.

    Args:
        root: the folder of the main program; files outside it can't be read.
        skill_sections: reads the sections of a markdown skill by heading; None if markdown skills can't be used.
        complete: whether the folder has the files that only a run needs; a copy of an earlier version lacks them.
    """

    def __init__(
        self, root: Path, skill_sections: Callable[[Path], Mapping[str, str]] | None = None, *, complete: bool = True
    ) -> None:
        self.root = root
        self.complete = complete
        self.skill_sections = skill_sections
        self._packages: dict[str, Package] = {}

    def folder(self, package: Package | None = None) -> Folder:
        """The folder of the program, or of a package."""
        return Folder(self.root) if package is None else Folder(package.folder, "the package's folder")

    def source(self, path: str, package: Package | None = None) -> Source:
        """Read a file, its path relative to the folder.

        Raises:
            SkillcError: it can't be read, or is a link to a file outside the folder.
        """
        return self.folder(package).source(path)

    def sections(self, path: str, package: Package | None = None) -> Mapping[str, str]:
        """Read the sections of a markdown skill.

        Raises:
            SkillcError: it can't be read.
        """
        if self.skill_sections is None:
            raise SkillcError(f"`{path}` can't be read: markdown skills are not supported here")
        place = self.folder(package).file(path)
        read_source(place)  # refuses pipes, which block, and devices, which never end
        try:
            return self.skill_sections(place)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else "not UTF-8 text"
            raise SkillcError(f"`{path}` can't be read: {reason.lower()}") from None

    def package(self, name: str) -> Package:
        """Find an installed package that contains `.skill` files.

        Raises:
            PackageError: it can't be used.
        """
        from skillc.language.skill_packages import locate

        if name not in self._packages:
            self._packages[name] = locate(name, self.claims)
        return self._packages[name]

    @cached_property
    def claims(self) -> Mapping[str, tuple[PackageClaim, ...]]:
        """The packages that installed distributions declare, looked up when a program first names one."""
        from skillc.language.skill_packages import claims

        return claims()

    def hidden_by(self, package: Package) -> str | None:
        """The path beside the program that Python would import in place of a package, if any."""
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
    """One file of a program: its declarations, and the modules that it uses.

    Attributes:
        key: its path below the root, `std.gates`, or `acme:gates.skill` in a package; unique.
        declarations: in order; set before anything looks one up.
        dropped: words of statements that could not be read.
        uses: modules by alias; None for one that could not be loaded, which is reported already.
        places: the place of each alias.
        used: the aliases that something refers to.
        reached: the declarations that a program uses, by kind and name; metrics and gates with parameters are of kind
            `function`.
        sections: of a markdown skill, which has no declarations.
        verified: whether the body of a function is correct for any argument; None during the check.
        path: its path in the program's or the package's folder; empty in the standard library.
        package: its installed package.
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

    @property
    def label(self) -> str:
        """Its name in messages, as written after `use`."""
        if self.package is None:
            return self.key
        return module_name(self.package.name, self.path)

    def named(self, kind: str) -> Mapping[str, KindDeclaration]:
        """The declarations of a kind by name; the first of two with one name."""
        return self._by_kind.get(kind, {})

    def functions(self) -> Mapping[str, KindDeclaration]:
        """Metrics and gates with parameters."""
        return self._by_kind.get(_FUNCTIONS, {})

    @cached_property
    def _by_kind(self) -> dict[str, dict[str, KindDeclaration]]:
        found: dict[str, dict[str, KindDeclaration]] = {}
        for decl in self.declarations:
            if decl.name is not None:
                found.setdefault(decl.kind.word, {}).setdefault(decl.name.text, decl)
        both = {**found.get("gate", {}), **found.get("metric", {})}
        found[_FUNCTIONS] = {name: each for name, each in both.items() if each.node.parameters is not None}
        return found

    def children(self, parent: str) -> list[KindDeclaration]:
        """The declarations in all blocks of a kind."""
        found: list[KindDeclaration] = []
        for decl in self.declarations:
            if decl.kind.word == parent and decl.node.block is not None:
                classifier = Classifier(Reporter(), self.source, parent, decl.kind.settings or (), decl.kind.passes)
                found += classifier.classify(decl.node.block.statements).kinds
        return found

    @cached_property
    def all_sections(self) -> Mapping[str, KindDeclaration]:
        """Sections that another may reuse: of the file and of its skills."""
        inside = {s.name.text: s for s in self.children("skill") if s.name is not None and s.kind.word == "section"}
        return {**inside, **self.named("section")}

    def alias(self, name: str) -> Module | None:
        """The module that this one uses under a name; None if there is none."""
        if name not in self.uses:
            return None
        self.used.add(name)
        module = self.uses[name]
        if module is None:
            raise Broken
        return module

    def names(self) -> list[str]:
        """All names that other files can refer to."""
        if self.sections is not None:
            return list(self.sections)
        return [decl.name.text for decl in self.declarations if decl.name is not None]


def module_name(package: str, path: str) -> str:
    """The name of a package's file after `use`: `acme.judging.strict`."""
    stem, dot, suffix = path.rpartition(".")
    return f"{package}.{stem.replace('/', '.')}" if dot and suffix == "skill" else f"{package}:{path}"


# ---- the standard library ----------------------------------------------------------------------------


def standard_names() -> list[str]:
    """The names of the modules of `std`."""
    return sorted(path.stem for path in shipped_folder("stdlib").glob("*.skill"))


def standard(name: str) -> Source:
    """Read a module of the standard library."""
    return read_source(shipped_folder("stdlib") / f"{name}.skill")


@cache
def _declared_in_std() -> Mapping[str, frozenset[str]]:
    """The names that each module of the standard library declares."""
    found = {}
    for name in standard_names():
        statements = parse(standard(name)).program.statements
        declared = (each for each in statements if isinstance(each, nodes.Declaration))
        found[name] = frozenset(each.words[-1].text for each in declared)
    return found


# ---- hints ------------------------------------------------------------------------------------------


def hint_elsewhere(name: str, module: Module, home: Module | None = None) -> str | None:
    """Hint with the place of a name that `home` does not declare, if another module does."""
    for alias, used in module.uses.items():
        if used is not None and used is not home and name in used.names():
            return f"`{name}` is in `{used.label}`: write `{alias}.{name}`"
    for std, names in _declared_in_std().items():
        if name in names and (home is None or home.key != f"{STD}.{std}"):
            return f"`{name}` is in `{STD}.{std}`: write `use {STD}.{std}`, and `{std}.{name}`"
    return None


def alias_hint(name: str, module: Module) -> str | None:
    """Hint for a module that is referred to by its own name, but used under an alias."""
    for alias, used in module.uses.items():
        if used is None:
            continue
        own = used.key.partition(".")[2] if not used.path else used.path.rpartition("/")[2].rpartition(".")[0]
        if own == name or used.label == name:
            return f"`{used.label}` is used as `{alias}` in this file"
    return None


def use_hint(name: str) -> str:
    """Hint for a module that the file does not use."""
    file = f'`use "./{name}.skill" as {name}`'
    return f"write `use {STD}.{name}`, or {file}, first" if name in standard_names() else f"write {file} first"
