"""`use`: loads the files that a program draws on, each once, and explains what can't be."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from skillc.diagnostics.diagnostic import Fix, Label, Reporter
from skillc.diagnostics.suggest import spelling_fix, spelling_hint
from skillc.errors import SkillcError
from skillc.language.kinds import STATES
from skillc.language.modules import STD, Loader, Module, shown_in, standard, standard_names
from skillc.language.statements import Classifier
from skillc.language.types import Broken
from skillc.syntax import nodes
from skillc.syntax.files import PathError, resolve_path
from skillc.syntax.parser import parse
from skillc.syntax.source import Source, Span
from skillc.text import listed

if TYPE_CHECKING:
    from skillc.language.skill_packages import Package

_DEEPEST = 50
_THIRD = "move what both need into a third file"


@dataclass(frozen=True, slots=True)
class UseTarget:
    """What a `use` leads to: a file below the program's folder or a package's, or a module of `std`."""

    key: str
    shown: str
    path: str = ""
    package: Package | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A module that is being linked, and the `use` that opened it."""

    module: Module
    opened: Label | None = None


class Linker:
    """Loads modules, each once."""

    def __init__(self, report: Reporter, loader: Loader) -> None:
        self._report = report
        self._loader = loader
        self._loaded: dict[str, Module | None] = {}
        self._open: list[Step] = []
        self._checked: set[str] = set()

    def link(self, module: Module, statements: tuple[nodes.Statement, ...], opened: Label | None = None) -> None:
        """Loads everything that the statements of a module use."""
        self._open.append(Step(module, opened))
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
                # Its right name, by which the rest of the file may well speak of it.
                from skillc.diagnostics.suggest import suggest

                near = suggest(alias.text, standard_names())
                if near is not None:
                    module.uses.setdefault(near, None)

    def _nameless(self, module: Module, use: nodes.Use) -> None:
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

    def _free(self, module: Module, alias: nodes.Name, use: nodes.Use) -> bool:
        """Whether a module may have this name; if not, it says why."""
        name = alias.text
        secondary: tuple[Label, ...] = ()
        hint = "give it another name with `as`"
        if name in module.uses:
            message, hint = f"two modules are called `{name}`", "give one another name with `as`"
            if name in module.places:
                secondary = (Label(module.source, module.places[name], "the first is here"),)
        elif name in STATES:
            message = f"no module can be called `{name}`, which is a skill of every run"
        elif name == STD and use.path != (alias,):
            message = f"no module can be called `{STD}`, which is the standard library"
        else:
            return True
        self._report.add("SK108", module.source, alias.span, message, hint=hint, secondary=secondary)
        return False

    # ---- the file ----

    def _load(self, module: Module, use: nodes.Use) -> Module:
        place = use.file.span if use.file else _path_span(use)
        target = self._target(module, use, place)
        self._must_end(module, use, target, place)
        if target.key not in self._loaded:
            self._loaded[target.key] = None
            self._loaded[target.key] = self._read(module, use, target, place)
        found = self._loaded[target.key]
        if found is None:
            raise Broken
        return found

    def _must_end(self, module: Module, use: nodes.Use, target: UseTarget, place: Span) -> None:
        """No circle, and no chain that is longer than anybody reads."""
        index = next((i for i, step in enumerate(self._open) if step.module.key == target.key), None)
        if index is not None:
            circle = self._open[index:]
            names = " → ".join(f"`{each}`" for each in [*(step.module.shown for step in circle), target.shown])
            # Each step of the circle stands where the next file is opened; the last is the place of the message.
            steps = tuple(
                Label(step.opened.source, step.opened.span, f"`{before.module.shown}` uses `{step.module.shown}`")
                for before, step in pairwise(circle)
                if step.opened is not None
            )
            message = f"these files use each other in a circle: {names}"
            self._fail("SK103", module, place, message, _THIRD, secondary=steps)
        if len(self._open) > _DEEPEST:
            message = f"`{target.shown}` is used by a chain of {len(self._open)} files"
            self._fail("SK121", module, place, message, "let the program use the file itself")

    def _target(self, module: Module, use: nodes.Use, place: Span) -> UseTarget:
        if use.path is not None:
            return self._named(module, use.path, place)
        assert use.file is not None
        if module.key.startswith(f"{STD}.") and module.package is None and not module.path:
            self._fail("SK102", module, place, "the standard library uses no files", None)
        package = module.package
        what = "the program's folder" if package is None else f"the folder of the package `{package.name}`"
        try:
            path = resolve_path(use.file.value, posixpath.dirname(module.path), what)
        except PathError as error:
            instead = error.instead
            fix = Fix(place, f'"{instead}"') if instead is not None and '"' not in instead else None
            self._fail(error.code, module, place, error.message, error.hint, fix=fix)
        return _in_package(package, path) if package is not None else UseTarget(path, path, path)

    def _named(self, module: Module, path: tuple[nodes.Name, ...], place: Span) -> UseTarget:
        words = [word.text for word in path]
        shown = ".".join(words)
        if words[0] == STD:
            if len(words) != 2 or words[1] not in standard_names():
                self._no_standard(module, path, shown, place)
            return UseTarget(shown, shown)
        # Looking for packages takes longer than checking a program that uses none.
        from skillc.language.skill_packages import PackageError, importable_names

        try:
            package = self._loader.package(words[0])
        except PackageError as error:
            hint, fix = error.hint, None
            if error.code == "SK111":
                known = [STD, *importable_names(self._loader.claims)]
                fix = spelling_fix(words[0], path[0].span, known)
                hint = self._beside(words[0], module) or spelling_hint(words[0], known) or hint
            self._fail(error.code, module, place, error.message, hint, fix=fix)
        self._must_be_seen(module, package, place)
        if not words[1:]:
            self._whole(module, package, place)
        return _in_package(package, f"{'/'.join(words[1:])}.skill")

    def _no_standard(self, module: Module, path: tuple[nodes.Name, ...], shown: str, place: Span) -> NoReturn:
        known = [f"{STD}.{each}" for each in standard_names()]
        if claimed := self._loader.claims.get(STD):
            message = f"`{STD}` is the standard library, so nothing can be used of the package of {claimed[0].label}"
            hint = "its maintainer gives the package another name"
            self._fail("SK115", module, place, message, hint)
        hint = spelling_hint(shown, known) or f"there is {listed(known)}"
        fix = spelling_fix(shown, place, known) if len(path) == 2 else None
        self._fail("SK104", module, place, f"there is no module `{shown}`", hint, fix=fix)

    def _beside(self, word: str, module: Module) -> str | None:
        """The hint for the name of a file without its quotes."""
        try:
            self._loader.source(posixpath.join(posixpath.dirname(module.path), f"{word}.skill"))
        except SkillcError:
            return None
        return f'a file is named by its path: `use "./{word}.skill" as {word}`'

    def _whole(self, module: Module, package: Package, place: Span) -> NoReturn:
        known = [f"`{package.name}.{each}`" for each in package.modules()][:8]
        hint = f"there is {', '.join(known)}" if known else None
        self._fail("SK113", module, place, f"`{package.name}` is a package, and one of its modules is used", hint)

    def _must_be_seen(self, module: Module, package: Package, place: Span) -> None:
        """Python code of the package is imported by its name, which a file beside the program would take."""
        if package.name in self._checked:
            return
        self._checked.add(package.name)
        hiding = self._loader.hidden_by(package)
        if hiding is not None:
            message = f"`{hiding}` beside the program hides the code of the package `{package.name}`"
            self._fail("SK119", module, place, message, "rename the file")

    # ---- its text ----

    def _read(self, module: Module, use: nodes.Use, target: UseTarget, place: Span) -> Module:
        if not target.path:
            return self._parsed(module, target, standard(target.key.partition(".")[2]), place)
        suffix = posixpath.splitext(target.path)[1].lower()
        if suffix not in (".skill", ".md"):
            hint = "a program ends in `.skill`, a skill in `.md`"
            self._fail("SK107", module, place, f"`{target.path}` is neither a program nor a skill", hint)
        try:
            if suffix == ".md":
                sections = dict(self._loader.sections(target.path, target.package))
                return Module(target.key, module.source, sections=sections, path=target.path, package=target.package)
            source = self._loader.source(target.path, target.package)
        except SkillcError as error:
            if use.path is not None and target.package is not None:
                self._no_module(module, target, target.package, place, error)
            self._fail("SK101", module, place, error.message, error.hint)
        return self._parsed(module, target, source, place)

    def _no_module(
        self, module: Module, target: UseTarget, package: Package, place: Span, error: SkillcError
    ) -> NoReturn:
        known = [f"{package.name}.{each}" for each in package.modules()]
        if target.shown in known:
            self._fail("SK113", module, place, error.message, error.hint)
        there = f"there is {listed(known[:8])}" if known else "it carries no `.skill` files"
        hint, fix = spelling_hint(target.shown, known) or there, spelling_fix(target.shown, place, known)
        message = f"`{package.distribution}` has no module `{target.shown}`"
        self._fail("SK113", module, place, message, hint, fix=fix)

    def _parsed(self, module: Module, target: UseTarget, source: Source, place: Span) -> Module:
        parsed = parse(source)
        if parsed.diagnostics:
            first = parsed.diagnostics[0]
            label = Label(source, first.primary.span, first.message)
            message = f"`{target.shown}` has errors, so that nothing of it can be used"
            hint = f"see `skillc check {source.name}`"
            self._report.add("SK106", module.source, place, message, secondary=(label,), hint=hint)
            raise Broken
        classifier = Classifier(self._report, source, "", ())
        classified = classifier.classify(parsed.program.statements)
        dropped = parsed.dropped | classifier.rejected
        found = Module(target.key, source, classified.kinds, dropped, path=target.path, package=target.package)
        self.link(found, parsed.program.statements, Label(module.source, place))
        return found

    def _fail(
        self,
        code: str,
        module: Module,
        span: Span,
        message: str,
        hint: str | None,
        *,
        secondary: tuple[Label, ...] = (),
        fix: Fix | None = None,
    ) -> NoReturn:
        self._report.add(code, module.source, span, message, hint=hint, secondary=secondary, fix=fix)
        raise Broken


def main_module(source: Source, dropped: frozenset[str]) -> Module:
    """The module of the main program, which a file that it uses can't use in turn."""
    path = Path(source.name).name
    return Module(path, source, dropped=dropped, path=path)


def _in_package(package: Package, path: str) -> UseTarget:
    return UseTarget(f"{package.name}:{path}", shown_in(package.name, path), path, package)


def _path_span(use: nodes.Use) -> Span:
    assert use.path is not None
    return use.path[0].span.to(use.path[-1].span)


def _stem(path: str) -> str:
    """A name for a file, made of its path."""
    stem = posixpath.splitext(posixpath.basename(path.replace("\\", "/")))[0]
    word = "".join(c if c.isalnum() or c == "_" else "_" for c in stem).lower()
    return word if word and not word[0].isdigit() else f"file_{word}"
