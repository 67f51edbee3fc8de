"""`python -m benchmarks.skillopt_shape`: what skillc sends for a run of the shape of SkillOpt's largest published one.

Writes README.md beside this file. `--quick` runs one world and one seed and writes nothing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import mean

from benchmarks.search.world import Settings
from benchmarks.skillopt_shape.run import BATCH_FIRST, STRICT, TEST, VALIDATION, Job, Ran, run

SKILLOPT = 14_684
TARGET = SKILLOPT // 2
SEEDS = range(1, 11)
BOTH = f"{STRICT}\n{BATCH_FIRST}"

# By name: share of slips, share of examples that no skill gets right.
WORLDS: Mapping[str, tuple[float, float]] = {
    "repeats itself; 15 % hard": (0.0, 0.15),
    "repeats itself; 30 % hard": (0.0, 0.30),
    "turns 2 % of its answers with any change of the text; 15 % hard": (0.02, 0.15),
}
# By name: gates and settings.
WAYS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "strict gate, batch gate": (BOTH, ()),
    "the same, `replay = 10`": (BOTH, ("optimize.replay=10",)),
    "the same, `patience = 0`": (BOTH, ("budget.patience=0",)),
    "strict gate alone": (STRICT, ()),
}
# Columns of the page: stages of the ledger.
STAGES: Mapping[str, tuple[str, ...]] = {
    "baseline": ("baseline",),
    "rollout": ("rollout",),
    "screen": ("screen",),
    "gates": ("gate", "validation"),
    "slow update": ("slow update",),
    "final test": ("test",),
}


def job(world: str, way: str, seed: int) -> Job:
    """One run of the page."""
    (slip, hard), (gates, settings) = WORLDS[world], WAYS[way]
    return Job(Settings(train=400, validation=VALIDATION + TEST, slip=slip), hard, seed, gates, settings)


def page(runs: Mapping[tuple[str, str], Sequence[Ran]], seconds: float) -> str:
    """The whole page as markdown."""
    met = {
        name: "; ".join(
            f"{way} ({world})" for (world, way), found in runs.items() if of(r.total for r in found) <= TARGET
        )
        or "nowhere"
        for name, of in (("on average", mean), ("in every seed", max))
    }
    some = next(iter(runs.values()))
    first = next(iter(WAYS))
    default = {world: mean(ran.total for ran in found) for (world, way), found in runs.items() if way == first}
    usual = "; ".join(f"{total:,.0f} ({world})" for world, total in default.items())
    parts = [
        f"""
# The shape of SkillOpt's largest published run

400 training, 200 validation and 1,400 test examples, 4 epochs, batch 40, minibatch 8, `cosine(4, 2)`, slow update and
meta skill on: SkillOpt sends {SKILLOPT:,} calls, of which 8,200 are gates, 200 a last validation, 4,200 tests of three
skills, 1,600 training rollouts, 120 for slow updates and 364 of the optimizer. The target is half, {TARGET:,}, the
final test of two skills included. `python -m benchmarks.skillopt_shape` runs whole compiles, counts what the ledger
charged, and makes this page; {len(some)} seeds, {seconds:.0f} s.

Target and optimizer are scripted (`benchmarks/search`, `benchmarks/ablation/optimizer.py`). Part of the examples is
answered wrong whatever the skill says, so that the runs go on to the end of the fourth epoch as SkillOpt's did. The
strict gate is `{STRICT.split("= ", 1)[1]}`; the batch gate in front, on the training batch and the failures that it
takes in again, is `{BATCH_FIRST.split("= ", 1)[1]}`.

At most {TARGET:,} calls:

- on average: {met["on average"]};
- in every seed: {met["in every seed"]}.

With skillc's defaults: {usual}.
"""
    ]
    for world in dict.fromkeys(world for world, _ in runs):
        of_world = {way: found for (where, way), found in runs.items() if where == world}
        parts.append(f"## The target {world}\n\n{_calls(of_world)}\n\n{_decisions(of_world)}")
    parts.append(
        """
## What decides the cost

- An accept costs a whole validation, and a batch of 40 that was sent ahead for the skill that it replaced
  (`speculate`). A reject by the batch gate costs a wave or two, one by the strict gate as many waves as it takes until
  the candidate can no longer win.
- Failures go first. Where a target repeats itself, a worthless candidate leaves all of them wrong, and the gate knows
  when they are through. Where a share of all answers turns with any change of the text, a worthless candidate wins a
  few failures back by chance, and has to lose as many of the rest before it is rejected. That is what the worlds differ
  in.
- `replay` brings up to 20 earlier failures into each batch; here, in the long tail of a run that has learnt all there
  is, they are the examples that nothing helps. They are paid for in reflections, in the screen and in the batch gate.
- SkillOpt has no patience. By default skillc ends a run after an epoch of steps without an accept (10 here), which
  leaves the tail out; `patience = 0` runs it.
- The comparison with no skill on validation and test (1,600 calls) is skillc's own extra and not counted.
"""
    )
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _calls(runs: Mapping[str, Sequence[Ran]]) -> str:
    rows = [("gates and settings", *STAGES, "optimizer", "**all**", "lowest to highest", "of SkillOpt's")]
    rows.append(("---",) * len(rows[0]))
    for way, found in runs.items():
        figures = [_target(found, stages) for stages in STAGES.values()]
        asked = mean(sum(n for (role, _), n in ran.charged.items() if role == "optimizer") for ran in found)
        totals = [ran.total for ran in found]
        rows.append(
            (
                way,
                *(f"{figure:,.0f}" for figure in figures),
                f"{asked:,.0f}",
                f"**{mean(totals):,.0f}**",
                f"{min(totals):,} to {max(totals):,}",
                f"{mean(totals) / SKILLOPT:.0%}",
            )
        )
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _target(found: Sequence[Ran], stages: Sequence[str]) -> float:
    return mean(sum(ran.charged.get(("target", stage), 0) for stage in stages) for ran in found)


def _decisions(runs: Mapping[str, Sequence[Ran]]) -> str:
    heads = ("gates and settings", "steps", "accepted", "rejected: batch gate / strict gate", "no candidate")
    rows = [(*heads, "speculated / thrown away", "validation", "share of the attainable gain")]
    rows.append(("---",) * len(rows[0]))
    for way, found in runs.items():
        before, after = (mean(ran.validation[i] for ran in found) * 100 for i in (0, 1))
        rejects = [mean(ran.blamed.get(gate, 0) for ran in found) for gate in ("cures", "better")]
        rows.append(
            (
                way,
                f"{mean(ran.steps for ran in found):.0f}",
                f"{mean(ran.decisions.get('accept', 0) for ran in found):.1f}",
                f"{rejects[0]:.1f} / {rejects[1]:.1f}",
                f"{mean(ran.decisions.get('empty', 0) for ran in found):.1f}",
                f"{mean(ran.early for ran in found):,.0f} / {mean(ran.wasted for ran in found):,.0f}",
                f"{before:.0f} → {after:.0f}",
                f"{mean(ran.gain for ran in found):.2f}",
            )
        )
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    began = time.perf_counter()
    worlds, seeds = (list(WORLDS)[:1], SEEDS[:1]) if options.quick else (list(WORLDS), SEEDS)
    cells = [(world, way, seed) for world in worlds for way in WAYS for seed in seeds]
    runs: dict[tuple[str, str], list[Ran]] = {}
    with ProcessPoolExecutor(options.processes) as pool:
        for (world, way, _), ran in zip(cells, pool.map(run, [job(*cell) for cell in cells]), strict=True):
            runs.setdefault((world, way), []).append(ran)
    text = page(runs, time.perf_counter() - began)
    print(text)
    if not options.quick:
        Path(__file__).with_name("README.md").write_text(text)


if __name__ == "__main__":
    main()
