"""`use`: the files that a program draws on. The one place of the checker that reads any."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from skillc.errors import SkillcError
from skillc.language import nodes
from skillc.language.diagnostics import Fix, Label
from skillc.language.files import read_source
from skillc.language.parser import parse
from skillc.language.report import Report, meant
from skillc.language.source import Source, Span
from skillc.language.statements import Sorter, Stated
from skillc.language.types import Broken
from skillc.resources import folder

STD = "std"
_FUNCTIONS = "functions"
STATES = ("candidate", "incumbent", "best", "initial")


class Loader:
    """Reads files below one folder, and the standard library.

    Args:
        root: the main program's folder; nothing outside it can be read.
        skill_sections: reads the sections of a markdown skill, by heading; without it none can be used.
    """

    def __init__(self, root: Path, skill_sections: Callable[[Path], Mapping[str, str]] | None = None) -> None:
        self.root = root
        self.skill_sections = skill_sections

    def source(self, path: str) -> Source:
        """The text of a file, its path relative to the root.

        Raises:
            SkillcError: it can't be read, or a link leads out of the root.
        """
        place = self._inside(path)
        if not place.exists():
            raise SkillcError(f"there is no file `{path}`", hint=self._near(place))
        return read_source(place)

    def _near(self, place: Path) -> str | None:
        try:
            names = sorted(each.name for each in place.parent.iterdir() if each.suffix in (".skill", ".md"))
        except OSError:
            return None
        return meant(place.name, names)

    def sections(self, path: str) -> Mapping[str, str]:
        """The sections of a markdown skill.

        Raises:
            SkillcError: it can't be read.
        """
        if self.skill_sections is None:
            raise SkillcError(f"`{path}` can't be read here: nothing was given that reads markdown skills")
        place = self._inside(path)
        if not place.exists():
            raise SkillcError(f"there is no file `{path}`", hint=self._near(place))
        try:
            return self.skill_sections(place)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is no text in UTF-8"
            raise SkillcError(f"`{path}` can't be read: {reason.lower()}") from None

    def standard(self, name: str) -> Source | None:
        """The text of a module of the standard library."""
        place = folder("stdlib") / f"{name}.skill"
        return read_source(place) if name in self.standard_names() else None

    def standard_names(self) -> list[str]:
        """What `std` holds."""
        return sorted(path.stem for path in folder("stdlib").glob("*.skill"))

    def _inside(self, path: str) -> Path:
        place = self.root / path
        # A link may lead anywhere, whatever the path says.
        if not place.resolve().is_relative_to(self.root.resolve()):
            raise SkillcError(f"`{path}` is a link that leads out of the program's folder")
        return place


@dataclass(eq=False)
class Module:
    """One file of a program: its declarations, and what it uses.

    Attributes:
        key: its path below the root, or `std.gates`.
        stated: its statements of known kinds, in order.
        dropped: words of statements that could not be read.
        uses: by alias; None where the module could not be loaded, which has been reported.
        places: where each alias is declared.
        used: the aliases that something spoke of.
        sections: of a markdown skill, which has nothing else.
        verified: whether a function's body is right for any argument; None while that is being found out.
    """

    key: str
    source: Source
    stated: tuple[Stated, ...] = ()
    dropped: frozenset[str] = frozenset()
    uses: dict[str, Module | None] = field(default_factory=dict)
    places: dict[str, Span] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    sections: Mapping[str, str] | None = None
    verified: dict[str, bool | None] = field(default_factory=dict)
    _index: dict[str, dict[str, Stated]] = field(default_factory=dict, repr=False)
    _indexed: tuple[Stated, ...] = field(default=(), repr=False)

    def named(self, kind: str) -> Mapping[str, Stated]:
        """The declarations of a kind by name; the first of two that are alike."""
        return self._by_kind().get(kind, {})

    def functions(self) -> Mapping[str, Stated]:
        """Metrics and gates with parameters."""
        return self._by_kind().get(_FUNCTIONS, {})

    def _by_kind(self) -> dict[str, dict[str, Stated]]:
        """Every expression asks, so the answer is kept for as long as the statements are the same."""
        if self._indexed is not self.stated:
            self._index, self._indexed = {}, self.stated
            for stated in self.stated:
                if stated.name is not None:
                    self._index.setdefault(stated.kind.word, {}).setdefault(stated.name.text, stated)
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
        return [stated.name.text for stated in self.stated if stated.name is not None]


class Linker:
    """Loads modules, each once."""

    def __init__(self, report: Report, loader: Loader) -> None:
        self._report = report
        self._loader = loader
        self._loaded: dict[str, Module | None] = {}
        self._open: list[str] = []

    def link(self, module: Module, statements: tuple[nodes.Statement, ...]) -> None:
        """Loads everything that the statements of a module use."""
        self._open.append(module.key)
        for use in statements:
            if isinstance(use, nodes.Use):
                self._use(module, use)
        self._open.pop()

    def _use(self, module: Module, use: nodes.Use) -> None:
        alias = use.alias or (use.path[-1] if use.path else None)
        if alias is None:
            assert use.file is not None
            word = _stem(use.file.value)
            self._report.add(
                "SK110",
                module.source,
                use.span,
                "a file needs a name to be spoken of",
                hint=f"write `use {module.source.slice(use.file.span)} as {word}`",
                fix=Fix(Span(use.span.end, use.span.end), f" as {word}"),
            )
            module.uses.setdefault(word, None)
            return
        if alias.text in module.uses:
            message = f"two modules are called `{alias.text}`"
            self._report.add("SK108", module.source, alias.span, message, hint="give one another name with `as`")
            return
        if alias.text in STATES:
            message = f"no module can be called `{alias.text}`, which is a skill of every run"
            self._report.add("SK108", module.source, alias.span, message, hint="give it another name with `as`")
            return
        module.places[alias.text] = use.span
        try:
            module.uses[alias.text] = self._load(module, use)
        except Broken:
            module.uses[alias.text] = None

    def _load(self, module: Module, use: nodes.Use) -> Module | None:
        place = use.file.span if use.file else use.span
        key = self._key(module, use, place)
        if key in self._open:
            circle = " → ".join(f"`{each}`" for each in [*self._open[self._open.index(key) :], key])
            self._fail(
                "SK103",
                module,
                place,
                f"these files use each other in a circle: {circle}",
                "move what both need into a third file",
            )
        if key not in self._loaded:
            self._loaded[key] = None
            self._loaded[key] = self._read(module, key, place, standard=use.path is not None)
        found = self._loaded[key]
        if found is None:
            raise Broken
        return found

    def _key(self, module: Module, use: nodes.Use, place: Span) -> str:
        if use.path is not None:
            return ".".join(word.text for word in use.path)
        assert use.file is not None
        written = use.file.value
        if module.key.startswith(f"{STD}."):
            self._fail("SK102", module, place, "the standard library uses no files", None)
        path = posixpath.normpath(posixpath.join(posixpath.dirname(module.key), written.replace("\\", "/")))
        if "\0" in written or not written.strip():
            self._fail("SK101", module, place, "this is no path", 'write `use "./lab.skill" as lab`')
        if path.startswith(("/", "..")) or ":" in path.split("/")[0]:
            hint = "copy the file beside the program"
            self._fail("SK102", module, place, f"`{written}` lies outside the program's folder", hint)
        return path

    def _read(self, module: Module, key: str, place: Span, *, standard: bool) -> Module:
        if standard:
            return self._standard(module, key, place)
        suffix = posixpath.splitext(key)[1].lower()
        if suffix not in (".skill", ".md"):
            hint = "a program ends in `.skill`, a skill in `.md`"
            self._fail("SK107", module, place, f"`{key}` is neither a program nor a skill", hint)
        try:
            if suffix == ".md":
                return Module(key, module.source, sections=self._loader.sections(key))
            source = self._loader.source(key)
        except SkillcError as error:
            self._fail("SK101", module, place, error.message, error.hint)
        return self._parsed(module, key, source, place)

    def _standard(self, module: Module, key: str, place: Span) -> Module:
        names = self._loader.standard_names()
        package, _, name = key.partition(".")
        source = self._loader.standard(name) if package == STD else None
        if source is None:
            near = meant(key, [f"{STD}.{each}" for each in names])
            hint = near or f"there is {', '.join(f'`{STD}.{each}`' for each in names)}"
            self._fail("SK104", module, place, f"there is no module `{key}`", hint)
        return self._parsed(module, key, source, place)

    def _parsed(self, module: Module, key: str, source: Source, place: Span) -> Module:
        parsed = parse(source)
        if parsed.diagnostics:
            first = parsed.diagnostics[0]
            label = Label(source, first.primary.span, first.message)
            message = f"`{key}` has errors, so that nothing of it can be used"
            self._report.add(
                "SK106", module.source, place, message, secondary=(label,), hint=f"see `skillc check {source.name}`"
            )
            raise Broken
        sorter = Sorter(self._report, source, "", ())
        sorted_ = sorter.sort(parsed.program.statements)
        found = Module(key, source, sorted_.kinds, parsed.dropped | sorter.rejected)
        self.link(found, parsed.program.statements)
        return found

    def _fail(self, code: str, module: Module, span: Span, message: str, hint: str | None) -> NoReturn:
        self._report.add(code, module.source, span, message, hint=hint)
        raise Broken


def use_first(name: str) -> str:
    """The hint for a module that is not used."""
    return f'write `use std.{name}`, or `use "./{name}.skill" as {name}`, first'


def _stem(path: str) -> str:
    """A name for a file, made of its path."""
    stem = posixpath.splitext(posixpath.basename(path.replace("\\", "/")))[0]
    word = "".join(c if c.isalnum() or c == "_" else "_" for c in stem).lower()
    return word if word and not word[0].isdigit() else f"file_{word}"
