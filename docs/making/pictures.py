"""`python -m docs.making.pictures`: draw the pictures of the site from a compile of examples/tickets.

`label.svg` is the view of `skillc sessions label` with sessions of examples/sessions.
`compile.svg` is what a terminal shows at the end; `gain.svg` is validation by decision, from the history,
and the held-out test, from the lock. Both are redrawn by hand (`make pictures`) when the example or the output changes.
"""

from __future__ import annotations

import asyncio
import io
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "skillc"
from matplotlib import pyplot  # noqa: E402  # the backend is chosen before

from skillc.labels.terminal import LabelApp  # noqa: E402
from skillc.sessions.importing import import_sessions  # noqa: E402
from skillc.sessions.labels import Label, add_labels  # noqa: E402
from skillc.sessions.queue import queue_of  # noqa: E402
from skillc.sessions.store import SessionStore  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "pictures"
SESSIONS = ROOT / "examples" / "sessions"
PROGRAM = ROOT / "examples" / "tickets" / "tickets.skill"
_COLUMNS = 116
_INCUMBENT, _ACCEPTED, _REJECTED, _TEST = "#3f51b5", "#2e7d32", "#9e9e9e", "#c62828"
# rich names a font on another host; the reader's own monospaced font is as good.
_FONT_FACE = re.compile(r"@font-face\s*\{.*?\}", re.DOTALL)


def main() -> int:
    """Compile the example and write the pictures."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "label.svg").write_text(asyncio.run(label_view()), encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        printed = subprocess.run(
            [sys.executable, "-m", "skillc", "compile", str(PROGRAM), "--offline", "--output", folder],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"FORCE_COLOR": "1", "COLUMNS": str(_COLUMNS), "TERM": "xterm-256color", "PATH": "/usr/bin:/bin"},
            text=True,
            check=True,
        ).stdout
        (lock,) = Path(folder).glob("*.lock")
        (history,) = Path(folder).glob("*.history.jsonl")
        found = json.loads(lock.read_text(encoding="utf-8"))
        decisions = [json.loads(line) for line in history.read_text(encoding="utf-8").splitlines()]
    shown = re.sub(r"\S*/(route-tickets/SKILL\.md)", r"skills/\1", printed)
    (FOLDER / "compile.svg").write_text(terminal(shown), encoding="utf-8")
    (FOLDER / "gain.svg").write_text(gain(decisions, found), encoding="utf-8")
    return 0


async def label_view() -> str:
    """Draw the view for labels after one decision, as SVG."""
    with tempfile.TemporaryDirectory() as folder, SessionStore(Path(folder) / "s.db", create=True) as store:
        import_sessions([SESSIONS / "transcripts", SESSIONS / "routing.jsonl"], store, workers=1)
        key = "claude-code:version-resumed"
        signals = (("tests", "worked", "1 passed"), ("next_words", "unclear", "asks for more"))
        add_labels(store, [Label(key, "release", f"signal:{name}", word, 0.8, why) for name, word, why in signals])
        app = LabelApp(store, queue_of(store, "ada"), ["release", "route-tickets"], "ada")
        async with app.run_test(size=(104, 30)) as pilot:
            await pilot.pause(2)
            await pilot.press("w")
            await pilot.pause(0.2)
            drawn = app.export_screenshot()
    return re.sub(r"terminal-\d+", "terminal", _FONT_FACE.sub("", drawn))


def terminal(printed: str) -> str:
    """Render what a command printed, colours included, as SVG."""
    console = Console(record=True, width=_COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text("$ skillc compile tickets.skill --offline", style="bold"))
    console.print(Text.from_ansi(printed.strip("\n")))
    return _FONT_FACE.sub("", console.export_svg(title="skillc", theme=MONOKAI, unique_id="skillc"))


def gain(decisions: Sequence[dict[str, Any]], lock: dict[str, Any]) -> str:
    """Draw the incumbent's validation mean by decision, each candidate's bounds, and the held-out test, as SVG."""
    figure, axes = pyplot.subplots(figsize=(8.4, 3.8))
    level = float(lock["validation"]["initial"]["mean"])
    line: list[tuple[int, float]] = [(0, level)]
    for number, record in enumerate(decisions, 1):
        candidate = (record.get("goal") or {}).get("candidate")
        if record["result"] == "accept":
            level = float(candidate[0] if isinstance(candidate, list) else candidate)
            axes.plot(number, level * 100, "o", color=_ACCEPTED, zorder=3)
        elif candidate is not None:
            low, high = candidate if isinstance(candidate, list) else (candidate, candidate)
            axes.vlines(number, float(low) * 100, float(high) * 100, color=_REJECTED, linewidth=2)
        line.append((number, level))
    x, y = zip(*line, strict=True)
    axes.step(x, [each * 100 for each in y], where="post", color=_INCUMBENT, label="incumbent, validation")
    axes.plot([], [], "o", color=_ACCEPTED, label="accepted candidate")
    axes.vlines([], [], [], color=_REJECTED, linewidth=2, label="rejected candidate: what it could still reach")
    _held_out(axes, lock["test"], x[-1])
    axes.set(xlabel="decision", ylabel="right answers, %", ylim=(0, 100), xlim=(-0.5, x[-1] + 3.5))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, frameon=False, fontsize=8)
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg", bbox_inches="tight", metadata={"Date": None})
    return drawn.getvalue()


def _held_out(axes: Any, test: dict[str, Any], last: int) -> None:
    """Mark initial and compiled skill on the test split, with the interval of the gain around the latter."""
    initial, best = float(test["initial"]["mean"]) * 100, float(test["best"]["mean"]) * 100
    low, high = (initial + float(each) * 100 for each in test["interval"])
    at = last + 1.5
    axes.plot(at, initial, "D", color=_TEST, fillstyle="none")
    axes.errorbar(
        at, best, yerr=[[best - low], [high - best]], fmt="D", color=_TEST, capsize=3, label="held-out test, 95 %"
    )
    axes.annotate("initial", (at, initial), xytext=(8, -3), textcoords="offset points", fontsize=8, color=_TEST)
    axes.annotate("compiled", (at, best), xytext=(8, -3), textcoords="offset points", fontsize=8, color=_TEST)


if __name__ == "__main__":
    sys.exit(main())
