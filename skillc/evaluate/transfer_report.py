"""The transfer of a gain as a matrix on a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from skillc.diagnostics.render import printable
from skillc.evaluate.as_json import duel_json
from skillc.evaluate.reporting import bare_table, gain_range, gain_text, interval
from skillc.evaluate.transfer import Transfer, TransferCell
from skillc.json_values import rounded
from skillc.review.confidence import SPLIT_WORDS
from skillc.stats.share import Share


def transfer_parts(transfers: Sequence[Transfer]) -> list[RenderableType]:
    """Return a table for each split, and the reasons why a share is not defined."""
    parts: list[RenderableType] = []
    for transfer in transfers:
        parts += [Text(), _table(transfer, named=len(transfers) > 1), *_lines(transfer)]
    return parts


def _table(transfer: Transfer, *, named: bool) -> Table:
    rows = bare_table()
    rows.add_column(f"transfer, {transfer.split}" if named else "transfer", overflow="fold", min_width=14)
    for name in ("gain", "interval", "survives", "95 %"):
        rows.add_column(name, justify="right", no_wrap=True)
    places = len({cell.evaluation.job.where for cell in transfer.cells}) > 1
    models = len({cell.model.label for cell in transfer.cells}) > 1
    heading = ""
    for cell in transfer.cells:
        where = printable(cell.evaluation.job.where)
        if places and models and where != heading:
            rows.add_row(Text(where, style="bold"))
            heading = where
        gain = cell.gain.verdict if cell.gain is not None else None
        goal = cell.evaluation.job.plan.goal
        gained = "–" if gain is None else gain_text(gain.gain, goal)
        ends = "–" if gain is None else gain_range(gain.interval, goal)
        name = f"  {cell.model.label}" if heading else cell.model.label if models else where
        rows.add_row(Text(name), gained, ends, *_share(cell))
    return rows


def _share(cell: TransferCell) -> tuple[str, str]:
    if cell.share is None:
        return "(original)", ""
    if cell.share.value is None or cell.share.interval is None:
        return "not defined", ""
    low, high = cell.share.interval
    return f"{float(cell.share.value) * 100:.0f} %", f"{low * 100:.0f} – {high * 100:.0f}"


def _lines(transfer: Transfer) -> list[RenderableType]:
    """Return what the shares are shares of, and why some are not defined."""
    if transfer.original is None:
        cell = transfer.cells[0]
        made_with = cell.evaluation.made_with
        model = f"`{made_with.model}`" if made_with is not None else "its own model"
        return [Text(f"no share is defined: the compiled skill was made with {model}, which is not scored here")]
    reasons = {cell.share.reason: None for cell in transfer.cells if cell.share is not None and cell.share.reason}
    lines = [f"not defined: {reason}" for reason in reasons]
    if any(cell.share is not None and cell.share.value is not None for cell in transfer.cells):
        words = SPLIT_WORDS[transfer.split]  # type: ignore[index]
        lines.append(f"survives: the share of the original gain on {words}; the intervals hold for each row alone")
        if transfer.split != "test":
            lines.append("the original gain is too high there, so that the shares are too low; use `--split test`")
    return [Text(line) for line in lines]


def transfer_json(transfer: Transfer) -> JsonValue:
    """Return the matrix: a cell for each place and model."""
    return {"split": transfer.split, "cells": [_cell(cell) for cell in transfer.cells]}


def _cell(cell: TransferCell) -> JsonValue:
    verdict, job = cell.gain.verdict if cell.gain is not None else None, cell.evaluation.job
    return {
        "place": job.place,
        "where": job.where or None,
        "program": str(job.planned.path),
        "rollout": job.plan.task.rollout.kind,
        "role": cell.model.model.role,
        "model": cell.model.model.model,
        "original": cell.share is None,
        "gain": rounded(verdict.gain) if verdict is not None else None,
        "interval": interval(verdict.interval) if verdict is not None else None,
        "p": rounded(verdict.p) if verdict is not None else None,
        "n": verdict.n if verdict is not None else 0,
        **(duel_json(cell.gain.duel) if cell.gain is not None else {}),
        "survives": None if cell.share is None else share_json(cell.share),
    }


def share_json(share: Share) -> JsonValue:
    """Return a share with its interval, or why it is not defined."""
    return {"share": rounded(share.value), "interval": interval(share.interval), "reason": share.reason or None}
