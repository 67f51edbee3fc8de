"""Classify the statements of a block as declarations of kinds or settings, and check their shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from skillc.dataclass import dataclass
from skillc.diagnostics.diagnostic import Fix, Label, Reporter
from skillc.diagnostics.suggest import spelling_fix, spelling_hint
from skillc.language.forms import SettingKind
from skillc.language.kinds import EXTRA_PARAMETERS, KINDS, REMOVED, Kind, kinds_in
from skillc.language.types import FileErrors
from skillc.syntax import nodes
from skillc.syntax.source import Source, Span
from skillc.text import listed


@dataclass(frozen=True, slots=True)
class KindDeclaration:
    """A declaration of a kind: `words` are the modifiers before it, `suffix` the words after its name."""

    kind: Kind
    name: nodes.Name | None
    words: tuple[str, ...]
    suffix: tuple[str, ...]
    node: nodes.Declaration
    source: Source

    @property
    def span(self) -> Span:
        """The place of messages about it: its words."""
        return self.node.words[0].span.to(self.node.words[-1].span)

    @property
    def bare(self) -> str | None:
        """The meaning of a name that the language defines, as in `require improved`; None for other declarations."""
        if self.node.value is not None or self.name is None:
            return None
        return dict(self.kind.bare).get(self.name.text)


@dataclass(frozen=True, slots=True)
class SettingDeclaration:
    """A setting in a block; `setting` is None for a name that the block passes on."""

    setting: SettingKind | None
    name: nodes.Name
    words: tuple[str, ...]
    node: nodes.Declaration


@dataclass(frozen=True, slots=True)
class ClassifiedBlock:
    """The declarations and settings of a block, in order."""

    kinds: tuple[KindDeclaration, ...]
    settings: tuple[SettingDeclaration, ...]


class Classifier:
    """Classify the statements of one block.

    Args:
        report: collects the errors.
        source: of the block.
        parent: the kind that the block belongs to, "" at the top of a file, None for the block of a setting.
        settings: the settings that it may contain.
        passes: whether it passes on settings of other names.

    Attributes:
        rejected: words of the statements that could not be classified; later passes don't report them as missing.
    """

    def __init__(
        self,
        report: Reporter,
        source: Source,
        parent: str | None,
        settings: Iterable[SettingKind],
        passes: bool = False,
    ) -> None:
        self._error = FileErrors(report, source).add
        self._source = source
        self._parent = parent
        self._kinds: Mapping[str, Kind] = {} if parent is None else kinds_in(parent)
        self._settings = {setting.name: setting for setting in settings}
        self._passes = passes
        self.rejected: set[str] = set()

    def classify(self, statements: Iterable[nodes.Statement]) -> ClassifiedBlock:
        """Classify statements; report and leave out those without a meaning."""
        kinds: list[KindDeclaration] = []
        settings: dict[str, SettingDeclaration] = {}
        for statement in statements:
            if isinstance(statement, nodes.Use):
                if self._parent != "":
                    message, hint = "`use` is only allowed at the top of a file", "move it out of the block"
                    self._error("SK211", statement.span, message, hint)
            elif isinstance(statement, nodes.Header):
                self._header(statement)
            else:
                found = self._declaration(statement)
                if isinstance(found, KindDeclaration):
                    kinds.append(found)
                elif found is not None:
                    self._once(settings, found)
                else:
                    self.rejected |= _words_in(statement)
        return ClassifiedBlock(tuple(kinds), tuple(settings.values()))

    def _once(self, settings: dict[str, SettingDeclaration], found: SettingDeclaration) -> None:
        first = settings.setdefault(found.name.text, found)
        if first is not found:
            label = Label(self._source, first.name.span, "first set here")
            message = f"`{found.name.text}` is set twice"
            self._error("SK203", found.name.span, message, "keep one of them", secondary=(label,))

    # ---- one statement ----

    def _header(self, statement: nodes.Header) -> None:
        if self._parent == "" and is_language(statement):
            if statement.words[0].text != "language":
                shown, span = statement.words[0].text, statement.words[0].span
                hint, fix = "did you mean `language`?", Fix(span, "language")
                self._error("SK201", span, f"unknown statement `{shown}`", hint, fix=fix)
            return
        words = " ".join(word.text for word in statement.words)
        end = statement.words[-1].span.end
        hint = f"write `{words} = {self._source.slice(statement.value.span).splitlines()[0]}`"
        self._error("SK209", statement.span, f"`=` is missing after `{words}`", hint, fix=Fix(Span(end, end), " ="))

    def _declaration(self, node: nodes.Declaration) -> KindDeclaration | SettingDeclaration | None:
        words = [word.text for word in node.words]
        if words[0] in self._kinds and (len(words) > 1 or words[0] not in self._settings):
            return self._kind(self._kinds[words[0]], 0, node)
        if len(words) > 1 and words[1] in self._kinds and words[0] in self._kinds[words[1]].modifiers:
            return self._kind(self._kinds[words[1]], 1, node)
        return self._setting(words, node)

    def _setting(self, words: list[str], node: nodes.Declaration) -> SettingDeclaration | None:
        setting = self._settings.get(words[-1])
        modified = len(words) == 2 and setting is not None and words[0] in setting.modifiers
        if (len(words) > 1 and not modified) or (setting is None and not self._passes):
            self._unknown(words, node)
            return None
        if setting is None and (hint := self._misspelt(words[0])):
            place = node.words[0].span
            fix = spelling_fix(words[0], place, self._settings)
            self._error("SK202", place, f"unknown setting `{words[0]}`", hint, fix=fix)
            return None
        if self._colon_for_equals(node):
            return None
        if node.type is not None or node.parameters is not None:
            extra = "type" if node.type is not None else "parameters"
            self._error("SK219", node.words[-1].span, f"the setting `{words[-1]}` takes no {extra}")
            return None
        return SettingDeclaration(setting, node.words[-1], tuple(words[:-1]), node)

    def _misspelt(self, word: str) -> str | None:
        """Hint for a name that could be passed on, but is close to a known one."""
        if word in EXTRA_PARAMETERS:
            return None
        for setting in self._settings.values():
            if any(each.name == word for form in setting.forms for each in form.block or ()):
                return f"move it into the block of `{setting.name}`"
        return spelling_hint(word, self._settings) if self._settings else None

    def _kind(self, kind: Kind, at: int, node: nodes.Declaration) -> KindDeclaration | None:
        modifiers, rest = node.words[:at], node.words[at + 1 :]
        name, suffix = (None, rest) if kind.name == "forbidden" or not rest else (rest[0], rest[1:])
        if name is None and kind.name == "required":
            self._error("SK210", node.words[at].span, f"`{kind.word}` needs a name", f"write {_shape(kind)}")
            return None
        if suffix and tuple(word.text for word in suffix) not in kind.suffixes:
            self._too_many(kind, name, suffix)
            return None
        if kind.modifiers and not modifiers:
            named = f" `{name.text}`" if name else ""
            hint = f"valid options: {listed(kind.modifiers)}, before `{kind.word}`"
            self._error("SK214", node.words[at].span, f"the {kind.word}{named} has no modifier", hint)
            return None
        decl = KindDeclaration(
            kind, name, tuple(w.text for w in modifiers), tuple(w.text for w in suffix), node, self._source
        )
        return decl if self._has_shape(decl) else None

    def _too_many(self, kind: Kind, name: nodes.Name | None, suffix: tuple[nodes.Name, ...]) -> None:
        first = suffix[0]
        if kind.name == "forbidden":
            self._error("SK210", first.span, f"`{kind.word}` takes no name", f"write {_shape(kind)}")
        elif kind.suffixes and first.text == kind.suffixes[0][0]:
            end = suffix[-1]
            self._error("SK201", end.span, f"a gate can't be for `{end.text}`", "write `for slow`")
        else:
            assert name is not None
            joined = "_".join(word.text for word in (name, *suffix))
            span = name.span.to(suffix[-1].span)
            fix = Fix(span, joined, safe=False)
            self._error("SK210", span, "a name must be one word", f"write `{joined}`", fix=fix)

    def _has_shape(self, decl: KindDeclaration) -> bool:
        """Whether it has a type, parameters, a value and a block where its kind takes them."""
        kind, node = decl.kind, decl.node
        what = f"`{' '.join(word.text for word in node.words)}`"
        if kind.type and node.type is None:
            hint = f'write `{node.words[-1].text}: text`, or the labels: `: "yes" | "no"`'
            self._error("SK216", decl.span, f"{what} has no type", hint)
            return False
        if node.type is not None and not kind.type:
            if self._colon_for_equals(node):
                return False
            return self._extra(decl, "type", "only inputs, outputs and fields have a type")
        if node.parameters is not None and not kind.parameters:
            return self._extra(decl, "parameters", "only metrics and gates have parameters")
        # A rubric may be a block of criteria instead of a text.
        of_parts = kind.word == "rubric" and node.block is not None
        needs_value = kind.expression or (kind.value and kind.word != "section" and not of_parts)
        if needs_value and node.value is None and decl.bare is None:
            self._no_value(decl, what)
            return False
        if node.value is not None and not (kind.expression or kind.value or kind.refers):
            return self._extra(decl, "value", f"write its settings in a block: {_shape(kind)}", node.value.span)
        if node.block is not None and kind.settings is None:
            return self._extra(decl, "block", "remove the block", node.block.span)
        return True

    def _no_value(self, decl: KindDeclaration, what: str) -> None:
        hint, fix = "add `= ...`", None
        names = [name for name, _ in decl.kind.bare]
        if names and decl.name is not None:
            near = spelling_hint(decl.name.text, names)
            fix = spelling_fix(decl.name.text, decl.name.span, names)
            hint = near or f"add `= ...`, or write `{decl.kind.word} {names[0]}`"
        self._error("SK219", decl.span, f"{what} has no value", hint, fix=fix)

    def _colon_for_equals(self, node: nodes.Declaration) -> bool:
        """Report a type that is meant as a value, as in `source: "tickets.jsonl"`; return whether it is one."""
        if node.type is None or node.value is not None or node.parameters is not None:
            return False
        name = node.words[-1]
        whole = Span(name.span.end, node.type.span.start)
        between = self._source.slice(whole)
        # There may be a comment beside the colon or another character in its place, and a type may be intended.
        colon = max(between.rfind(":"), 0)
        safe = not isinstance(node.type, nodes.NamedType)
        fix = Fix(whole, " = ", safe) if between.strip() == ":" else None
        place = Span(whole.start + colon, whole.start + colon + 1)
        message, hint = "`=` assigns a value; `:` precedes a type", f"write `{name.text} =`"
        self._error("SK013", place, message, hint, fix=fix)
        return True

    def _extra(self, decl: KindDeclaration, what: str, hint: str, span: Span | None = None) -> bool:
        self._error("SK219", span or decl.span, f"`{decl.kind.word}` takes no {what}", hint)
        return False

    # ---- unknown words ----

    def _unknown(self, words: list[str], node: nodes.Declaration) -> None:
        first = node.words[0]
        known = {*self._kinds, *self._settings}
        if len(words) > 1:
            known |= {word for kind in self._kinds.values() for word in kind.modifiers}
        if len(words) > 1 and words[1] in self._kinds and self._kinds[words[1]].modifiers:
            known, words = set(self._kinds[words[1]].modifiers), words[:1]
        removed = REMOVED.get((self._parent or "", words[0]))
        options = listed([*self._kinds, *self._settings][:12])
        hint = removed or spelling_hint(first.text, sorted(known)) or self._elsewhere(words)
        hint = hint or (f"valid options: {options}" if options else None)
        fix = None if removed else spelling_fix(first.text, first.span, sorted(known))
        if hint is not None and hint == self._elsewhere(words):
            self._error("SK211", first.span, f"`{first.text}` is not allowed {self._place()}", hint)
        elif self._parent == "":
            self._error("SK201", first.span, f"unknown statement `{first.text}`", hint, fix=fix)
        else:
            behind = f" in `{self._parent}`" if self._parent else ""
            shown = " ".join(words)
            span = first.span.to(node.words[len(words) - 1].span)
            self._error("SK202", span, f"unknown setting `{shown}`{behind}", hint, fix=fix)
            if fix is not None:
                # The setting that was probably intended is not reported as missing.
                self.rejected.add(fix.text)

    def _elsewhere(self, words: list[str]) -> str | None:
        """Hint with the place where a word is allowed."""
        for word in words[:2]:
            kind = KINDS.get(word)
            if kind is not None and word not in self._kinds:
                within = kind.within[0]
                return f"move it into the block of `{within}`" if within else "move it to the top of the file"
        homes = [k.word for k in KINDS.values() if len(words) == 1 and k.word != self._parent and k.setting(words[0])]
        return f"move it into the block of {listed(homes[:4], 'or')}" if homes else None

    def _place(self) -> str:
        if self._parent == "":
            return "at the top of a file"
        return f"in the block of `{self._parent}`" if self._parent else "here"


def is_language(header: nodes.Header) -> bool:
    """Whether a statement declares the version of the language, with `language` perhaps misspelt."""
    word = header.words[0].text
    return len(header.words) == 1 and (word == "language" or spelling_hint(word, ["language"]) is not None)


def _words_in(node: nodes.Declaration) -> set[str]:
    found = {word.text for word in node.words}
    for each in node.block.statements if node.block is not None else ():
        if isinstance(each, nodes.Declaration):
            found |= _words_in(each)
    return found


def _shape(kind: Kind) -> str:
    """A sample declaration of a kind."""
    front = f"{kind.modifiers[1]} " if kind.modifiers else ""
    name = " name" if kind.name == "required" else ""
    type_ = ": text" if kind.type else ""
    value = " = ..." if kind.expression or (kind.value and kind.word != "section") else ""
    block = " { ... }" if kind.settings is not None and not value and not type_ else ""
    return f"`{front}{kind.word}{name}{type_}{value}{block}`"
