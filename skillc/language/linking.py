"""Load the modules that a program uses, each once."""

from __future__ import annotations

import posixpath
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from skillc.dataclass import dataclass
from skillc.diagnostics.diagnostic import Fix, Label, Reporter
from skillc.diagnostics.suggest import spelling_fix, spelling_hint, suggest
from skillc.errors import SkillcError
from skillc.language.kinds import STATES
from skillc.language.modules import STD, Loader, Module, module_name, standard, standard_names
from skillc.language.statements import Classifier
from skillc.language.types import Broken, FileErrors
from skillc.syntax import nodes
from skillc.syntax.files import PathError, resolve_path
from skillc.syntax.parser import parse
from skillc.syntax.source import Source, Span
from skillc.text import listed

if TYPE_CHECKING:
    from skillc.language.skill_packages import Package

_DEEPEST = 50


@dataclass(frozen=True, slots=True)
class UseTarget:
    """The file of a `use`: in the program's folder, in a package, or of the standard library (no `path`)."""

    key: str
    label: str
    path: str = ""
    package: Package | None = None


class Linker:
    """Load modules, each once."""

    def __init__(self, report: Reporter, loader: Loader) -> None:
        self._report = report
        self._loader = loader
        self._loaded: dict[str, Module | None] = {}
        # The modules that are being linked, each with the `use` that led to it.
        self._open: list[tuple[Module, Label | None]] = []
        self._checked: set[str] = set()

    def link(self, module: Module, statements: tuple[nodes.Statement, ...], opened: Label | None = None) -> None:
        """Load everything that the statements of a module use."""
        self._open.append((module, opened))
        for use in statements:
            if isinstance(use, nodes.Use):
                self._use(module, use)
        self._open.pop()

    # ---- the name ----

    def _use(self, module: Module, use: nodes.Use) -> None:
        alias = use.alias or (use.path[-1] if use.path else None)
        if alias is None:
            self._nameless(module, use)
            return
        if not self._free(module, alias, use):
            return
        module.places[alias.text] = use.span
        try:
            module.uses[alias.text] = self._load(module, use)
        except Broken:
            module.uses[alias.text] = None
            if use.path is not None and use.alias is None and use.path[0].text == STD:
                # The rest of the file may use the correct name.
                near = suggest(alias.text, standard_names())
                if near is not None:
                    module.uses.setdefault(near, None)

    def _nameless(self, module: Module, use: nodes.Use) -> None:
        assert use.file is not None
        word = _alias_for(use.file.value)
        hint = f"write `use {module.source.slice(use.file.span)} as {word}`"
        fix = Fix(Span(use.span.end, use.span.end), f" as {word}")
        self._errors(module).add("SK110", use.span, "a file needs an alias", hint, fix=fix)
        module.uses.setdefault(word, None)

    def _free(self, module: Module, alias: nodes.Name, use: nodes.Use) -> bool:
        """Report an alias that is taken or reserved; return whether it is free."""
        name = alias.text
        secondary: tuple[Label, ...] = ()
        hint = "rename it with `as`"
        if name in module.uses:
            message, hint = f"two modules are named `{name}`", "rename one of them with `as`"
            if name in module.places:
                secondary = (Label(module.source, module.places[name], "first used here"),)
        elif name in STATES:
            message = f"`{name}` is reserved for a skill of every run"
        elif name == STD and use.path != (alias,):
            message = f"`{STD}` is reserved for the standard library"
        else:
            return True
        self._errors(module).add("SK108", alias.span, message, hint, secondary=secondary)
        return False

    # ---- the file ----

    def _load(self, module: Module, use: nodes.Use) -> Module:
        words = (use.file,) if use.file is not None else use.path or ()
        place = words[0].span.to(words[-1].span)
        target = self._target(module, use, place)
        self._check_circle(module, target, place)
        if target.key not in self._loaded:
            self._loaded[target.key] = None
            self._loaded[target.key] = self._read(module, use, target, place)
        found = self._loaded[target.key]
        if found is None:
            raise Broken
        return found

    def _check_circle(self, module: Module, target: UseTarget, place: Span) -> None:
        """Report a circle of files, or a chain that is too long."""
        index = next((i for i, (each, _) in enumerate(self._open) if each.key == target.key), None)
        if index is not None:
            circle = self._open[index:]
            names = " → ".join(f"`{each}`" for each in [*(each.label for each, _ in circle), target.label])
            # Each label is where one file uses the next; the last is the place of the message.
            steps = tuple(
                Label(opened.source, opened.span, f"`{before.label}` uses `{each.label}`")
                for (before, _), (each, opened) in pairwise(circle)
                if opened is not None
            )
            hint = "move the shared declarations into a third file"
            raise self._errors(module).add("SK103", place, f"circular use of files: {names}", hint, secondary=steps)
        if len(self._open) > _DEEPEST:
            message = f"`{target.label}` is at the end of a chain of {len(self._open)} files"
            raise self._errors(module).add("SK121", place, message, "use the file in the program itself")

    def _target(self, module: Module, use: nodes.Use, place: Span) -> UseTarget:
        if use.path is not None:
            return self._named(module, use.path, place)
        assert use.file is not None
        if module.key.startswith(f"{STD}.") and module.package is None and not module.path:
            raise self._errors(module).add("SK102", place, "the standard library can't use files")
        package = module.package
        what = "the program's folder" if package is None else f"the folder of the package `{package.name}`"
        try:
            path = resolve_path(use.file.value, posixpath.dirname(module.path), what)
        except PathError as error:
            instead = error.instead
            fix = Fix(place, f'"{instead}"') if instead is not None and '"' not in instead else None
            raise self._errors(module).add(error.code, place, error.message, error.hint, fix=fix) from None
        return _in_package(package, path) if package is not None else UseTarget(path, path, path)

    def _named(self, module: Module, path: tuple[nodes.Name, ...], place: Span) -> UseTarget:
        words = [word.text for word in path]
        shown = ".".join(words)
        if words[0] == STD:
            if len(words) != 2 or words[1] not in standard_names():
                raise self._no_standard(module, path, shown, place)
            return UseTarget(shown, shown)
        # Imported here: finding packages takes longer than checking a program without any.
        from skillc.language.skill_packages import PackageError, importable_names

        try:
            package = self._loader.package(words[0])
        except PackageError as error:
            hint, fix = error.hint, None
            if error.code == "SK111":
                known = [STD, *importable_names(self._loader.claims)]
                fix = spelling_fix(words[0], path[0].span, known)
                hint = self._beside(words[0], module) or spelling_hint(words[0], known) or hint
            raise self._errors(module).add(error.code, place, error.message, hint, fix=fix) from None
        self._check_hidden(module, package, place)
        if not words[1:]:
            known = [f"{package.name}.{each}" for each in package.modules()][:8]
            hint = f"valid options: {listed(known)}" if known else None
            message = f"`{package.name}` is a package: use one of its modules"
            raise self._errors(module).add("SK113", place, message, hint)
        return _in_package(package, f"{'/'.join(words[1:])}.skill")

    def _no_standard(self, module: Module, path: tuple[nodes.Name, ...], shown: str, place: Span) -> Broken:
        known = [f"{STD}.{each}" for each in standard_names()]
        if claimed := self._loader.claims.get(STD):
            message = f"`{STD}` is the standard library, and hides the package of {claimed[0].label}"
            return self._errors(module).add("SK115", place, message, "ask its maintainer to rename the package")
        hint = spelling_hint(shown, known) or f"valid options: {listed(known)}"
        fix = spelling_fix(shown, place, known) if len(path) == 2 else None
        return self._errors(module).add("SK104", place, f"unknown module `{shown}`", hint, fix=fix)

    def _beside(self, word: str, module: Module) -> str | None:
        """Hint for the name of a file without quotes."""
        try:
            self._loader.source(posixpath.join(posixpath.dirname(module.path), f"{word}.skill"))
        except SkillcError:
            return None
        return f'write the path of the file: `use "./{word}.skill" as {word}`'

    def _check_hidden(self, module: Module, package: Package, place: Span) -> None:
        """Report a file beside the program that would be imported in place of the package's Python code."""
        if package.name in self._checked:
            return
        self._checked.add(package.name)
        hiding = self._loader.hidden_by(package)
        if hiding is not None:
            message = f"`{hiding}` beside the program hides the code of the package `{package.name}`"
            raise self._errors(module).add("SK119", place, message, "rename the file")

    # ---- the text ----

    def _read(self, module: Module, use: nodes.Use, target: UseTarget, place: Span) -> Module:
        if not target.path:
            return self._parsed(module, target, standard(target.key.partition(".")[2]), place)
        suffix = posixpath.splitext(target.path)[1].lower()
        if suffix not in (".skill", ".md"):
            hint = "valid options: `.skill` for a program, `.md` for a skill"
            raise self._errors(module).add("SK107", place, f"`{target.path}` is neither a program nor a skill", hint)
        try:
            if suffix == ".md":
                sections = dict(self._loader.sections(target.path, target.package))
                return Module(target.key, module.source, sections=sections, path=target.path, package=target.package)
            source = self._loader.source(target.path, target.package)
        except SkillcError as error:
            if use.path is not None and target.package is not None:
                raise self._no_module(module, target, target.package, place, error) from None
            raise self._errors(module).add("SK101", place, error.message, error.hint) from None
        return self._parsed(module, target, source, place)

    def _no_module(
        self, module: Module, target: UseTarget, package: Package, place: Span, error: SkillcError
    ) -> Broken:
        known = [f"{package.name}.{each}" for each in package.modules()]
        if target.label in known:
            return self._errors(module).add("SK113", place, error.message, error.hint)
        options = f"valid options: {listed(known[:8])}" if known else "the package contains no `.skill` files"
        hint, fix = spelling_hint(target.label, known) or options, spelling_fix(target.label, place, known)
        message = f"`{package.distribution}` has no module `{target.label}`"
        return self._errors(module).add("SK113", place, message, hint, fix=fix)

    def _parsed(self, module: Module, target: UseTarget, source: Source, place: Span) -> Module:
        parsed = parse(source)
        if parsed.diagnostics:
            first = parsed.diagnostics[0]
            label = Label(source, first.primary.span, first.message)
            message, hint = f"`{target.label}` can't be used: it has errors", f"run `skillc check {source.name}`"
            raise self._errors(module).add("SK106", place, message, hint, secondary=(label,))
        classifier = Classifier(self._report, source, "", ())
        kinds = classifier.classify(parsed.program.statements).kinds
        dropped = parsed.dropped | classifier.rejected
        found = Module(target.key, source, kinds, dropped, path=target.path, package=target.package)
        self.link(found, parsed.program.statements, Label(module.source, place))
        return found

    def _errors(self, module: Module) -> FileErrors:
        return FileErrors(self._report, module.source)


def main_module(source: Source, dropped: frozenset[str]) -> Module:
    """Make the module of the main program; its key lets a circle of files be found."""
    path = Path(source.name).name
    return Module(path, source, dropped=dropped, path=path)


def _in_package(package: Package, path: str) -> UseTarget:
    return UseTarget(f"{package.name}:{path}", module_name(package.name, path), path, package)


def _alias_for(path: str) -> str:
    stem = posixpath.splitext(posixpath.basename(path.replace("\\", "/")))[0]
    word = "".join(c if c.isalnum() or c == "_" else "_" for c in stem).lower()
    return word if word and not word[0].isdigit() else f"file_{word}"
