"""The views of a run: each renders a frame into lines of a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Literal

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from skillc.dataclass import dataclass
from skillc.gates.units import tokens as token_count
from skillc.items.grid import Grid, GridRow, Mark, grid_of
from skillc.items.record import SplitName
from skillc.items.report import shown_metrics
from skillc.review.candidates import decision_facts, edit_values, gate_values
from skillc.review.confidence import SPLIT_WORDS, confidence_lines
from skillc.review.decisions import Bound, Decision
from skillc.review.saved import saved_words
from skillc.review.terminal import RESULT_STYLES
from skillc.review.times import wall_times
from skillc.review.words import SHORT, credit_words, draft_words
from skillc.run.progress import decision_line, one_line, usage_parts
from skillc.run.time_left import RunUsage, describe_seconds_left
from skillc.text import counted, cut
from skillc.watch.frame import STATE_STYLES, Evidence, Frame
from skillc.watch.plot import plot
from skillc.watch.widgets import (
    MARKS,
    fact,
    gates_of,
    in_flight_row,
    score_rows,
    stage_row,
)

ViewName = Literal["overview", "curve", "gates", "decisions", "examples", "spend"]
VIEWS: tuple[ViewName, ...] = ("overview", "curve", "gates", "decisions", "examples", "spend")
_VERDICTS = {"improved": "bold green", "worse": "bold red"}
_CELLS: Mapping[Mark, tuple[str, str]] = {
    "right": ("■", "green"),
    "wrong": ("□", "red"),
    "unmeasured": ("?", "yellow"),
    "not run": ("·", "dim"),
}
_EDIT_STYLES = {"good": "green", "bad": "red", "open": "yellow"}
_PARTS = {"old": "red", "new": "green", "same": ""}
_INDENT = (0, 0, 0, 17)
_SILENT = 30


@dataclass(frozen=True, slots=True)
class Choice:
    """What the user chose to see.

    Attributes:
        at: the selected decision, counted from 1; None follows the last one.
        top: the first line of what scrolls.
        split: of the grid.
    """

    view: ViewName = "overview"
    at: int | None = None
    top: int = 0
    split: SplitName = "validation"


def header(frame: Frame) -> RenderableType:
    """Return the first line: the skill, its run, and the state of it."""
    view = frame.view
    line = Table.grid(padding=(0, 1), expand=True)
    line.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    line.add_column(no_wrap=True, justify="right")
    name = Text(one_line(view.name), style="bold")
    name.append(f"  {one_line(view.program.name)}  run {view.run[:SHORT]}", "dim")
    line.add_row(name, _state(frame))
    return line


def _state(frame: Frame) -> Text:
    state, lock = frame.state, frame.view.lock
    words = Text(f"● {state}", style=STATE_STYLES[state])
    if lock is not None and state == "finished":
        words = Text(lock.verdict, style=_VERDICTS.get(lock.verdict, "yellow"))
        words.append(", delivered" if frame.view.delivered else ", not delivered", style="dim")
    elif state == "stopped":
        words.append(": the process is gone; the same command resumes", style="dim")
    elif state == "running" and frame.silent is not None and frame.silent >= _SILENT:
        words.append(f", no report for {frame.silent:.0f} s", style="dim")
    return words


def lines_of(frame: Frame, choice: Choice, width: int, height: int) -> list[RenderableType]:
    """Return the lines of the chosen view; all but the overview and the curve may be longer than `height`."""
    return _VIEWS[choice.view](frame, choice, width, height)


# ---- overview and curve ---------------------------------------------------------------------------


def _overview(frame: Frame, choice: Choice, width: int, height: int) -> list[RenderableType]:
    """Return the curve, and below it what the run does, the last decisions, spend and confidence."""
    above: list[RenderableType] = list(_stage(frame))
    below: list[RenderableType] = [*_gates_now(frame, choice, width)[:4], *_spend_rows(frame)]
    sure = [
        Text(f"  {one_line(line)}", style="dim") for line in confidence_lines(frame.view.lock, frame.view.plan.goal)
    ]
    decisions = _decision_rows(frame, choice)
    room = height - len(above) - len(below) - sum(_rows_of(line, width) for line in sure)
    shown = min(len(decisions), max(1, min(6, room - 9)))
    first = max(0, min(_at(frame, choice) - shown // 2 - 1, len(decisions) - shown))
    tall = min(22, room - shown - 1)
    curve = _plot(frame, choice, width, tall) if tall >= 8 else []
    return [*above, *curve, Text(), *decisions[first : first + shown], *below, *sure]


def _rows_of(line: Text, width: int) -> int:
    return -(-line.cell_len // max(1, width))


def _stage(frame: Frame) -> list[RenderableType]:
    if frame.state not in ("running", "replay") or not frame.live.status.stage:
        return []
    status, epochs = frame.live.status, frame.live.epochs
    epoch = f"epoch {status.epoch}" + (f"/{epochs}" if epochs is not None else "")
    return [stage_row(status, epoch), *score_rows(status)[:2]]


def _curve(frame: Frame, choice: Choice, width: int, height: int) -> list[RenderableType]:
    return [*_plot(frame, choice, width, max(8, height))]


def _plot(frame: Frame, choice: Choice, width: int, height: int) -> list[Text]:
    """Return the curve, with the candidates at work while their gates are open."""
    seen = frame.live.status.seen if frame.state in ("running", "replay") else ()
    open_ = [each.goal for each in seen if isinstance(each.goal, list)]
    bounds = [Bound(*(Fraction(str(end)) for end in ends)) for ends in open_]
    return plot(frame.curve, frame.view.plan.goal, width, height, at=choice.at, open_=bounds)


# ---- gates ----------------------------------------------------------------------------------------


def _at(frame: Frame, choice: Choice) -> int:
    """Return the selected decision, by default the last one; 0 without decisions."""
    last = len(frame.view.decisions)
    return last if choice.at is None else min(choice.at, last)


def _evidence(frame: Frame, choice: Choice) -> tuple[Evidence, Decision | None]:
    """Return the evidence to show, and the decision that it led to: None while the gates are open."""
    at = _at(frame, choice)
    if choice.at is None and frame.live.status.seen and frame.state in ("running", "replay"):
        return Evidence(frame.live.status.first_seen, frame.live.status.seen), None
    if at == 0:
        return Evidence(), None
    decision = frame.view.decisions[at - 1]
    found = frame.live.evidence.get(decision.number, Evidence())
    if decision.pool is not None:
        number = decision.pool[1]
        own = tuple(each for each in found.last if each.candidate == number)
        found = replace(found, last=own or found.last)
    return found, decision


def _gates_now(frame: Frame, choice: Choice, width: int) -> list[Text]:
    found, decision = _evidence(frame, choice)
    if decision is None or choice.at is not None:
        return gates_of(found.last, found.first, width)
    return []


def _gates(frame: Frame, choice: Choice, width: int, height: int) -> list[RenderableType]:
    """Return the gates of the candidates at work, or those of the selected decision."""
    found, decision = _evidence(frame, choice)
    lines: list[RenderableType] = []
    if decision is None:
        if not found.last:
            return [Text("no gate is open", style="dim")]
        lines += [Text("the gates of the candidates at work", style="bold"), *score_rows(frame.live.status)]
        return [*lines, Text(), *gates_of(found.last, found.first, width), Text(), *_gate_texts(frame)]
    lines += [Text.assemble((f"decision {decision.number}  ", "bold"), _line_of(frame, decision.number)), Text()]
    if found.last:
        lines += [
            Text("on the last evidence before the decision", style="dim"),
            *gates_of(found.last, found.first, width),
            Text(),
        ]
    for gate in decision.gates:
        value = gate_values(frame.view, gate)
        sign, style, word = MARKS.get(gate.truth, MARKS["unknown"])
        lines.append(
            Text.assemble((f"{sign} {word:<5} ", style), (one_line(gate.name), "bold"), f"  {one_line(value['text'])}")
        )
        lines += [Text(f"          {_drawn(row)}", no_wrap=True) for row in gate.drawn.split("\n") if row.strip()]
    if not decision.gates:
        lines.append(Text("no gate was evaluated", style="dim"))
    return lines


def _gate_texts(frame: Frame) -> list[Text]:
    return [
        Text.assemble((one_line(gate.name), "bold"), f"  {one_line(gate.text)}", style="dim")
        for gate in frame.view.plan.gates
    ]


def _drawn(row: str) -> str:
    """Return a row of a drawing with its columns."""
    from skillc.diagnostics.render import printable

    return printable(row)


# ---- decisions ------------------------------------------------------------------------------------


def _decision_rows(frame: Frame, choice: Choice) -> list[Text]:
    rows = []
    for i in range(1, len(frame.view.decisions) + 1):
        line = _line_of(frame, frame.view.decisions[i - 1].number)
        line = Text.assemble((">" if i == choice.at else " ", "bold"), line[1:], no_wrap=True, overflow="ellipsis")
        rows.append(line)
    return rows or [Text("  no decision yet", style="dim")]


def _line_of(frame: Frame, number: int) -> Text:
    """Return a decision in the line that a compile prints."""
    line = next((each for each in frame.view.lines if each.get("decision") == number), None)
    if line is None or not {"place", "result"} <= line.keys():
        return Text(f"  decision {number}")
    return decision_line(line)


def _decisions(frame: Frame, choice: Choice, width: int, height: int) -> list[RenderableType]:
    """Return the decisions, and below them all that is known of the selected one."""
    rows = _decision_rows(frame, replace(choice, at=_at(frame, choice) or None))
    at = _at(frame, choice)
    most = max(3, height // 3)
    first = max(0, min(at - most // 2 - 1, len(rows) - most))
    shown: list[RenderableType] = [*rows[first : first + most]]
    if at == 0:
        return shown
    return [*shown, Text("─" * width, style="dim"), *_detail(frame, frame.view.decisions[at - 1])]


def _detail(frame: Frame, decision: Decision) -> list[RenderableType]:
    style = RESULT_STYLES.get(decision.result, "yellow")
    head = Text.assemble((f"{decision.number}  {one_line(decision.place)}  ", "bold"), (decision.result, style))
    lines: list[RenderableType] = [head.append(f"  {one_line(decision.brief or decision.reason)}")]
    lines += [
        Text.assemble((f"  {name:<22} ", "dim"), one_line(text))
        for name, text in decision_facts(decision, frame.view.plan.goal)
    ]
    marks = [(gate, *MARKS.get(gate.truth, MARKS["unknown"])) for gate in decision.gates]
    if marks:
        parts = [(f"{sign} {one_line(gate.name)}  ", style) for gate, sign, style, _ in marks]
        lines.append(Text.assemble(("  gates                  ", "dim"), *parts))
    lines += [Text(f"  a draft of {draft_words(each)}") for each in decision.drafts]
    parent = frame.view.skills.get(decision.incumbent)
    for edit in (*decision.edits, *decision.others):
        value = edit_values(edit, parent)
        line = Text.assemble("  ", (f"{value['fate'] or 'proposed':<14} ", _EDIT_STYLES.get(value["style"], "")))
        lines.append(line.append(one_line(str(value["head"])), style="bold"))
        if value["parts"]:
            text = Text()
            for kind, part in value["parts"]:
                text.append(one_line(part) + " ", style=_PARTS.get(kind, ""))
            lines.append(Padding(text, _INDENT))
        lines += [Padding(Text(one_line(note), style="dim"), _INDENT) for note in value["notes"]]
    if decision.guidance:
        lines.append(Text.assemble(("  new guidance           ", "dim"), one_line(cut(decision.guidance, 600))))
    shared = credit_words("changes on validation that belong to no single edit", decision.shared)
    return [*lines, *([Text(f"  {one_line(shared)}", style="dim")] if shared else [])]


# ---- examples -------------------------------------------------------------------------------------


def _examples(frame: Frame, choice: Choice, width: int, height: int) -> list[RenderableType]:
    """Return the grid of a split, the rows that changed most first."""
    items = frame.view.items
    if items is None or not items.items:
        return [Text("no example was recorded so far", style="dim")]
    lines: list[RenderableType] = []
    for metric in shown_metrics(items):
        grid = grid_of(items, choice.split, metric)
        if lines:
            lines.append(Text())
        lines += _grid(grid, width)
    return lines


def _grid(grid: Grid, width: int) -> list[RenderableType]:
    flips, pairs = grid.flips
    fates = ", ".join(f"{count} {fate}" for fate, count in grid.fates.items())
    head = Text.assemble((f"{SPLIT_WORDS[grid.split]}: {one_line(grid.metric)}", "bold"), f"  {fates}")
    if pairs:
        head.append(f"; {counted(flips, 'flip')} in {pairs:,} pairs of neighbouring columns")
    if not grid.rows:
        return [head.append("  nothing was measured so far", style="dim")]
    most = max(1, width - 52)
    shares = ["–" if share is None else f"{float(share) * 100:.0f}" for share in grid.right]
    # The first and the last columns, where not all have room.
    kept = len(grid.columns) if len(grid.columns) <= most else most
    columns = [*range(len(grid.columns))][-kept:]
    rows = sorted(grid.rows, key=lambda row: -row.flips)
    right = Text(f"{'% right':<8} ", style="dim").append(cut(" → ".join(shares[i] for i in columns), width - 12))
    return [head, right, *(_grid_row(row, columns) for row in rows)]


def _grid_row(row: GridRow, columns: Sequence[int]) -> Text:
    line = Text(no_wrap=True, overflow="ellipsis")
    for i in columns:
        line.append(*_CELLS[row.marks[i]])
    line.append(f"  {row.flips} ", style="bold" if row.flips else "dim")
    line.append(f"{row.fate:<14} ", style="dim")
    line.append(f"{one_line(row.item.id)}  ").append(one_line(row.item.label), style="dim")
    return line


# ---- spend ----------------------------------------------------------------------------------------


def _spend_rows(frame: Frame) -> list[Text]:
    usage, live = frame.usage, frame.live
    rows = [] if usage is None else [fact("spent", ", ".join(usage_parts(usage, frame.view.plan.budget)))]
    if frame.state == "running":
        calls = in_flight_row(live.in_flight)
        rows += [calls] if calls is not None else []
        rows += [fact("left", describe_seconds_left(live.left).removesuffix(" left"))] if live.left is not None else []
    return rows


def _spend(frame: Frame, choice: Choice, width: int, height: int) -> list[RenderableType]:
    """Return spend by role and stage, the wall time by stage, and what was saved."""
    lines: list[RenderableType] = [*_spend_rows(frame), Text()]
    lines.append(_table(("role", "calls", "tokens", "cost"), [_role_row(*each) for each in frame.roles.items()]))
    spent = frame.view.spent
    if spent and frame.state != "replay":
        rows = [
            [
                one_line(each.role),
                one_line(each.stage),
                *_usage(RunUsage(each.calls, each.prompt + each.completion, each.cost)),
            ]
            for each in spent
        ]
        heads = ("role", "stage", "calls", "tokens", "cost")
        lines += [Text(), _table(heads, rows, texts=2)]
    times = [[one_line(stage), *rest] for stage, *rest in wall_times(frame.view)]
    lines += [Text(), _table(("stage", "wall time", "share"), times)] if times else []
    if frame.state != "running":
        lines += [Text(), *(fact("saved", one_line(line)) for line in saved_words(frame.view))]
    lines += [fact("note", one_line(note)) for note in frame.live.notes]
    return lines


def _role_row(role: str, usage: RunUsage) -> list[str]:
    return [one_line(role), *_usage(usage)]


def _usage(usage: RunUsage) -> list[str]:
    cost = "unknown" if usage.cost is None else f"${usage.cost / 1e9:,.4f}"
    return [f"{usage.calls:,}", token_count(usage.tokens), cost]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int = 1) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for i, head in enumerate(heads):
        table.add_column(head, justify="left" if i < texts else "right", no_wrap=True, overflow="ellipsis")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


_VIEWS: Mapping[ViewName, Callable[[Frame, Choice, int, int], list[RenderableType]]] = {
    "overview": _overview,
    "curve": _curve,
    "gates": _gates,
    "decisions": _decisions,
    "examples": _examples,
    "spend": _spend,
}
