"""Resolve every name of a file to its declaration, for editors.

The position of a name decides its namespace, as in the checker and by the same tables. Unlike the checker, this module
continues after an error and reports nothing, so it also serves programs that are being typed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from skillc.dataclass import dataclass
from skillc.diagnostics.diagnostic import Reporter
from skillc.gates.functions import EXAMPLE_FUNCTIONS, RUN_FUNCTIONS, Level, lookup
from skillc.language.arguments import REFERENCES
from skillc.language.forms import Form, SettingKind
from skillc.language.functions import PARAMETER_TYPES
from skillc.language.kinds import KINDS, STATES, TYPES, Kind
from skillc.language.modules import Module
from skillc.language.settings import fits
from skillc.language.statements import Classifier, KindDeclaration, SettingDeclaration, is_language
from skillc.syntax import nodes
from skillc.syntax.source import Source, Span

_EXAMPLE_TYPES = ("metric", "condition", "text", "output", "readable")
_NAMED = {"field": "field", "model": "model", "rubric": "rubric", "judged": "rubric", "skill": "skill"}


@dataclass(frozen=True, slots=True)
class Symbol:
    """The meaning of a name; `origin` and `source` don't count for equality.

    Attributes:
        kind: the word of the kinds table, or `module`, `file`, `heading`, `parameter`, `label`; for words of the
            language `statement`, `setting`, `word`, `type`, `state`, `function`, `option`.
        file: the name of the source that declares it; None for a word of the language, and for a file.
        span: the place of its name in that file.
        owner: the function of a parameter or option, the kind of a setting.
        origin: its declaration, module, or entry in a table of the language.
    """

    kind: str
    name: str
    file: str | None = None
    span: Span | None = None
    owner: str = ""
    source: Source | None = field(default=None, compare=False, repr=False)
    origin: object = field(default=None, compare=False, repr=False)


def symbol_of(decl: KindDeclaration) -> Symbol | None:
    """The symbol of a declaration; None if it has no name."""
    return symbol_at(decl.kind.word, decl.name, decl.source, decl) if decl.name is not None else None


def fields_in(module: Module) -> dict[str, KindDeclaration]:
    """Fields of task and data by name; the first of two with one name."""
    found: dict[str, KindDeclaration] = {}
    for parent in ("task", "data"):
        for decl in module.children(parent):
            if decl.name is not None:
                found.setdefault(decl.name.text, decl)
    return found


def metrics_in(module: Module) -> dict[str, KindDeclaration]:
    """Metrics without parameters, the goal included."""
    found = {**module.named("goal"), **module.named("metric")}
    return {name: decl for name, decl in found.items() if decl.node.parameters is None}


def symbol_at(kind: str, name: nodes.Name, source: Source, origin: object, owner: str = "") -> Symbol:
    """The symbol that a name declares at its context."""
    return Symbol(kind, name.text, source.name, name.span, owner, source, origin)


def parameter_of(module: Module, decl: KindDeclaration, parameter: nodes.Parameter) -> Symbol:
    """The symbol of a parameter of a function."""
    owner = decl.name.text if decl.name is not None else ""
    return symbol_at("parameter", parameter.name, module.source, parameter, owner)


@dataclass(frozen=True, slots=True)
class Link:
    """A name in a file with its symbol; `declares` if this is the declaration."""

    span: Span
    symbol: Symbol
    declares: bool = False


def links(module: Module, program: nodes.Program) -> tuple[Link, ...]:
    """Resolve every name of the main file of a program, in order."""
    walker = _Walker(module)
    walker.statements(program.statements, "", ())
    unique = {(link.span, link.symbol.kind, link.symbol.name): link for link in walker.found}
    return tuple(sorted(unique.values(), key=lambda link: (link.span, not link.declares)))


@dataclass(frozen=True, slots=True)
class _Context:
    """The level of an expression, and the parameters of the parametric body around it."""

    level: Level
    parameters: Mapping[str, Symbol] | None = None


class _Walker:
    def __init__(self, module: Module) -> None:
        self.module = module
        self.source = module.source
        self.found: list[Link] = []
        self._fields = fields_in(module)
        self._metrics = metrics_in(module)

    def _add(self, span: Span, symbol: Symbol | None, *, declares: bool = False) -> None:
        if symbol is not None:
            self.found.append(Link(span, symbol, declares))

    # ---- statements ----

    def statements(
        self,
        statements: Iterable[nodes.Statement],
        parent: str | None,
        settings: Iterable[SettingKind],
        passes: bool = False,
        owner: str = "",
    ) -> None:
        classifier = Classifier(Reporter(), self.source, parent, settings, passes)
        for statement in statements:
            if isinstance(statement, nodes.Use):
                self._use(statement)
            elif isinstance(statement, nodes.Header):
                if is_language(statement):
                    self._add(statement.words[0].span, Symbol("statement", "language"))
            else:
                # One at a time, so that a second setting of one name is resolved too.
                classified = classifier.classify([statement])
                for decl in classified.kinds:
                    self._declaration(decl)
                for setting in classified.settings:
                    self._setting(setting, parent or owner)

    def _use(self, use: nodes.Use) -> None:
        name = use.alias or (use.path[-1] if use.path else None)
        module = self.module.uses.get(name.text) if name is not None else None
        target = None
        if module is not None:
            source = None if module.sections is not None else module.source
            target = Symbol("file", module.key, None if source is None else source.name, Span(0, 0), "", source, module)
        words = (use.file,) if use.file is not None else use.path or ()
        if words:
            self._add(words[0].span.to(words[-1].span), target)
        if name is not None:
            self._add(name.span, symbol_at("module", name, self.source, module), declares=True)

    def _declaration(self, decl: KindDeclaration) -> None:
        kind, node = decl.kind, decl.node
        for word in node.words:
            if word is not decl.name:
                self._add(word.span, Symbol("statement", word.text, origin=KINDS.get(word.text, kind)))
        if decl.name is not None and decl.bare is not None:
            self._add(decl.name.span, Symbol("word", decl.name.text, owner=kind.word, origin=decl))
        elif decl.name is not None:
            self._add(decl.name.span, symbol_of(decl), declares=True)
        if node.type is not None:
            self._type(node.type)
        parameters = self._parameters(decl)
        if node.value is not None:
            if kind.expression:
                level = Level.RUN if kind.word in ("gate", "require") else Level.EXAMPLE
                self._expression(node.value, _Context(level, parameters))
            elif kind.refers and isinstance(node.value, nodes.Reference | nodes.Member):
                self._reference(kind, node.value)
            elif isinstance(node.value, nodes.Call):
                self._setting_value(node.value, kind.value)
        if node.block is not None:
            self.statements(node.block.statements, kind.word, kind.settings or (), kind.passes)

    def _parameters(self, decl: KindDeclaration) -> dict[str, Symbol] | None:
        if decl.node.parameters is None:
            return None
        found: dict[str, Symbol] = {}
        for parameter in decl.node.parameters:
            symbol = parameter_of(self.module, decl, parameter)
            self._add(parameter.name.span, symbol, declares=True)
            found.setdefault(parameter.name.text, symbol)
            if isinstance(parameter.type, nodes.NamedType) and parameter.type.name in PARAMETER_TYPES:
                self._add(parameter.type.span, Symbol("type", parameter.type.name, owner="parameter"))
            if isinstance(parameter.default, nodes.Reference):
                self._word(parameter.default, ("none",))
        return found

    def _type(self, node: nodes.TypeExpression) -> None:
        if isinstance(node, nodes.UnionType):
            for option in node.options:
                self._type(option)
        elif isinstance(node, nodes.LabelType):
            self._add(node.span, self._label(node), declares=True)
        elif node.name in (*TYPES, "none"):
            self._add(Span(node.span.start, node.span.start + len(node.name)), Symbol("type", node.name))
            if node.item is not None:
                self._type(node.item)

    def _label(self, node: nodes.LabelType) -> Symbol:
        return Symbol("label", node.value, self.source.name, node.span, "", self.source, node)

    def _reference(self, kind: Kind, node: nodes.Reference | nodes.Member) -> None:
        """`model optimizer = target`, `section style = lab.style`."""
        name = nodes.Name(node.span, node.name) if isinstance(node, nodes.Reference) else node.name
        module = self._module_of(node) if isinstance(node, nodes.Member) else self.module
        if module is None:
            return
        known = module.all_sections if kind.word == "section" else module.named(kind.word)
        if module.sections is not None and name.text in module.sections:
            self._add(name.span, Symbol("heading", name.text, owner=module.key, origin=module))
        elif name.text in known:
            self._add(name.span, symbol_of(known[name.text]))

    def _module_of(self, node: nodes.Member) -> Module | None:
        """Resolve the module before the dot."""
        if not isinstance(node.of, nodes.Reference) or node.of.name not in self.module.uses:
            return None
        module = self.module.uses[node.of.name]
        self._add(node.of.span, self.alias(node.of.name))
        return module

    def alias(self, name: str) -> Symbol | None:
        """The symbol of an alias."""
        place = self.module.places.get(name)
        if place is None:
            return None
        # The alias is the last word of the `use`.
        start = self.source.text.rfind(name, place.start, place.end)
        return symbol_at(
            "module", nodes.Name(Span(start, start + len(name)), name), self.source, self.module.uses[name]
        )

    # ---- settings ----

    def _setting(self, decl: SettingDeclaration, owner: str) -> None:
        node = decl.node
        for word in node.words[:-1]:
            self._add(word.span, Symbol("statement", word.text))
        if decl.setting is None:
            return
        self._add(decl.name.span, Symbol("setting", decl.name.text, owner=owner, origin=decl.setting))
        if node.value is not None:
            form = self._setting_value(node.value, decl.setting.forms)
        else:
            form = next((each for each in decl.setting.forms if each.kind == "block"), None)
        if node.block is not None:
            block = form.block if form is not None and form.block is not None else ()
            self.statements(node.block.statements, None, block, passes=True, owner=decl.name.text)

    def _setting_value(self, node: nodes.Expression, forms: Iterable[Form]) -> Form | None:
        form = next((each for each in forms if fits(each, node)), None)
        if form is not None and isinstance(node, nodes.Reference):
            if form.kind == "field":
                self._field(node)
            elif form.kind == "role" and node.name in self.module.named("model"):
                self._add(node.span, symbol_of(self.module.named("model")[node.name]))
            else:
                self._add(node.span, Symbol("word", node.name))
        elif form is not None and isinstance(node, nodes.Call):
            self._add(node.function.span, Symbol("word", form.name))
        elif form is not None and isinstance(node, nodes.List):
            for item in node.items:
                self._setting_value(item, form.items)
        return form

    # ---- expressions ----

    def _expression(self, node: nodes.Expression, context: _Context) -> None:
        if isinstance(node, nodes.Reference):
            self._value(node, context)
        elif isinstance(node, nodes.Member):
            self._member(node, context)
        elif isinstance(node, nodes.Call):
            self._call(node, context)
        elif isinstance(node, nodes.Unary):
            self._expression(node.operand, context)
        elif isinstance(node, nodes.Binary):
            for operand in nodes.operands(node):
                self._expression(operand, context)
        elif isinstance(node, nodes.Compare | nodes.Logic):
            for operand in node.operands:
                self._expression(operand, context)
            if isinstance(node, nodes.Compare):
                self._compared_label(node)
        elif isinstance(node, nodes.List | nodes.Ratio):
            for each in node.items if isinstance(node, nodes.List) else node.parts:
                self._expression(each, context)

    def _value(self, node: nodes.Reference, context: _Context) -> None:
        name = node.name
        if context.parameters is not None and name in context.parameters:
            self._add(node.span, context.parameters[name])
        elif name in STATES and context.level is Level.RUN:
            self._add(node.span, Symbol("state", name))
        elif context.parameters is None and (decl := self._fields.get(name) or self._metrics.get(name)) is not None:
            self._add(node.span, symbol_of(decl))
        elif name == "none":
            self._add(node.span, Symbol("word", name))

    def _member(self, node: nodes.Member, context: _Context) -> None:
        if isinstance(node.of, nodes.Reference) and node.of.name in STATES:
            self._add(node.of.span, Symbol("state", node.of.name))
            name = node.name.text
            if context.parameters is not None:
                self._add(node.name.span, context.parameters.get(name))
            elif name in self._metrics:
                self._add(node.name.span, symbol_of(self._metrics[name]))
            return
        module = self._module_of(node)
        if module is not None:
            self._of_module(module, node.name)

    def _of_module(self, module: Module, name: nodes.Name) -> KindDeclaration | None:
        """Resolve a name of a module to a function, or by mistake to another declaration."""
        found = module.functions().get(name.text)
        if found is None:
            found = next((s for s in module.declarations if s.name is not None and s.name.text == name.text), None)
        if found is not None:
            self._add(name.span, symbol_of(found))
        return found

    def _compared_label(self, node: nodes.Compare) -> None:
        fields = [o for o in node.operands if isinstance(o, nodes.Reference) and o.name in self._fields]
        if len(fields) != 1:
            return
        type_ = self._fields[fields[0].name].node.type
        options = type_.options if isinstance(type_, nodes.UnionType) else (type_,)
        labels = {option.value: option for option in options if isinstance(option, nodes.LabelType)}
        for operand in node.operands:
            if isinstance(operand, nodes.String) and operand.value in labels:
                self._add(operand.span, self._label(labels[operand.value]))

    def _call(self, node: nodes.Call, context: _Context) -> None:
        called = node.function
        decl, module = None, self.module
        if isinstance(called, nodes.Reference):
            decl = self.module.functions().get(called.name)
            if decl is None:
                self._builtin(node, called, context)
                return
            self._add(called.span, symbol_of(decl))
        elif isinstance(called, nodes.Member):
            of = self._module_of(called)
            if of is not None:
                module, decl = of, self._of_module(of, called.name)
        parameters = decl.node.parameters if decl is not None else None
        for index, argument in enumerate(node.arguments):
            found = None
            if parameters is not None and argument.name is not None:
                found = next((p for p in parameters if p.name.text == argument.name.text), None)
                if found is not None and decl is not None:
                    self._add(argument.name.span, parameter_of(module, decl, found))
            elif parameters is not None and index < len(parameters):
                found = parameters[index]
            type_ = found.type.name if found is not None and isinstance(found.type, nodes.NamedType) else ""
            self._argument(argument.value, type_, context)

    def _builtin(self, node: nodes.Call, called: nodes.Reference, context: _Context) -> None:
        builtin = lookup(called.name, context.level)
        builtin = builtin or EXAMPLE_FUNCTIONS.get(called.name) or RUN_FUNCTIONS.get(called.name)
        if builtin is not None:
            self._add(called.span, Symbol("function", called.name, owner=context.level.name, origin=builtin))
        positional = 0
        for argument in node.arguments:
            found = None
            if builtin is not None and argument.name is not None:
                found = next((p for p in builtin.options if p.name == argument.name.text), None)
                if found is not None:
                    self._add(argument.name.span, Symbol("option", found.name, owner=builtin.name, origin=found))
            elif builtin is not None:
                wanted = builtin.positional
                if positional < len(wanted) or (builtin.many and wanted):
                    found = wanted[min(positional, len(wanted) - 1)]
                positional += 1
            self._argument(argument.value, found.takes if found is not None else "", context)

    def _argument(self, node: nodes.Expression, takes: str, context: _Context) -> None:
        if takes == "models" and isinstance(node, nodes.List):
            for item in node.items:
                self._argument(item, "model", context)
            return
        if takes in _NAMED and isinstance(node, nodes.Reference):
            self._named(node, _NAMED[takes], context)
        elif takes in ("batch", "run") and isinstance(node, nodes.Reference):
            self._word(node, (takes,))
        elif takes == "reference" and isinstance(node, nodes.Reference):
            self._word(node, REFERENCES)
        elif takes in _EXAMPLE_TYPES:
            self._expression(node, replace(context, level=Level.EXAMPLE))
        else:
            self._expression(node, context)

    def _named(self, node: nodes.Reference, kind: str, context: _Context) -> None:
        if context.parameters is not None:
            self._add(node.span, context.parameters.get(node.name))
        elif kind == "field":
            self._field(node)
        elif node.name in self.module.named(kind):
            self._add(node.span, symbol_of(self.module.named(kind)[node.name]))
        self._word(node, ("none",))

    def _field(self, node: nodes.Reference) -> None:
        if node.name in self._fields:
            self._add(node.span, symbol_of(self._fields[node.name]))

    def _word(self, node: nodes.Reference, words: tuple[str, ...]) -> None:
        if node.name in words:
            self._add(node.span, Symbol("word", node.name))
