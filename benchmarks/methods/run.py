"""skillc's own method and its peers on the tickets example, at equal caps on calls, with the offline rulebook.

    python benchmarks/methods/run.py [--seeds 3] [--calls 1864]

Each row is the mean over data seeds; each seed splits the tickets anew. Needs `pip install 'skillc[gepa,miprov2]'`; a
method whose package is missing is left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from skillc.frontend import estimate, plan_file
from skillc.models.client import Client
from skillc.optimize.host import SilentObserver
from skillc.pipeline.compile import Compiled, Job, compile_job

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "tickets" / "tickets.skill"
NEEDS = {"gepa": "gepa", "miprov2": "optuna"}
METHODS = ("skillc", "gepa", "miprov2", "one_shot")
# Peers are given the rollouts of this many steps, a batch and a validation each; skillc ends at the cap on calls.
STEPS, EPOCHS = 8, 4


@dataclass(frozen=True, slots=True)
class Row:
    """One compile."""

    calls: int
    asked: int
    validation: tuple[float, float]
    test: tuple[float, float] | None
    decisions: int
    accepted: int
    blamed: str
    verdict: str
    stopped: str
    seconds: float


def one(method: str, seed: int, calls: int, *, strict: bool) -> Row:
    """A compile in this process; `strict` leaves all gates but `better` out."""
    rounds = f"budget.epochs={EPOCHS}" if method == "skillc" else f"budget.steps={STEPS}"
    settings = [f"optimize.method={method}", f"data.seed={seed}", rounds, f"budget.calls={calls}"]
    with tempfile.TemporaryDirectory() as folder:
        planned = plan_file(PROGRAM, settings=settings, runnable=True)
        if strict:
            gates = tuple(gate for gate in planned.plan.gates if gate.name == "better")
            planned = type(planned)(
                planned.path, planned.checked, planned.plan.model_copy(update={"gates": gates}), planned.diagnostics
            )
        began, watch = time.monotonic(), SilentObserver()
        with Client(planned.plan) as client:
            job = Job(planned, estimate(planned), Path(folder) / "skill", Path(folder) / "home")
            done = compile_job(job, watch, client)
    return _row(done, watch, time.monotonic() - began)


def _row(done: Compiled, watch: SilentObserver, seconds: float) -> Row:
    lines = done.spent["charged"]["lines"]  # type: ignore[index,call-overload]
    searched = [line for line in lines if line["stage"] not in ("baseline", "test", "no skill")]  # type: ignore[index,union-attr]
    tested, validation = done.tested.test, done.tested.validation
    blames = Counter(str(d.get("blame") or d["reason"]) for d in watch.decisions if d["result"] != "accept")
    return Row(
        calls=sum(line["calls"] for line in searched),  # type: ignore[misc,call-overload]
        asked=sum(line["calls"] for line in searched if line["role"] == "optimizer"),  # type: ignore[misc,call-overload]
        validation=(float(validation["initial"].mean or 0), float(validation["best"].mean or 0)),
        test=(float(tested["initial"].mean or 0), float(tested["best"].mean or 0)) if tested["best"].n else None,
        decisions=done.trained.state.decisions,
        accepted=done.trained.state.accepted,
        blamed=", ".join(name for name, _ in blames.most_common(2)),
        verdict=done.lock.verdict,
        stopped=done.trained.stopped,
        seconds=seconds,
    )


def table(rows: dict[str, list[Row]]) -> Iterator[str]:
    """The means, as markdown."""
    yield "| method | calls of the search | of these optimizer | validation | gain on test | accepted | verdicts | s |"
    yield "|---|---|---|---|---|---|---|---|"
    for method, found in rows.items():
        gains = [(row.test[1] - row.test[0]) * 100 if row.test else 0.0 for row in found]
        verdicts = ", ".join(f"{count} {word}" for word, count in Counter(row.verdict for row in found).most_common())
        before, after = (statistics.mean(row.validation[i] for row in found) * 100 for i in (0, 1))
        spread = f" ({min(gains):+.1f} to {max(gains):+.1f})" if len(gains) > 1 else ""
        accepted = f"{sum(row.accepted for row in found)} of {sum(row.decisions for row in found)}"
        yield (
            f"| {method} | {statistics.mean(row.calls for row in found):,.0f} "
            f"| {statistics.mean(row.asked for row in found):,.0f} | {before:.1f} → {after:.1f} "
            f"| {statistics.mean(gains):+.1f}{spread} | {accepted} | {verdicts} "
            f"| {statistics.mean(row.seconds for row in found):.0f} |"
        )
    for method, found in rows.items():
        blamed = sorted({row.blamed for row in found if row.blamed})
        stopped = sorted({row.stopped for row in found})
        yield f"\n{method}: stopped by {', '.join(stopped)}; held back by {'; '.join(blamed) or 'nothing'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=1864)
    given = parser.parse_args()
    there = [m for m in METHODS if m not in NEEDS or importlib.util.find_spec(NEEDS[m]) is not None]
    for strict, title in ((False, "all gates of the program"), (True, "the gate `better` alone")):
        rows = {
            method: [one(method, seed, given.calls, strict=strict) for seed in range(given.seeds)] for method in there
        }
        print(f"\n## {title}, at most {given.calls:,} calls\n")
        print("\n".join(table(rows)), flush=True)


if __name__ == "__main__":
    main()
