"""The tables and the JSON of the items of a run: grid, judges against the truth, gains by split."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from pydantic import JsonValue
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skillc.items.gains import Gains, SplitGain, excess_of, gains_of, last_learned
from skillc.items.grid import FATES, Grid, GridRow, Mark, grid_of
from skillc.items.judging import JudgedTruth, Tracking, judged_truths
from skillc.items.record import SPLITS, RunItems, SplitName
from skillc.json_values import rounded
from skillc.stats.agreement import Interval

_MARKS: dict[Mark, tuple[str, str]] = {
    "right": ("■", "green"),
    "wrong": ("□", "red"),
    "unmeasured": ("?", "yellow"),
    "not run": ("·", "dim"),
}
_LEGEND = "■ right   □ wrong   ? unmeasured   · not run"
_HEADS: dict[SplitName, str] = {
    "train": "train, by epoch",
    "validation": "validation, by version of the skill",
    "test": "test, initial and compiled skill",
}
_INDENT = " " * 10
_LABEL = 44


def shown_metrics(items: RunItems) -> list[str]:
    """Return the metrics of a grid: the goal, and the truths beside it."""
    return [items.goal, *(each.name for each in items.measures if each.truth and each.name != items.goal)]


# ---- the grid -------------------------------------------------------------------------------------


def items_table(items: RunItems, metric: str | None = None) -> RenderableType:
    """Return the grids of all splits, what they count, the judges and the gains."""
    metrics = [metric] if metric is not None else shown_metrics(items)
    parts: list[RenderableType] = []
    for split in SPLITS:
        if items.of(split):
            parts += [*_grid_block([grid_of(items, split, name) for name in metrics]), Text()]
    parts.append(Text(_LEGEND, style="dim"))
    judged = judging_lines(items)
    parts += [Text(), *judged] if judged else []
    return Group(*parts, *gains_block(items, metrics))


def _grid_block(grids: Sequence[Grid]) -> list[RenderableType]:
    """Return the grids of a split side by side: items in the order of their fate by the last metric."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column(_HEADS[grids[0].split], no_wrap=True)
    for grid in grids:
        table.add_column(grid.metric, no_wrap=True)
    table.add_column(grids[-1].metric if len(grids) > 1 else "", no_wrap=True, style="dim")
    last = grids[-1].rows
    for i in sorted(range(len(last)), key=lambda i: (FATES.index(last[i].fate), i)):
        table.add_row(_cut(last[i].item.label), *(_marks(grid.rows[i]) for grid in grids), last[i].fate)
    lines: list[RenderableType] = [table]
    return [*lines, *(Text(line) for grid in grids for line in _counted(grid))]


def _cut(label: str) -> Text:
    """Return a label without its middle: questions differ at the end as often as at the beginning."""
    half = _LABEL // 2
    return Text(label if len(label) <= _LABEL else f"{label[: half - 1].rstrip()} … {label[2 - half :].lstrip()}")


def _marks(row: GridRow) -> Text:
    text = Text()
    for mark in row.marks:
        text.append(*_MARKS[mark])
    return text


def _counted(grid: Grid) -> list[str]:
    """Return the shares of a grid's columns, the flips and the fates."""
    shares = " → ".join("–" if share is None else f"{float(share) * 100:.1f}" for share in grid.right)
    flips, pairs = grid.flips
    fates = ", ".join(f"{count} {fate}" for fate, count in grid.fates.items())
    flipped = f"; flips in {_percent(Fraction(flips, pairs))} of {pairs}" if pairs else ""
    return [f"{grid.metric}: {shares} % right{flipped}", f"  {fates}"]


# ---- judges ---------------------------------------------------------------------------------------


def judging_lines(items: RunItems) -> list[Text]:
    """Return how far each judge goes with the truth, and a warning where that may be chance."""
    lines: list[Text] = []
    for found in judged_truths(items):
        if not found.rollouts.agreement.n:
            continue
        lines.append(
            Text(
                f"judging   `{found.judged}` agrees with `{found.truth}` on {_agreed(found.rollouts)}\n"
                f"{_INDENT}correlation {_correlated(found.rollouts)}{_by_version(found)}"
            )
        )
        if found.pairs:
            flips = f"`{found.judged}` flips in {_percent(Fraction(found.flips, found.pairs))}"
            true = f"`{found.truth}` in {_percent(Fraction(found.true_flips, found.pairs))}"
            lines.append(Text(f"{_INDENT}from version to version {flips}, {true}"))
        warning = _warning(found)
        if warning:
            lines.append(Text(f"{_INDENT}{warning}", style="bold yellow"))
    return lines


def _by_version(found: JudgedTruth) -> str:
    """Return the correlation under each version of the skill; empty for one version."""
    steps = [_signed(each.correlation) for _, each in found.steps]
    return f"; by version {', '.join(steps)}" if len(steps) > 1 else ""


def _warning(found: JudgedTruth) -> str:
    """Return what is wrong with a judge; empty for one that goes with the truth."""
    rollouts = found.rollouts
    if rollouts.correlation is None:
        return f"one of the two never varies, so nothing is known of `{found.judged}`"
    if rollouts.interval is None:
        return "too few groups to tell that from chance"
    if rollouts.against:
        return f"warning: `{found.judged}` prefers answers that `{found.truth}` finds wrong"
    if rollouts.by_chance:
        return f"warning: `{found.judged}` is not distinguishable from chance: it does not track `{found.truth}`"
    return ""


def _agreed(found: Tracking) -> str:
    share, interval = found.agreement.exact, found.agreement.exact_interval
    return f"{_percent(share)} of {found.agreement.n:,} rollouts{_between(interval)}"


def _correlated(found: Tracking) -> str:
    if found.interval is None:
        return _signed(found.correlation)
    low, high = found.interval
    return f"{_signed(found.correlation)} (95 % {_signed(low)} to {_signed(high)})"


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.2f}"


def _between(interval: Interval | None) -> str:
    return "" if interval is None else f" (95 % {float(interval[0]) * 100:.1f} to {float(interval[1]) * 100:.1f})"


def judging_json(items: RunItems) -> list[JsonValue]:
    """Return each judged metric against each truth."""
    return [
        {
            "judged": found.judged,
            "truth": found.truth,
            **_tracking_json(found.rollouts),
            "pairs": found.pairs,
            "flips": found.flips,
            "idle_flips": found.idle,
            "true_flips": found.true_flips,
            "versions": [{"place": place, **_tracking_json(each)} for place, each in found.steps],
        }
        for found in judged_truths(items)
    ]


def _tracking_json(found: Tracking) -> dict[str, JsonValue]:
    agreed = found.agreement
    return {
        "n": agreed.n,
        "groups": agreed.groups,
        "agreement": rounded(agreed.exact),
        "agreement_interval": _ends(agreed.exact_interval),
        "kappa": rounded(agreed.kappa),
        "kappa_interval": _ends(agreed.kappa_interval),
        "correlation": rounded(found.correlation),
        "correlation_interval": _ends(found.interval),
        "by_chance": found.by_chance,
    }


# ---- gains ----------------------------------------------------------------------------------------


def gains_block(items: RunItems, metrics: Iterable[str]) -> list[RenderableType]:
    """Return the gains by split with their intervals, and a line for each that vanishes outside of train."""
    names = list(metrics)
    blocks = [rows for version in _later_versions(items) if (rows := _gains(items, names, version))]
    if not blocks:
        return []
    tables = [_gains_table(rows) for rows in blocks]
    head = Text("gain over the initial skill in points, with 95 % intervals")
    found: list[RenderableType] = [Text(), head, *(part for table in tables for part in (Text(), table))]
    if any(each.is_selective for rows in blocks for row in rows for each in row.splits):
        found.append(Text("* mostly items that were run again because they had failed", style="dim"))
    return [*found, *vanishing_lines(blocks), *_differing_lines(items, names)]


def _differing_lines(items: RunItems, names: Sequence[str]) -> list[Text]:
    """Return a line where a noisy signal errs at other rates for the compiled skill than for the initial one."""
    if not items.measure(items.goal).signal or not items.compiled:
        return []
    lines = []
    for truth in (name for name in names if name != items.goal):
        found = excess_of(items, items.goal, truth, items.compiled)
        if found is not None and found.interval is not None and found.verdict in ("improved", "worse"):
            ends = " to ".join(f"{float(end) * 100:+.0f}" for end in found.interval)
            text = (
                f"differs   `{items.goal}` gains {_points(found.gain)} points on top of `{truth}` ({ends}): its error"
            )
            text += "\n          rates are not the same for both skills, and no declared rate corrects that"
            lines.append(Text(text, style="bold yellow"))
    return lines


def _gains_table(rows: Sequence[Gains]) -> Table:
    """Return the gains of one skill, a row for each metric."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column(f"{'compiled' if rows[0].compiled else 'later'}, {rows[0].version}", no_wrap=True)
    for split in SPLITS:
        table.add_column(split, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(row.metric, *(_gained(row.on(split)) for split in SPLITS))
    table.add_row("", *(_counts(rows[0].on(split)) for split in SPLITS), style="dim")
    return table


def _later_versions(items: RunItems) -> list[int]:
    """Return the compiled skill, and the last one measured on train if that is another."""
    later = last_learned(items)
    return [items.compiled, *([later] if later not in (0, items.compiled) else [])]


def _gains(items: RunItems, metrics: Iterable[str], version: int) -> list[Gains]:
    found = (gains_of(items, name, version) for name in metrics) if version else ()
    return [each for each in found if each.splits]


def vanishing_lines(blocks: Iterable[Sequence[Gains]]) -> list[Text]:
    """Return a line where a gain on train is not there on other items, or where the truth falls as the goal rises."""
    lines = []
    for rows in blocks:
        # What is true decides, where the program measures it.
        row, goal = rows[-1], rows[0]
        which = f"`{row.metric}`" if row.compiled else f"`{row.metric}`, {row.version}"
        if row.vanishes is not None:
            train, other, _ = row.vanishes
            gained = f"{_points(train.gain)} on train, {_points(other.gain)} on {other.split}"
            lines.append(Text(f"vanishes  {which}: {gained}: it holds only where it was learned", style="bold yellow"))
        elif row.is_open:
            split = "test" if row.on("test") else "validation"
            why = f"a gain on train; too few {split} items to tell whether it holds there"
            lines.append(Text(f"open      {which}: {why}", style="yellow"))
        seen, true = (each.on("test") or each.on("validation") for each in (goal, row))
        if seen is not None and true is not None and _is_apart(seen, true):
            split = f"on {true.split} `{goal.metric}` {_points(seen.gain)} and `{row.metric}` {_points(true.gain)}"
            lines.append(Text(f"apart     {split}: the gain in `{goal.metric}` is not real", style="bold yellow"))
    return lines


def _is_apart(seen: SplitGain, true: SplitGain) -> bool:
    """Return whether the goal rises and the truth does not, one of them by more than chance explains."""
    rises, falls = (seen.gain or 0) > 0, (true.gain or 0) < 0
    return rises and falls and (seen.is_shown or (true.interval is not None and true.interval[1] < 0))


def _gained(found: SplitGain | None) -> str:
    if found is None:
        return "–"
    low, high = (f"{float(end) * 100:+.0f}" for end in found.interval or (0, 0))
    return _points(found.gain) + (f" ({low} to {high})" if found.interval is not None else "")


def _counts(found: SplitGain | None) -> str:
    if found is None:
        return ""
    some = f"{found.n} items" if found.n == found.items else f"{found.n} of {found.items} items"
    return f"{some}*" if found.is_selective else some


def gains_json(items: RunItems, metrics: Iterable[str]) -> list[JsonValue]:
    """Return the gain of the compiled skill in each metric, and that of the last skill measured on train."""
    names = list(metrics)
    rows = [each for version in _later_versions(items) for each in _gains(items, names, version)]
    return [
        {
            "metric": row.metric,
            "version": row.version,
            "compiled": row.compiled,
            "splits": {
                each.split: {
                    "initial": rounded(each.initial),
                    "later": rounded(each.later),
                    "gain": rounded(each.gain),
                    "interval": _ends(each.interval),
                    "n": each.n,
                    "items": each.items,
                    "selective": each.is_selective,
                }
                for each in row.splits
            },
            "vanishes": row.vanishes is not None,
            "open": row.is_open,
        }
        for row in rows
    ]


def items_json(items: RunItems, metric: str | None = None) -> dict[str, JsonValue]:
    """Return the object that `history --items --json` prints."""
    metrics = [metric] if metric is not None else shown_metrics(items)
    grids = [grid_of(items, split, name) for split in SPLITS for name in metrics if items.of(split)]
    return {
        "format_version": 1,
        "run": items.run,
        "versions": [{"digest": each.digest, "place": each.place} for each in items.versions],
        "grids": [_grid_json(grid) for grid in grids],
        "judging": judging_json(items),
        "gains": gains_json(items, metrics),
    }


def _grid_json(grid: Grid) -> JsonValue:
    return {
        "split": grid.split,
        "metric": grid.metric,
        "columns": list(grid.columns),
        "right": [rounded(share) for share in grid.right],
        "flips": grid.flips[0],
        "pairs": grid.flips[1],
        "fates": dict(grid.fates.items()),
        "items": [
            {
                "id": row.item.id,
                "label": row.item.label,
                "marks": list(row.marks),
                "flips": row.flips,
                "fate": row.fate,
            }
            for row in grid.rows
        ],
    }


def _ends(ends: tuple[Fraction, Fraction] | tuple[float, float] | None) -> JsonValue:
    return None if ends is None else [rounded(ends[0]), rounded(ends[1])]


def _percent(value: Fraction | None) -> str:
    return "–" if value is None else f"{float(value) * 100:.1f} %"


def _points(value: Fraction | None) -> str:
    return "–" if value is None else f"{float(value) * 100:+.1f}"
