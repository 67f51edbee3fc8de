"""Check a program in passes: syntax, modules, names, types. Never raises, whatever the text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from skillc.dataclass import dataclass
from skillc.diagnostics.diagnostic import Diagnostic, Fix, Reporter
from skillc.language import rules
from skillc.language.checked import (
    Checked,
    CheckedGate,
    CheckedMetric,
    CheckedVerdict,
    Entity,
    Unsupported,
    fields_of,
    is_trained,
    of_kind,
)
from skillc.language.commands import check_agent, check_models, check_native_calls
from skillc.language.entities import Entities
from skillc.language.judges import check_rubric
from skillc.language.linking import Linker, main_module
from skillc.language.lower import Lower
from skillc.language.modules import Loader, Module
from skillc.language.rules import check_missing, is_library, report_unsupported, unsupported_parts
from skillc.language.scope import Declarations
from skillc.language.skill_folder import check_skill_folder, check_what_runs_scripts
from skillc.language.statements import Classifier, is_language
from skillc.syntax import nodes
from skillc.syntax.parser import parse
from skillc.syntax.source import Source, Span
from skillc.syntax.tokens import Token

NEWEST = 1
_SUSPECT = re.compile(r"[^\x09\x0a\x0d\x20-\x7e]|\r(?!\n)")


@dataclass
class CheckState:
    """State that the passes share."""

    source: Source
    loader: Loader
    report: Reporter
    program: nodes.Program
    module: Module
    broken: set[str] = field(default_factory=set)
    unread: bool = False
    tokens: tuple[Token, ...] = ()
    entities: tuple[Entity, ...] = ()
    metrics: tuple[CheckedMetric, ...] = ()
    gates: tuple[CheckedGate, ...] = ()
    unsupported: tuple[Unsupported, ...] = ()
    rubrics: Mapping[str, Entity] = field(default_factory=dict)

    @property
    def checked(self) -> Checked:
        """The result of all passes; its diagnostics are in the order in which they were reported."""
        required = next((each for each in self.module.declarations if each.kind.word == "require" and each.bare), None)
        return Checked(
            self.program,
            NEWEST,
            self.entities,
            self.metrics,
            self.gates,
            self.report.diagnostics(),
            is_library(self.module),
            unsupported=self.unsupported,
            required=CheckedVerdict("improved", required.source, required.span) if required is not None else None,
            rubrics=self.rubrics,
        )


def analyse(source: Source, loader: Loader | None = None) -> CheckState:
    """Check the names and types of a program; `skillc/lint` adds the advice.

    By default the modules that it uses are read from its own folder, and no markdown skills.
    """
    parsed = parse(source)
    report = Reporter((*parsed.diagnostics, *_hidden_characters(source)))
    module = main_module(source, parsed.dropped)
    loader = loader or Loader(Path(source.name).parent)
    state = CheckState(
        source, loader, report, parsed.program, module, unread=bool(parsed.diagnostics), tokens=parsed.tokens
    )
    _check_version(state)
    classifier = Classifier(report, source, "", ())
    module.declarations = classifier.classify(parsed.program.statements).kinds
    module.dropped |= classifier.rejected
    Linker(report, loader).link(module, parsed.program.statements)
    rules.check_names(report, module)
    entities = Entities(report, module)
    state.entities, state.broken = entities.all(), entities.broken
    _check_declarations(state)
    _lower(state)
    # A library is not compiled, only the programs that use it.
    if not is_library(module):
        check_missing(report, module, module.dropped)
        report_unsupported(report, state.unsupported)
    return state


def _hidden_characters(source: Source) -> list[Diagnostic]:
    """Report invisible characters; plain ASCII, which most programs are, is not searched."""
    if not _SUSPECT.search(source.text):
        return []
    from skillc.syntax.hidden import hidden

    return hidden(source)


def _check_version(state: CheckState) -> None:
    """Check that the file declares the version of the language."""
    headers = [s for s in state.program.statements if isinstance(s, nodes.Header) and is_language(s)]
    if not headers:
        if not state.unread:
            first = state.program.statements[0].span if state.program.statements else Span(0, 0)
            place = Span(first.start, min(first.end, state.source.line_end(first.start)))
            hint = f"add `language {NEWEST}` as the first line"
            fix = Fix(Span(0, 0), f"language {NEWEST}\n\n")
            state.report.add("SK207", state.source, place, "the file declares no language version", hint=hint, fix=fix)
        return
    for header in headers[1:]:
        state.report.add("SK203", state.source, header.span, "`language` is declared twice", hint="keep the first")
    value = headers[0].value
    version = value.value if isinstance(value, nodes.Quantity) and value.unit is None else None
    if version == NEWEST:
        return
    shown = " ".join(state.source.slice(value.span).split())
    if version is not None and version.denominator == 1 and version > NEWEST:
        message = f"`language {shown}` is newer than this skillc, which supports language {NEWEST}"
        state.report.add("SK208", state.source, headers[0].span, message, hint="install a newer skillc")
    else:
        message = f"unknown version: `language {shown}`"
        state.report.add("SK208", state.source, headers[0].span, message, hint=f"write `language {NEWEST}`")


def _check_declarations(state: CheckState) -> None:
    rules.check_fields(state.report, state.entities, state.module)
    check_models(state.report, of_kind(state.entities, "model"))
    check_native_calls(state.report, state.entities)
    fields = fields_of(state.entities)
    check_what_runs_scripts(state.report, state.entities)
    skills = of_kind(state.entities, "skill")
    trained = any(map(is_trained, skills))
    for entity in state.entities:
        if entity.kind == "section":
            rules.check_section(state.report, entity)
        elif entity.kind == "skill":
            rules.check_skill(state.report, entity)
            check_skill_folder(state.report, entity, state.loader)
        elif entity.kind == "task":
            rules.check_rollout(state.report, entity, state.module, {**dict.fromkeys(state.broken), **fields})
            rules.check_cuts(state.report, entity)
            rules.check_images(state.report, entity)
            rules.check_opening(state.report, entity, skills)
            check_agent(state.report, entity, state.entities, state.broken, state.module.dropped)
        elif entity.kind == "rubric":
            check_rubric(state.report, entity, {**dict.fromkeys(state.broken), **fields})
        elif entity.kind == "data":
            rules.check_data(state.report, entity, {**dict.fromkeys(state.broken), **fields})
        rules.check_required(state.report, entity, state.module.dropped | state.broken, beside=trained)


def _lower(state: CheckState) -> None:
    facts = Declarations.of(state.entities, state.module, state.broken)
    lower = Lower(state.report, state.module, facts, state.program.comments)
    lower.check_functions()
    lower.lower_metrics()
    state.gates = lower.lower_gates()
    state.metrics = tuple(lower.metrics.values())
    state.unsupported = unsupported_parts(lower.effort.unsupported)
    state.rubrics = lower.effort.rubrics
