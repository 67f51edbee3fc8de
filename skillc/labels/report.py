"""Format the labels of signals and judges, and the agreement of their sources."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skillc.diagnostics.render import printable
from skillc.gates.noisy import declaration
from skillc.labels.judging import OTHER, JudgeRecord, Judging
from skillc.sessions.agreement import LEAST_MEASURED, LEAST_OVERLAP, Agreements, Interval, PairAgreement, Rate
from skillc.sessions.labelling import Labelled
from skillc.text import counted

_OUTCOMES = ("worked", "failed", "unclear")


def _table(*columns: str, left: int = 1) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for i, name in enumerate(columns):
        # A narrow terminal breaks names, but never figures.
        named = i < left
        table.add_column(name, justify="left" if named else "right", no_wrap=not named, overflow="fold")
    return table


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"


def _ends(interval: Interval | None, *, percent: bool = True) -> str:
    if interval is None:
        return "–"
    low, high = interval
    return f"{100 * low:.0f} to {100 * high:.0f}" if percent else f"{_number(low)} to {_number(high)}"


# ---- signals ---------------------------------------------------------------------------------------


def signals_table(found: Labelled) -> RenderableType:
    """Return a row for each signal, then one for all labels of a session together."""
    table = _table("source", *_OUTCOMES)
    for source in sorted({source for source, _ in found.labels}):
        table.add_row(source, *(f"{found.labels.get((source, outcome), 0):,}" for outcome in _OUTCOMES))
    table.add_section()
    table.add_row("consensus", *(f"{found.outcomes.get(outcome, 0):,}" for outcome in _OUTCOMES))
    without = found.outcomes.get("none", 0)
    lines = [f"read {counted(found.sessions, 'usable session')}; {without:,} without any label"]
    named = {name: number for name, number in found.skills.items() if name}
    skills = ", ".join(f"{number:,} {printable(name)}" for name, number in sorted(named.items()))
    none = found.skills.get("", 0)
    lines.append(f"skills: {skills or 'none'}" + (f"; {none:,} of no known skill" if none else ""))
    return Group(table, Text("\n".join(lines)))


def signals_json(found: Labelled) -> dict[str, Any]:
    """Return the object that `sessions label --signals --json` prints."""
    sources = sorted({source for source, _ in found.labels})
    return {
        "format_version": 1,
        "sessions": found.sessions,
        "signals": {
            source: {outcome: found.labels.get((source, outcome), 0) for outcome in _OUTCOMES} for source in sources
        },
        "consensus": dict(found.outcomes),
        "skills": dict(found.skills),
    }


# ---- agreement -------------------------------------------------------------------------------------


def agreement_table(found: Agreements) -> RenderableType:
    """Return the pairs of sources and the measured rates, with the number of those that have too few sessions."""
    person = f"{counted(found.sessions, 'labelled session')}, {found.by_person:,} by a person"
    parts: list[RenderableType] = [Text(person)]
    enough = [pair for pair in found.pairs if pair.equal is not None]
    if enough:
        table = _table("agreement of", "and", "both", "equal", "95 %", "kappa", "95 %", left=2)
        for pair in enough:
            parts_of = (_percent(pair.equal), _ends(pair.equal_interval), _number(pair.kappa))
            names = (printable(pair.one), printable(pair.other))
            table.add_row(*names, f"{pair.both:,}", *parts_of, _ends(pair.kappa_interval, percent=False))
        parts.append(table)
    few = [pair for pair in found.pairs if pair.equal is None]
    if few:
        parts.append(
            Text(
                f"{counted(len(few), 'pair')} of sources with fewer than {LEAST_OVERLAP} sessions in common: not shown"
            )
        )
    if found.rates:
        table = _table("source", "says", "right", "of", "declared", "measured", "95 %", left=2)
        for rate in found.rates:
            row = (f"{rate.right:,}", f"{rate.n:,}", _percent(rate.declared), _percent(rate.measured))
            table.add_row(printable(rate.source), rate.outcome, *row, _ends(rate.interval))
        parts.append(table)
    missing = [rate for rate in found.rates if not rate.enough]
    if missing:
        few_rates = f"{len(missing):,} of {counted(len(found.rates), 'rate')} {'has' if len(missing) == 1 else 'have'}"
        parts.append(Text(f"rates need {LEAST_MEASURED} sessions with a person's label; {few_rates} fewer"))
    for source, rates in found.errors.items():
        name = printable(source)
        if rates.youden > 0:
            parts.append(Text(f"{name} as a metric of a program: {declaration('signal', rates)}"))
        else:
            parts.append(Text(f"{name} is no metric: it tells sessions that worked from others no better than a coin"))
    if len(missing) < len(found.rates):
        parts.append(Text("the measured rates are now the certainties of these labels"))
    return Group(*parts)


def _number(value: float | None) -> str:
    # Print a value just below 0 as 0.00, not -0.00.
    return "–" if value is None else f"{round(value, 2) + 0.0:.2f}"


def agreement_json(found: Agreements) -> dict[str, Any]:
    """Return the object that `sessions agreement --json` prints."""
    return {
        "format_version": 1,
        "sessions": found.sessions,
        "by_person": found.by_person,
        "pairs": [_pair_json(each) for each in found.pairs],
        "rates": [_rate_json(each) for each in found.rates],
        "confusion": {
            source: [
                {"source": said, "person": true, "sessions": number} for (said, true), number in sorted(counts.items())
            ]
            for source, counts in found.confusion.items()
        },
        "errors": {
            source: {
                "sensitivity": float(rates.sensitivity),
                "specificity": float(rates.specificity),
                "positives": rates.positives,
                "negatives": rates.negatives,
            }
            for source, rates in found.errors.items()
        },
    }


def _pair_json(pair: PairAgreement) -> dict[str, Any]:
    return {
        "sources": [pair.one, pair.other],
        "both": pair.both,
        "unclear": pair.unclear,
        "enough": pair.equal is not None,
        "equal": pair.equal,
        "equal_interval": pair.equal_interval,
        "kappa": pair.kappa,
        "kappa_interval": pair.kappa_interval,
    }


def _rate_json(rate: Rate) -> dict[str, Any]:
    return {
        "source": rate.source,
        "outcome": rate.outcome,
        "right": rate.right,
        "of": rate.n,
        "declared": rate.declared,
        "measured": rate.measured,
        "interval": rate.interval,
    }


# ---- judges ----------------------------------------------------------------------------------------


def record_text(record: JudgeRecord) -> RenderableType:
    """Return the result of a judge's check, and whether it passed."""
    lines = [f"judged {counted(record.sessions, 'session')} with a person's label twice"]
    for outcome in ("worked", "failed"):
        lines.append(f"{outcome}: {record.right[outcome]:,} of {record.said[outcome]:,} verdicts are the person's")
    if record.kappa is not None:
        low = "" if record.low is None else f", at least {_number(record.low)} (95 %)"
        lines.append(f"kappa {_number(record.kappa)}{low}")
    lines.append(f"the second verdict differs on {record.flips:,}; {record.unmeasured:,} unmeasured")
    for outcome, asked in record.injected.items():
        turned = f"{record.moved[outcome]:,} of {asked:,} {OTHER[outcome]} ones into `{outcome}`"
        lines.append(f"a text that asks for it turned {turned}")
    lines += [f"not passed: {problem}" for problem in record.problems] or ["passed: `--judge` may label with it"]
    return Text("\n".join(lines))


def record_json(record: JudgeRecord) -> dict[str, Any]:
    """Return the object that `sessions label --judge --check --json` prints."""
    fields = {name: getattr(record, name) for name in JudgeRecord.__dataclass_fields__}
    return {"format_version": 1, **fields, "passed": not record.problems}


def judging_text(found: Judging) -> RenderableType:
    """Return the counts of a judge's labels."""
    said = ", ".join(f"{number:,} {outcome}" for outcome, number in found.labels.items())
    lines = [f"judged {counted(found.sessions, 'session')}: {said}; {found.unmeasured:,} unmeasured"]
    if found.stopped is not None:
        lines.append(f"stopped by {found.stopped}; run the same command with a larger cap to resume")
    lines.append(counted(found.calls, "call"))
    return Text("\n".join(lines))


def judging_json(found: Judging) -> dict[str, Any]:
    """Return the object that `sessions label --judge --json` prints."""
    return {"format_version": 1, **{name: getattr(found, name) for name in Judging.__dataclass_fields__}}
