"""Check a source through a tuple of passes: syntax, files, names, types. Never raises, whatever the text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from skillc.diagnostics.diagnostic import Diagnostic, Fix, Reporter
from skillc.language import rules
from skillc.language.checked import Checked, CheckedGate, CheckedMetric, CheckedVerdict, Entity, Later
from skillc.language.commands import check_models
from skillc.language.entities import Entities
from skillc.language.facts import fields_of, gather
from skillc.language.linking import Linker, main_module
from skillc.language.lower import Lower
from skillc.language.modules import Loader, Module
from skillc.language.rules import check_missing, is_library, needs, report_later
from skillc.language.statements import Sorter, is_language
from skillc.syntax import nodes
from skillc.syntax.parser import parse
from skillc.syntax.source import Source, Span
from skillc.syntax.tokens import Token

NEWEST = 1
_SUSPECT = re.compile(r"[^\x09\x0a\x0d\x20-\x7e]|\r(?!\n)")


@dataclass
class Work:
    """What one pass leaves to the next."""

    source: Source
    loader: Loader
    report: Reporter
    program: nodes.Program
    module: Module
    flawed: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    unread: bool = False
    tokens: tuple[Token, ...] = ()
    readable: bool = True
    entities: tuple[Entity, ...] = ()
    metrics: tuple[CheckedMetric, ...] = ()
    gates: tuple[CheckedGate, ...] = ()
    later: tuple[Later, ...] = ()

    @property
    def checked(self) -> Checked:
        """The result of all passes, its diagnostics in the order in which they were made."""
        return Checked(
            self.program,
            NEWEST,
            self.entities,
            self.metrics,
            self.gates,
            self.report.diagnostics(),
            is_library(self.module),
            later=self.later,
            required=self._required,
        )

    @property
    def _required(self) -> CheckedVerdict | None:
        stated = next((each for each in self.module.stated if each.kind.word == "require" and each.bare), None)
        return CheckedVerdict("improved", stated.source, stated.span) if stated is not None else None


def analyse(source: Source, loader: Loader | None = None) -> Work:
    """Check the names and types of a program; advice on it is the business of `skillc/lint`.

    Args:
        source: the main program.
        loader: reads what it uses; by default from the folder of the main program, markdown skills excepted.
    """
    parsed = parse(source)
    report = Reporter((*parsed.diagnostics, *_hidden(source)))
    module = main_module(source, parsed.dropped)
    loader = loader or Loader(Path(source.name).parent)
    work = Work(source, loader, report, parsed.program, module, unread=bool(parsed.diagnostics), tokens=parsed.tokens)
    for each in PASSES:
        each(work)
    return work


def _hidden(source: Source) -> list[Diagnostic]:
    """What a reader of the text does not see; most texts can't hold any."""
    if not _SUSPECT.search(source.text):
        return []
    from skillc.syntax.hidden import hidden

    return hidden(source)


def _language(work: Work) -> None:
    """The version of the language, which every file says."""
    headers = [s for s in work.program.statements if isinstance(s, nodes.Header) and is_language(s)]
    if not headers:
        if not work.unread:
            first = work.program.statements[0].span if work.program.statements else Span(0, 0)
            place = Span(first.start, min(first.end, work.source.line_end(first.start)))
            hint = f"begin it with `language {NEWEST}`"
            fix = Fix(Span(0, 0), f"language {NEWEST}\n\n")
            work.report.add("SK207", work.source, place, "the file does not say its language", hint=hint, fix=fix)
        return
    for header in headers[1:]:
        work.report.add("SK203", work.source, header.span, "`language` is said twice", hint="keep the first")
    value = headers[0].value
    version = value.value if isinstance(value, nodes.Quantity) and value.unit is None else None
    if version == NEWEST:
        return
    shown = " ".join(work.source.slice(value.span).split())
    if version is not None and version.denominator == 1 and version > NEWEST:
        message = f"`language {shown}` is newer than this skillc, which knows language {NEWEST}"
        work.report.add("SK208", work.source, headers[0].span, message, hint="install a newer skillc")
    else:
        message = f"there is no `language {shown}`"
        work.report.add("SK208", work.source, headers[0].span, message, hint=f"write `language {NEWEST}`")


def _sort(work: Work) -> None:
    """What each statement of the file is."""
    before = work.report.errors
    sorter = Sorter(work.report, work.source, "", ())
    work.module.stated = sorter.sort(work.program.statements).kinds
    work.module.dropped |= sorter.rejected
    work.readable = not work.unread and work.report.errors == before


def _link(work: Work) -> None:
    """The files that the program uses."""
    Linker(work.report, work.loader).link(work.module, work.program.statements)


def _names(work: Work) -> None:
    """Names that are taken twice."""
    rules.check_names(work.report, work.module)


def _entities(work: Work) -> None:
    """Declarations with their meaning."""
    builder = Entities(work.report, work.module)
    work.entities = builder.all()
    work.flawed, work.broken = builder.flawed, builder.broken


def _rules(work: Work) -> None:
    """What declarations demand of each other."""
    rules.check_fields(work.report, work.entities, work.module)
    check_models(work.report, [entity for entity in work.entities if entity.kind == "model"])
    fields = fields_of(work.entities)
    for entity in work.entities:
        if entity.kind == "section":
            rules.check_section(work.report, entity)
        elif entity.kind == "skill":
            rules.check_skill(work.report, entity)
        elif entity.kind == "data":
            rules.check_data(work.report, entity, {**dict.fromkeys(work.broken), **fields})
        rules.check_whole(work.report, entity, work.module.dropped | work.broken)


def _expressions(work: Work) -> None:
    """Functions, metrics and gates."""
    facts = gather(work.entities, work.module, work.broken)
    comments = work.program.comments
    lower = Lower(work.report, work.module, facts, comments)
    lower.check_functions()
    lower.lower_metrics()
    work.gates = lower.lower_gates()
    work.metrics = tuple(lower.metrics.values())
    work.later = needs(work.entities, lower.later)


def _missing(work: Work) -> None:
    """What a program cannot do without."""
    if not is_library(work.module):
        check_missing(work.report, work.module, work.module.dropped)


def _later(work: Work) -> None:
    """What this version can't compile. A library is compiled by none: whoever uses it is told."""
    if not is_library(work.module):
        report_later(work.report, work.later)


PASSES: tuple[Callable[[Work], None], ...] = (
    _language,
    _sort,
    _link,
    _names,
    _entities,
    _rules,
    _expressions,
    _missing,
    _later,
)
"""In the order in which they run."""
