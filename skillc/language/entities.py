"""Evaluate declarations: task, skill, models, data, rubrics, optimize, budget, and the types of fields."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Literal, cast

from skillc.diagnostics.diagnostic import Reporter
from skillc.diagnostics.suggest import spelling_hint
from skillc.language.checked import Entity, FieldType, Value
from skillc.language.forms import ENV
from skillc.language.kinds import TYPES, Kind
from skillc.language.modules import Module, alias_hint, hint_elsewhere, use_hint
from skillc.language.settings import SettingReader
from skillc.language.statements import ClassifiedBlock, Classifier, KindDeclaration
from skillc.language.types import Broken, FileErrors
from skillc.syntax import nodes
from skillc.text import listed

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


def field_type(errors: FileErrors, node: nodes.TypeExpression) -> FieldType:
    """The type of a field, from its syntax."""
    if isinstance(node, nodes.LabelType):
        return FieldType("labels", (node.value,))
    return _named_type(errors, node) if isinstance(node, nodes.NamedType) else _union_type(errors, node)


def _named_type(errors: FileErrors, node: nodes.NamedType) -> FieldType:
    if node.name == "none":
        raise errors.add("SK216", node.span, "`none` alone is not a type", "write `text | none`")
    if node.name not in TYPES:
        right = _SYNONYMS.get(node.name)
        hint = f"write `{right}`" if right else spelling_hint(node.name, TYPES)
        options = f"valid options: {listed(TYPES)}, and labels in quotes"
        raise errors.add("SK216", node.span, f"unknown type `{node.name}`", hint or options)
    if node.name == "list":
        return FieldType("list", item=field_type(errors, node.item) if node.item else FieldType("text"))
    if node.item is not None:
        raise errors.add("SK216", node.span, f"`{node.name}` has no items", "only a `list` has: `list[text]`")
    return FieldType(cast('Literal["text"]', node.name))


def _union_type(errors: FileErrors, node: nodes.UnionType) -> FieldType:
    labels: dict[str, None] = {}
    others: list[nodes.NamedType] = []
    optional = False
    for option in node.options:
        if isinstance(option, nodes.LabelType):
            if option.value in labels:
                errors.add("SK203", option.span, f'the label "{option.value}" is declared twice', "remove one")
            labels[option.value] = None
        elif option.name == "none" and option.item is None:
            optional = True
        else:
            others.append(option)
    if others and (labels or len(others) > 1):
        hint = "a type is labels or one type, each with an optional `| none`"
        raise errors.add("SK216", node.span, "these types can't be combined", hint)
    if not others and not labels:
        raise errors.add("SK216", node.span, "`none` alone is not a type", "write `text | none`")
    base = FieldType("labels", tuple(labels)) if labels else _named_type(errors, others[0])
    return FieldType(base.kind, base.labels, base.item, optional)


_CHAIN = 40


class Entities:
    """Evaluate the declarations of a file.

    Attributes:
        broken: names of fields whose declaration has an error.
    """

    def __init__(self, report: Reporter, module: Module) -> None:
        self._report = report
        self._module = module
        self._open: list[KindDeclaration] = []
        self._endless: set[int] = set()
        self.broken: set[str] = set()

    def all(self) -> tuple[Entity, ...]:
        """Every entity without errors, in the order of the file."""
        found: list[Entity] = []
        for decl in self._module.declarations:
            if decl.kind.expression:
                continue
            with suppress(Broken):
                found.append(self._entity(self._module, decl))
        return tuple(found)

    def one(self, decl: KindDeclaration) -> Entity:
        """Evaluate one declaration of the file."""
        return self._entity(self._module, decl)

    # ---- one declaration ----

    def _entity(self, module: Module, decl: KindDeclaration) -> Entity:
        if decl in self._open:
            self._endless |= {id(s.node) for s in self._open}
            names = " → ".join(f"`{s.name.text}`" for s in [*self._open, decl] if s.name)
            message = f"circular reference: {names}"
            raise self._errors(module).add("SK603", decl.span, message, "give one of them a value")
        with self._opened(module, decl):
            return self._meaning(module, decl)

    @contextmanager
    def _opened(self, module: Module, decl: KindDeclaration) -> Iterator[None]:
        """Follow a reference, unless the chain of references is too long."""
        if id(decl.node) in self._endless:
            raise Broken
        if len(self._open) >= _CHAIN:
            self._endless |= {id(s.node) for s in self._open}
            message = f"a chain of more than {_CHAIN} references"
            raise self._errors(module).add("SK603", decl.span, message, "refer to the declaration that has the value")
        self._open.append(decl)
        try:
            yield
        finally:
            self._open.pop()

    def _meaning(self, module: Module, decl: KindDeclaration) -> Entity:
        kind, node = decl.kind, decl.node
        type_ = field_type(self._errors(module), node.type) if kind.type and node.type is not None else None
        value: Value | None = None
        base: Entity | None = None
        right = True
        try:
            value, base = self._value(module, decl)
        except Broken:
            right = False
        classified = self._classified(module, kind, node.block)
        own = SettingReader(self._errors(module)).read_all(classified.settings)
        self.broken |= {each.name.text for each in classified.settings} - own.keys()
        settings = {**(base.settings if base else {}), **own}
        children = [*(base.children if base else ()), *self._children(module, classified)]
        if kind.word == "skill" and (about := own.get("about")) and about.words:
            children.insert(0, Entity("about", None, about.source, about.span, about.words, None, about.value))
        if not right:
            raise Broken
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

    # ---- values and references ----

    def _value(self, module: Module, decl: KindDeclaration) -> tuple[Value | None, Entity | None]:
        """The value after `=`, and the entity that it refers to."""
        kind, node = decl.kind, decl.node.value
        if node is None:
            return None, None
        if isinstance(node, nodes.String | nodes.Text) and kind.value:
            return self._text(module, kind, node), None
        if isinstance(node, nodes.Call) and ENV in kind.value and getattr(node.function, "name", None) == ENV.name:
            return SettingReader(self._errors(module)).read_value(kind.word, (ENV,), node), None
        if not kind.refers or not isinstance(node, nodes.Reference | nodes.Member):
            raise self._wrong_value(module, kind, node)
        home, name = self._home(module, node)
        if kind.word == "section":
            return self._section_text(home, name, module, node), None
        found = self._named(home, kind, name, module, node)
        base = self._entity(home, found)
        return base.value, base

    def _wrong_value(self, module: Module, kind: Kind, node: nodes.Expression) -> Broken:
        shown = " ".join(module.source.slice(node.span).split())
        wanted = {
            "model": 'a model is `"provider/name"`, `env("NAME")`, or another model',
            "section": 'a section is a text, `"""..."""`, or a section of another file',
            "rubric": 'a rubric is a text, `"""..."""`, or a block of criteria',
        }.get(kind.word, f"a {kind.word} is a block, or the name of a {kind.word} in this or another file")
        return self._errors(module).add("SK313", node.span, f"`{shown}` is not a {kind.word}", wanted)

    def _text(self, module: Module, kind: Kind, node: nodes.String | nodes.Text) -> str:
        provider, slash, name = node.value.partition("/")
        if kind.word == "model" and not (slash and provider.strip() and name.strip()):
            value = " ".join(node.value.split())
            hint = f'write `"provider/{value or "name"}"`, such as `"openai/gpt-5.5"`'
            raise self._errors(module).add("SK601", node.span, f'"{value}" has no provider', hint)
        return node.value

    def _home(self, module: Module, node: nodes.Reference | nodes.Member) -> tuple[Module, nodes.Name]:
        """The module that a reference leads to, and the name in it."""
        if isinstance(node, nodes.Reference):
            return module, nodes.Name(node.span, node.name)
        if not isinstance(node.of, nodes.Reference):
            raise self._errors(module).add("SK204", node.span, "a reference must be `name` or `module.name`")
        home = module.alias(node.of.name)
        if home is None:
            name = node.of.name
            hint = alias_hint(name, module) or self._suggest(name, module.uses) or use_hint(name)
            raise self._errors(module).add("SK204", node.of.span, f"unknown module `{node.of.name}`", hint)
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
            raise self._errors(module).add("SK313", node.span, f"`{shown}` is not a {kind.word}")
        code = "SK204" if home is module else "SK105"
        found = hint_elsewhere(name.text, module, home) if home is not module else None
        hint = found or self._suggest(name.text, known) or _options(known)
        raise self._errors(module).add(code, name.span, f"unknown {kind.word} `{name.text}`", hint)

    def _section_text(self, home: Module, name: nodes.Name, module: Module, node: nodes.Expression) -> str | None:
        """The text of a reused section, without its settings."""
        if home.sections is not None:
            if name.text not in home.sections:
                near = self._suggest(name.text, home.sections) or _options(home.sections) or "the skill has no headings"
                raise self._errors(module).add("SK105", name.span, f"the skill has no section `{name.text}`", near)
            return home.sections[name.text]
        known = home.all_sections
        if name.text not in known:
            code = "SK204" if home is module else "SK105"
            hint = self._suggest(name.text, known) or _options(known)
            raise self._errors(module).add(code, name.span, f"unknown section `{name.text}`", hint)
        found = known[name.text]
        home.reached.add(("section", name.text))
        if found in self._open:
            message = f"the section `{name.text}` refers to itself"
            raise self._errors(module).add("SK603", node.span, message, "give it a text")
        with self._opened(module, found):
            value, _ = self._value(home, found)
        return value if isinstance(value, str) else None

    def _suggest(self, word: str, known: Iterable[str]) -> str | None:
        return spelling_hint(word, self._report.spelling_candidates(word, known))

    def _errors(self, module: Module) -> FileErrors:
        return FileErrors(self._report, module.source)


def _options(known: Collection[str]) -> str | None:
    return f"valid options: {listed(islice(known, 8))}" if known else None
