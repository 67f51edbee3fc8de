"""Declarations with their meaning: task, skill, models, data, rubrics, optimize, budget, and the types of fields."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Literal, NoReturn, cast

from skillc.diagnostics.diagnostic import Reporter
from skillc.diagnostics.suggest import spelling_hint
from skillc.language.checked import Entity, FieldType, Setting, Value
from skillc.language.forms import ENV
from skillc.language.kinds import Kind
from skillc.language.modules import Module, use_first
from skillc.language.settings import SettingReader
from skillc.language.statements import ClassifiedBlock, Classifier, KindDeclaration
from skillc.language.types import Broken
from skillc.syntax import nodes
from skillc.syntax.source import Source, Span
from skillc.text import listed

TYPES = ("text", "bool", "number", "integer", "json", "file", "image", "list")

_SYNONYMS = {
    "str": "text",
    "string": "text",
    "float": "number",
    "double": "number",
    "int": "integer",
    "boolean": "bool",
    "array": "list[text]",
    "dict": "json",
    "object": "json",
    "null": "none",
    "None": "none",
}


def field_type(report: Reporter, source: Source, node: nodes.TypeExpression) -> FieldType:
    """The meaning of a written type.

    Raises:
        Broken: it has none; the error has been reported.
    """
    return _Reader(report, source).read(node)


class _Reader:
    def __init__(self, report: Reporter, source: Source) -> None:
        self._report = report
        self._source = source

    def read(self, node: nodes.TypeExpression) -> FieldType:
        if isinstance(node, nodes.LabelType):
            return FieldType("labels", (node.value,))
        if isinstance(node, nodes.NamedType):
            return self._named(node)
        return self._union(node)

    def _named(self, node: nodes.NamedType) -> FieldType:
        if node.name == "none":
            self._fail(node.span, "`none` alone is no type", "write `text | none`")
        if node.name not in TYPES:
            types = listed(TYPES)
            right = _SYNONYMS.get(node.name)
            hint = (
                f"write `{right}`"
                if right
                else spelling_hint(node.name, TYPES) or f"there is {types}, and labels in quotes"
            )
            self._fail(node.span, f"unknown type `{node.name}`", hint)
        if node.name == "list":
            return FieldType("list", item=self.read(node.item) if node.item else FieldType("text"))
        if node.item is not None:
            self._fail(node.span, f"`{node.name}` holds no items", "only a `list` does: `list[text]`")
        return FieldType(cast('Literal["text"]', node.name))

    def _union(self, node: nodes.UnionType) -> FieldType:
        labels: dict[str, None] = {}
        others: list[nodes.NamedType] = []
        optional = False
        for option in node.options:
            if isinstance(option, nodes.LabelType):
                if option.value in labels:
                    self._report.add(
                        "SK203",
                        self._source,
                        option.span,
                        f'the label "{option.value}" is declared twice',
                        hint="remove one",
                    )
                else:
                    labels[option.value] = None
            elif option.name == "none" and option.item is None:
                optional = True
            else:
                others.append(option)
        if others and (labels or len(others) > 1):
            hint = "a type is labels, or one type, either of them with `| none`"
            self._fail(node.span, "these can't be joined into one type", hint)
        if not others and not labels:
            self._fail(node.span, "`none` alone is no type", "write `text | none`")
        base = FieldType("labels", tuple(labels)) if labels else self._named(others[0])
        return FieldType(base.kind, base.labels, base.item, optional)

    def _fail(self, span: Span, message: str, hint: str | None) -> NoReturn:
        self._report.add("SK216", self._source, span, message, hint=hint)
        raise Broken


_CHAIN = 40
_LISTED = 8


class Entities:
    """Makes the entities of a file.

    Attributes:
        broken: names of fields whose declaration has an error.
        flawed: kinds in whose block something could not be read, so that nothing can be said to be missing from it.
    """

    def __init__(self, report: Reporter, module: Module) -> None:
        self._report = report
        self._module = module
        self._open: list[KindDeclaration] = []
        self._endless: set[int] = set()
        self._known_sections: dict[Module, Mapping[str, KindDeclaration]] = {}
        self.broken: set[str] = set()
        self.flawed: set[str] = set()

    def all(self) -> tuple[Entity, ...]:
        """Every entity that is right, in the order of the file."""
        found: list[Entity] = []
        for decl in self._module.declarations:
            if decl.kind.expression:
                continue
            try:
                found.append(self._entity(self._module, decl))
            except Broken:
                self.flawed.add(decl.kind.word)
        return tuple(found)

    # ---- one declaration ----

    def _entity(self, module: Module, decl: KindDeclaration) -> Entity:
        if decl in self._open:
            self._endless |= {id(s.node) for s in self._open}
            names = " → ".join(f"`{s.name.text}`" for s in [*self._open, decl] if s.name)
            message = f"these refer to each other in a circle: {names}"
            self._fail("SK603", module, decl.span, message, "give one of them a value")
        self._ends(module, decl)
        self._open.append(decl)
        try:
            return self._meaning(module, decl)
        finally:
            self._open.pop()

    def _ends(self, module: Module, decl: KindDeclaration) -> None:
        if id(decl.node) in self._endless:
            raise Broken
        if len(self._open) >= _CHAIN:
            self._endless |= {id(s.node) for s in self._open}
            message = f"more than {_CHAIN} declarations refer to each other in a row"
            self._fail("SK603", module, decl.span, message, "refer to the one that has the value")

    def _meaning(self, module: Module, decl: KindDeclaration) -> Entity:
        kind, node = decl.kind, decl.node
        before = self._report.errors
        type_ = self._type(module, decl) if kind.type else None
        value: Value | None = None
        base: Entity | None = None
        right = True
        try:
            value, base = self._value(module, decl)
        except Broken:
            right = False
        classified = self._classified(module, kind, node.block)
        own = SettingReader(self._report, module.source).read_all(classified.settings)
        self.broken |= {each.name.text for each in classified.settings} - own.keys()
        settings = {**(base.settings if base else {}), **own}
        children = [*(base.children if base else ()), *self._children(module, classified)]
        if kind.word == "skill" and (about := own.get("about")) and about.words:
            children.insert(0, _about(about))
        if not right:
            raise Broken
        if self._report.errors > before:
            self.flawed.add(kind.word)
        name = decl.name.text if decl.name else None
        place = decl.name.span if decl.name else decl.span
        return Entity(
            kind.word, name, module.source, place, decl.words, type_, value, settings, tuple(children), node.doc
        )

    def _classified(self, module: Module, kind: Kind, block: nodes.Block | None) -> ClassifiedBlock:
        if block is None:
            return ClassifiedBlock((), ())
        classifier = Classifier(self._report, module.source, kind.word, kind.settings or (), kind.passes)
        found = classifier.classify(block.statements)
        self.broken |= classifier.rejected
        return found

    def _children(self, module: Module, classified: ClassifiedBlock) -> list[Entity]:
        found: list[Entity] = []
        for decl in classified.kinds:
            try:
                found.append(self._entity(module, decl))
            except Broken:
                self.broken.add(decl.kind.word)
                if decl.name is not None:
                    self.broken.add(decl.name.text)
        return found

    def _type(self, module: Module, decl: KindDeclaration) -> FieldType:
        assert decl.node.type is not None
        return field_type(self._report, module.source, decl.node.type)

    # ---- values and references ----

    def _value(self, module: Module, decl: KindDeclaration) -> tuple[Value | None, Entity | None]:
        """The value after `=`, and the entity that it refers to."""
        kind, node = decl.kind, decl.node.value
        if node is None:
            return None, None
        if isinstance(node, nodes.String | nodes.Text) and kind.value:
            return self._text(module, kind, node), None
        if isinstance(node, nodes.Call) and ENV in kind.value and getattr(node.function, "name", None) == ENV.name:
            return SettingReader(self._report, module.source).read_value(kind.word, (ENV,), node), None
        if not kind.refers or not isinstance(node, nodes.Reference | nodes.Member):
            self._wrong_value(module, kind, node)
        home, name = self._home(module, node)
        if kind.word == "section":
            return self._section_text(home, name, module, node), None
        found = self._named(home, kind, name, module, node)
        base = self._entity(home, found)
        return base.value, base

    def _wrong_value(self, module: Module, kind: Kind, node: nodes.Expression) -> NoReturn:
        shown = " ".join(module.source.slice(node.span).split())
        wanted = {
            "model": 'a model is `"provider/name"`, `env("NAME")`, or another model',
            "section": 'a section is a text, `"""..."""`, or a section of another file',
            "rubric": 'a rubric is a text, `"""..."""`',
        }.get(kind.word, f"a {kind.word} is a block, or a {kind.word} with a name, here or in another file")
        self._fail("SK313", module, node.span, f"`{shown}` is no {kind.word}", wanted)

    def _text(self, module: Module, kind: Kind, node: nodes.String | nodes.Text) -> str:
        provider, slash, name = node.value.partition("/")
        if kind.word == "model" and not (slash and provider.strip() and name.strip()):
            hint = (
                f'write `"provider/{node.value}"`, such as `"openai/gpt-5.5"`'
                if node.value.strip()
                else 'write `"provider/name"`'
            )
            self._fail("SK601", module, node.span, f'"{node.value}" does not name a provider', hint)
        return node.value

    def _home(self, module: Module, node: nodes.Reference | nodes.Member) -> tuple[Module, nodes.Name]:
        """The file that a reference leads to, and the name in it."""
        if isinstance(node, nodes.Reference):
            return module, nodes.Name(node.span, node.name)
        if not isinstance(node.of, nodes.Reference):
            self._fail("SK204", module, node.span, "members are written `module.name`", None)
        home = module.alias(node.of.name)
        if home is None:
            from skillc.language.modules import renamed

            name = node.of.name
            hint = renamed(name, module) or self._meant(name, module.uses) or use_first(name)
            self._fail("SK204", module, node.of.span, f"unknown module `{node.of.name}`", hint)
        return home, node.name

    def _named(
        self, home: Module, kind: Kind, name: nodes.Name, module: Module, node: nodes.Expression
    ) -> KindDeclaration:
        known = home.named(kind.word)
        if name.text in known:
            home.reached.add((kind.word, name.text))
            return known[name.text]
        if name.text in home.dropped:
            raise Broken
        if name.text in home.names():
            shown = module.source.slice(node.span)
            self._fail("SK313", module, node.span, f"`{shown}` is no {kind.word}", None)
        from skillc.language.modules import elsewhere

        code = "SK204" if home is module else "SK105"
        found = elsewhere(name.text, module, home) if home is not module else None
        hint = found or self._meant(name.text, known) or _listed("there is", known)
        self._report.add(code, module.source, name.span, f"unknown {kind.word} `{name.text}`", hint=hint)
        raise Broken

    def _section_text(self, home: Module, name: nodes.Name, module: Module, node: nodes.Expression) -> str | None:
        """The text of a section that is reused; its settings stay where they are."""
        if home.sections is not None:
            if name.text not in home.sections:
                self._no_heading(home.sections.keys(), name, module)
            return home.sections[name.text]
        known = self._sections(home)
        if name.text not in known:
            code = "SK204" if home is module else "SK105"
            hint = self._meant(name.text, known) or _listed("there is", known)
            self._fail(code, module, name.span, f"unknown section `{name.text}`", hint)
        found = known[name.text]
        home.reached.add(("section", name.text))
        if found in self._open:
            self._fail("SK603", module, node.span, f"the section `{name.text}` is made of itself", "give it a text")
        self._ends(module, found)
        self._open.append(found)
        try:
            value, _ = self._value(home, found)
        finally:
            self._open.pop()
        return value if isinstance(value, str) else None

    def _sections(self, home: Module) -> Mapping[str, KindDeclaration]:
        """The sections of a file, those of its skills included; every reference asks, so the answer is kept."""
        if home not in self._known_sections:
            inside = {
                s.name.text: s
                for skill in home.declarations
                if skill.kind.word == "skill" and skill.node.block is not None
                for s in self._quietly_classified(home, skill)
                if s.name is not None
            }
            self._known_sections[home] = {**inside, **home.named("section")}
        return self._known_sections[home]

    def _quietly_classified(self, home: Module, skill: KindDeclaration) -> tuple[KindDeclaration, ...]:
        assert skill.node.block is not None
        classifier = Classifier(Reporter(), home.source, skill.kind.word, skill.kind.settings or ())
        return classifier.classify(skill.node.block.statements).kinds

    def _no_heading(self, known: Collection[str], name: nodes.Name, module: Module) -> NoReturn:
        hint = self._meant(name.text, known) or _listed("its headings are", known) or "it has no headings"
        self._fail("SK105", module, name.span, f"the skill has no section `{name.text}`", hint)

    def _meant(self, word: str, known: Iterable[str]) -> str | None:
        return spelling_hint(word, self._report.spelling_candidates(word, known))

    def _fail(self, code: str, module: Module, span: Span, message: str, hint: str | None) -> NoReturn:
        self._report.add(code, module.source, span, message, hint=hint)
        raise Broken


def _listed(begin: str, known: Collection[str]) -> str | None:
    return f"{begin} {listed(islice(known, _LISTED))}" if known else None


def _about(about: Setting) -> Entity:
    return Entity("about", None, about.source, about.span, about.words, None, about.value)
