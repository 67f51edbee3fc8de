"""What a program cannot do without."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import islice

from skillc.diagnostics.diagnostic import Label, Report
from skillc.diagnostics.suggest import meant
from skillc.language.modules import Module
from skillc.syntax.source import Span

_LIBRARY = ("task", "skill", "data", "goal")
_LOST_SEARCHED = 2000
_ROLES = ("target", "optimizer")
_NEEDED = {
    "task": "add `task { input question: text; output answer: text }`",
    "skill": 'add `skill name { about = "..."; trainable section rules }`',
    "data": 'add `data { source = "examples.jsonl" }`',
    "goal": "add `goal correct = exact_match(answer)`",
    "budget": "add `budget { epochs = 4 }`",
    "gate": "add `gate better = candidate.correct > incumbent.correct`",
}


def is_library(module: Module) -> bool:
    """Whether a file only declares what others use."""
    kinds = {stated.kind.word for stated in module.stated}
    in_force = {stated.kind.word for stated in module.stated if stated.name is None}
    gates = any(s.kind.word == "gate" and s.node.parameters is None for s in module.stated)
    return not kinds & {*_LIBRARY} and not in_force & {"budget", "optimize"} and not gates


def check_missing(report: Report, module: Module, lost: Collection[str]) -> None:
    """Report what a program lacks.

    `lost` are the words of statements that could not be read: what one of them may have been is not lacking.
    """
    place = _place(module)
    for kind, hint in _NEEDED.items():
        if _has(module, kind) or _lost(kind, lost):
            continue
        named = next((s for s in module.stated if s.kind.word == kind and s.kind.name == "optional" and s.name), None)
        if named is not None and named.name is not None:
            message = f"the {kind} `{named.name.text}` is only there to be reused"
            hint = f"remove its name, or add `{kind} = {named.name.text}`"
            report.add("SK206", module.source, named.span, message, hint=hint)
        else:
            read = report.missing_metric() if kind == "goal" else None
            secondary: tuple[Label, ...] = ()
            if read is not None:
                name, label = read
                hint = f"add `goal {name} = ...`, which the gates read"
                secondary = (replace(label, text=f"`{name}` is read here"),)
            report.add("SK206", module.source, place, f"the program has no {kind}", hint=hint, secondary=secondary)
    roles = module.named("model")
    for role in _ROLES:
        if role not in roles and not _lost(role, lost):
            hint = meant(role, roles) or f'add `model {role} = "provider/name"`'
            report.add("SK206", module.source, place, f"the program has no model for `{role}`", hint=hint)


def _lost(word: str, lost: Collection[str]) -> bool:
    return word in lost or any(meant(each, [word]) is not None for each in islice(lost, _LOST_SEARCHED))


def _has(module: Module, kind: str) -> bool:
    for stated in module.stated:
        if stated.kind.word != kind or (stated.kind.name == "optional" and stated.name is not None):
            continue
        # A function is no gate, and what slow updates must pass says nothing of the steps.
        if kind == "gate" and (stated.node.parameters is not None or stated.suffix):
            continue
        return True
    return False


def _place(module: Module) -> Span:
    """The first line of the file that says something, where messages about the whole program point."""
    text = module.source.text
    start = len(text) - len(text.lstrip())
    if module.stated and not text[start:].startswith("language"):
        return module.stated[0].span
    end = text.find("\n", start)
    return Span(start, end if end >= 0 else len(text))
