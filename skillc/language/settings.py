"""Read settings: the values of a block, typed and in base units."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

from skillc.diagnostics.diagnostic import Diagnostic, Fix, Reporter, Severity
from skillc.diagnostics.suggest import spelling_fix, spelling_hint
from skillc.gates.units import UNITS, decimal, describe_unit
from skillc.language.checked import Amount, Invocation, Items, Setting, Shares, Value, Word
from skillc.language.forms import PLAIN_BLOCK, Form, SettingKind
from skillc.language.statements import Classifier, SettingDeclaration
from skillc.language.types import Broken, FileErrors, as_literal, bare
from skillc.syntax import nodes
from skillc.syntax.parser import parse
from skillc.syntax.source import Source, Span
from skillc.text import counted, joined

_SECRET = re.compile(
    r"(?:^|_)(?:api_?key|(?:access|secret)_key|secret|password|authorization|(?:access|auth|bearer)_token)$", re.I
)
_SWITCH = {"on": True, "off": False}
_TURNED = {"true": "on", "yes": "on", "false": "off", "no": "off"}
_WRITTEN_NUMBER = re.compile(r"\s*(?P<dollar>\$?)\s*(?P<number>\d[\d_]*(?:\.\d+)?)\s*(?P<unit>%|[A-Za-z]*)\s*")
_WRITTEN_RATIO = re.compile(r"\s*\d[\d.]*(?:\s*[:/]\s*\d[\d.]*){1,2}\s*")
_PLAIN_WORDS = {**_SWITCH, "true": True, "false": False}


class SettingReader:
    """Read settings of one file."""

    def __init__(self, errors: FileErrors) -> None:
        self._errors = errors

    def read_all(self, decl: Iterable[SettingDeclaration]) -> dict[str, Setting]:
        """Read settings by name; report and leave out those with errors."""
        found: dict[str, Setting] = {}
        for each in decl:
            with suppress(Broken):
                found[each.name.text] = self._read(each)
        return found

    def read_value(self, name: str, forms: tuple[Form, ...], node: nodes.Expression) -> Value:
        """Read a value of one of several forms."""
        return self._value(name, forms, node)[0]

    def _read(self, decl: SettingDeclaration) -> Setting:
        node, name = decl.node, decl.name.text
        if decl.setting is None:
            self._refuse_secret(decl)
            return self._pass_on(decl)
        forms = decl.setting.forms
        if node.value is None:
            form = next((f for f in forms if f.kind == "block"), None)
            if form is None or node.block is None:
                hint = f"write `{name} = ...`: {_choices(forms)}"
                raise self._errors.add("SK219", decl.name.span, f"`{name}` has no value", hint)
            return self._setting(True, decl, self._block(form, node.block))
        value, form = self._value(name, forms, node.value)
        if node.block is not None and form.block is None:
            message = f"this value of `{name}` takes no block"
            raise self._errors.add("SK219", node.block.span, message, "remove the block")
        return self._setting(value, decl, self._block(form, node.block))

    def _setting(self, value: Value, decl: SettingDeclaration, block: Mapping[str, Setting]) -> Setting:
        return Setting(value, self._errors.source, decl.node.span, block, decl.words)

    def _block(self, form: Form, block: nodes.Block | None) -> dict[str, Setting]:
        if block is None:
            return {}
        classifier = Classifier(self._errors.report, self._errors.source, None, form.block or (), form.passes)
        return self.read_all(classifier.classify(block.statements).settings)

    # ---- literals that are passed on ----

    def _refuse_secret(self, decl: SettingDeclaration) -> None:
        """Refuse a secret in a setting that is passed on: plan and lock contain its value."""
        if _SECRET.search(decl.name.text) and isinstance(decl.node.value, nodes.String | nodes.Text):
            message = f"`{decl.name.text}` is a secret, which a program must not contain"
            hint = 'write `key = env("NAME")`, and set that variable'
            raise self._errors.add("SK602", decl.node.value.span, message, hint)

    def _pass_on(self, decl: SettingDeclaration) -> Setting:
        node = decl.node
        block = self._block(PLAIN_BLOCK, node.block)
        if node.value is None:
            if node.block is None:
                raise self._errors.add("SK219", decl.name.span, f"`{decl.name.text}` has no value", "add `= ...`")
            return self._setting(True, decl, block)
        return self._setting(self._plain(node.value), decl, block)

    def _plain(self, node: nodes.Expression) -> Value:
        if isinstance(node, nodes.String | nodes.Text):
            return node.value
        if isinstance(node, nodes.List):
            return Items(tuple(self._plain(item) for item in node.items))
        if isinstance(node, nodes.Reference):
            if node.name in _PLAIN_WORDS:
                return _PLAIN_WORDS[node.name]
            if node.name == "none":
                return Word("none")
            quoted = f'"{node.name}"'
            fix = Fix(node.span, quoted, safe=False)
            raise self._errors.add("SK317", node.span, f"`{node.name}` is not a literal", f"write `{quoted}`", fix=fix)
        amount = as_literal(self._errors, node)
        if amount is None:
            message, hint = "an expression can't be passed on", "write a number, a text, a list, `on` or `off`"
            raise self._errors.add("SK317", node.span, message, hint)
        if amount.unit:
            hint = f"write `{decimal(amount.value)}`: numbers are passed on without units"
            raise self._errors.add("SK317", node.span, f"`{self._shown(node)}` is not a plain literal", hint)
        return amount

    # ---- values by form ----

    def _value(self, name: str, forms: tuple[Form, ...], node: nodes.Expression) -> tuple[Value, Form]:
        for form in forms:
            if fits(form, node):
                return self._typed(name, form, node), form
        raise self._no_form(name, forms, node)

    def _typed(self, name: str, form: Form, node: nodes.Expression) -> Value:
        if isinstance(node, nodes.String | nodes.Text):
            return node.value
        if form.kind == "number":
            return self._number(name, form, node)
        if isinstance(node, nodes.Reference):
            return _SWITCH[node.name] if form.kind == "switch" else Word(node.name)
        if isinstance(node, nodes.List):
            return Items(tuple(self._value(name, form.items, item)[0] for item in node.items))
        if isinstance(node, nodes.Call):
            return self._call(form, node)
        assert isinstance(node, nodes.Ratio)
        return self._ratio(name, node)

    def _number(self, name: str, form: Form, node: nodes.Expression) -> Amount:
        amount = as_literal(self._errors, node)
        assert amount is not None
        if bare(node) and form.unit:
            if not form.bare:
                raise self._missing_unit(name, form, node, amount)
            amount = Amount(amount.value, form.unit)
        if amount.unit != form.unit or (form.whole and not form.unit and not bare(node)):
            found = "a share" if not amount.unit and not bare(node) else describe_unit(amount.unit)
            wanted = describe_unit(form.unit)
            message = f"`{name}` takes {wanted}, not {found}"
            raise self._errors.add("SK302", node.span, message, f"`{name}` is {form.describe()}")
        if form.whole and amount.value.denominator != 1:
            hint = f"write `{int(amount.value)}` or `{int(amount.value) + 1}`"
            raise self._errors.add("SK315", node.span, f"`{name}` must be a whole number", hint)
        if form.low is not None and amount.value < form.low:
            raise self._errors.add("SK315", node.span, f"`{name}` must be at least {form.low}")
        if form.high is not None and amount.value > form.high:
            raise self._errors.add("SK315", node.span, f"`{name}` must be at most {form.high}")
        return amount

    def _missing_unit(self, name: str, form: Form, node: nodes.Expression, amount: Amount) -> Broken:
        unit, place = _COMMON_UNITS.get(form.unit, form.unit), Span(node.span.end, node.span.end)
        number = decimal(amount.value) if form.unit in _COMMON_UNITS else self._shown(node)
        right, added = f"{number} {unit}", f" {unit}"
        if unit == "$":
            right, added, place = f"${number}", "$", Span(node.span.start, node.span.start)
        fix = Fix(place, added, safe=False)
        return self._errors.add("SK314", node.span, f"`{name}` needs a unit", f"write `{right}`", fix=fix)

    def _call(self, form: Form, node: nodes.Call) -> Invocation:
        given = [argument for argument in node.arguments if argument.name is None]
        options = self._options(form, node)
        wanted = len(form.arguments)
        if len(given) < wanted or (len(given) > wanted and not form.many):
            takes = counted(wanted, "argument")
            message = f"`{form.name}` takes {takes}, not {len(given)}"
            raise self._errors.add("SK310", node.span, message, f"write {form.describe()}")
        forms = (*form.arguments, *(form.arguments[-1:] * (len(given) - wanted)))
        values = tuple(
            self._value(form.name, (each,), argument.value)[0] for each, argument in zip(forms, given, strict=True)
        )
        return Invocation(form.name, values, options)

    def _options(self, form: Form, node: nodes.Call) -> tuple[tuple[str, Value], ...]:
        """The named arguments of a call, by name."""
        known = {option.name: option for option in form.options}
        found: dict[str, Value] = {}
        for argument in node.arguments:
            if argument.name is None:
                continue
            name = argument.name.text
            if name not in known or name in found:
                message = f"`{form.name}` takes no option `{name}`" if name not in known else f"`{name}` is given twice"
                hint = spelling_hint(name, known) or f"write {form.describe()}"
                raise self._errors.add("SK310", argument.span, message, hint)
            found[name] = self._value(name, known[name].forms, argument.value)[0]
        return tuple(sorted(found.items()))

    def _ratio(self, name: str, node: nodes.Ratio) -> Shares:
        parts: list[Amount] = []
        for part in node.parts:
            amount = as_literal(self._errors, part)
            if amount is None or amount.unit not in ("", "examples"):
                message = f"a part of `{name}` must be a number, or a number of examples"
                raise self._errors.add("SK402", part.span, message, "write `2 : 1 : 2`")
            parts.append(amount)
        return Shares(tuple(parts))

    # ---- values of no form ----

    def _no_form(self, name: str, forms: tuple[Form, ...], node: nodes.Expression) -> Broken:
        from skillc.diagnostics.suggest import hyphenated_name

        wanted = _choices(forms)
        listed = [word for form in forms for word in form.words]
        hint: str | None = f"write `{name} = {_sample(forms[0])}`"
        fix: Fix | None = None
        written = self._suggest(forms, node)
        if written is not None:
            hint, fix = f"write `{name} = {written}`", Fix(node.span, written, safe=False)
        elif isinstance(node, nodes.String | nodes.Text) and node.value in listed:
            hint, fix = f"write `{node.value}` without quotes", Fix(node.span, node.value)
        elif isinstance(node, nodes.Reference):
            hint = self._word_hint(forms, node, listed) or hint
            turned = _TURNED.get(node.name) if any(form.kind == "switch" for form in forms) else None
            fix = Fix(node.span, turned) if turned else spelling_fix(node.name, node.span, listed)
        elif (
            isinstance(node, nodes.Binary)
            and (whole := hyphenated_name(self._errors.source, node.span, listed)) is not None
        ):
            return self._errors.add("SK022", node.span, whole.message, whole.hint, fix=whole.fix)
        elif isinstance(node, nodes.Call) and isinstance(node.function, nodes.Reference):
            functions = [form.name for form in forms if form.kind == "call"]
            hint = spelling_hint(node.function.name, [*functions, *listed]) or hint
        elif isinstance(node, nodes.String) and any(f.name == "env" for f in forms):
            message = f"`{name}` is a secret, which a program must not contain"
            return self._errors.add("SK602", node.span, message, 'write `env("NAME")`, and set that variable')
        return self._errors.add("SK313", node.span, f"`{name}` takes {wanted}", hint, fix=fix)

    def _suggest(self, forms: tuple[Form, ...], node: nodes.Expression) -> str | None:
        """The correct text of a number or a ratio that is written in quotes or with other signs."""
        for form in forms:
            if form.kind == "number" and isinstance(node, nodes.String):
                return _unquoted(form, node.value)
            if form.kind == "ratio":
                parts = self._parts(node)
                return " : ".join(parts) if parts is not None and 2 <= len(parts) <= 3 else None
        return None

    def _parts(self, node: nodes.Expression) -> list[str] | None:
        """The numbers of `60/20/20`, `[60, 20, 20]` or `"60:20:20"`."""
        if isinstance(node, nodes.String):
            return re.split(r"\s*[:/]\s*", node.value.strip()) if _WRITTEN_RATIO.fullmatch(node.value) else None
        if isinstance(node, nodes.List):
            operands: tuple[nodes.Expression, ...] = tuple(node.items)
        elif isinstance(node, nodes.Binary) and all(each.operator == "/" for each in nodes.chain(node)):
            operands = tuple(nodes.operands(node))
        else:
            return [self._shown(node)] if isinstance(node, nodes.Quantity) else None
        shown = [self._shown(each) for each in operands if isinstance(each, nodes.Quantity)]
        return shown if len(shown) == len(operands) else None

    def _word_hint(self, forms: tuple[Form, ...], node: nodes.Reference, listed: list[str]) -> str | None:
        if any(form.kind == "switch" for form in forms):
            turned = _TURNED.get(node.name)
            return f"write `{turned}`" if turned else None
        calls = {form.name: form for form in forms if form.kind == "call"}
        if node.name in calls:
            return f"write {calls[node.name].describe()}"
        near = spelling_hint(node.name, [*listed, *calls])
        if near is None and any(form.kind == "text" for form in forms):
            return f'write `"{node.name}"`'
        if near is None and any(form.kind == "list" for form in forms):
            return f"write `[{node.name}]`"
        return near

    def _shown(self, node: nodes.Expression) -> str:
        return self._errors.source.slice(node.span)


def read_setting(setting: SettingKind, text: str) -> Value | Diagnostic:
    """Read the value of one setting outside of a program, as in `--set`.

    `$`, brackets and all units except those of time are optional, because shells interpret `$` and brackets.

    Returns:
        The value, or the first error.
    """
    listed = all(form.kind == "list" for form in setting.forms) and not text.startswith("[")
    source = Source("--set", f"{setting.name} = {f'[{text}]' if listed else text}")
    parsed = parse(source)
    report = Reporter(parsed.diagnostics)
    forms = tuple(replace(form, bare=form.bare or form.unit != "s") for form in setting.forms)
    classified = Classifier(report, source, None, (replace(setting, forms=forms),)).classify(parsed.program.statements)
    values = SettingReader(FileErrors(report, source)).read_all(classified.settings)
    if report.errors:
        return next(found for found in report.diagnostics() if found.severity is Severity.ERROR)
    return values[setting.name].value


def fits(form: Form, node: nodes.Expression) -> bool:
    """Whether a value has the outer shape of a form; its parts may still be wrong."""
    if isinstance(node, nodes.Reference):
        if form.kind == "switch":
            return node.name in _SWITCH
        return form.kind in ("field", "role") or (form.kind == "word" and node.name in form.words)
    if isinstance(node, nodes.Call):
        return form.kind == "call" and isinstance(node.function, nodes.Reference) and node.function.name == form.name
    if isinstance(node, nodes.Unary) and node.operator != "not":
        return form.kind == "number" and isinstance(node.operand, nodes.Quantity | nodes.Money)
    shapes: dict[type, str] = {
        nodes.String: "text",
        nodes.Text: "text",
        nodes.Quantity: "number",
        nodes.Money: "number",
        nodes.List: "list",
        nodes.Ratio: "ratio",
    }
    return shapes.get(type(node)) == form.kind


def _unquoted(form: Form, text: str) -> str | None:
    """The number of a form that a quoted text contains: `1k` for `"1k"`, `$3` for `"3"`."""
    found = _WRITTEN_NUMBER.fullmatch(text)
    if found is None:
        return None
    number, word = found["number"], found["unit"]
    counts = word in _SCALES
    unit, factor = ("", _SCALES[word]) if counts else UNITS.get(word, ("?", Fraction(1)))
    if found["dollar"] and (not counts or form.unit != "$"):
        return None
    if form.unit == "$":
        return f"${number}{word}" if counts else None
    if (word == "%" and (form.whole or form.unit)) or (not counts and unit != form.unit):
        return None
    value = Fraction(number.replace("_", "")) * factor
    if (form.whole and value.denominator != 1) or not (form.low or 0) <= value <= (form.high or value):
        return None
    if counts and not form.bare:
        return f"{number}{word} {_COMMON_UNITS.get(form.unit, form.unit)}"
    space = "" if counts or word == "%" else " "
    return f"{number}{space}{word}"


_SCALES = {"": Fraction(1), "k": Fraction(1000), "M": Fraction(10**6)}
_COMMON_UNITS = {"s": "min", "bytes": "MB"}
"""The unit that hints use for a base unit."""
_SAMPLES = {"tokens": "1000", "$": "$3", "s": "90 min", "bytes": "2 GB"}
"""Typical amounts for hints; a count of anything else is 2."""


def _sample(form: Form) -> str:
    """A sample value of a form, for a hint."""
    if form.kind == "number" and form.unit in _SAMPLES:
        return _SAMPLES[form.unit] + (" tokens" if form.unit == "tokens" and not form.bare else "")
    if form.kind == "number":
        number_ = str(max(2, form.low or 0) if form.whole else form.high or 1)
        return f"${number_}" if form.unit == "$" else f"{number_} {form.unit}" if not form.bare else number_
    if form.kind == "call":
        return form.example()
    if form.kind == "list":
        return f"[{_sample(form.items[0])}]"
    if form.kind == "block":
        return "{ ... }"
    return {"word": form.words[0] if form.words else "", "switch": "on", "ratio": "2 : 1 : 2"}.get(form.kind, '"..."')


def _choices(forms: tuple[Form, ...]) -> str:
    """List the forms in a message."""
    found: list[str] = []
    for form in forms:
        found += [f"`{word}`" for word in form.words] if form.kind == "word" else [form.describe()]
    return joined(list(dict.fromkeys(found)), "or")
