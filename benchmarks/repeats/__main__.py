"""Repeated compiles of identical inputs: how often the verdict differs. Writes README.md beside this file.

    python -m benchmarks.repeats [compiles]

Every compile has the same program, examples, split and seeds. The target answers each prompt and example by chance, as
with a temperature, and it and the optimizer throw their coins anew in each compile. Baseline, steps, gates, final test
and verdict are skillc's own.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "honest"))

from binomial import interval
from compiles import CONFIDENT, STRICT, Size, compile_in, engine_of, plan_of
from worlds import World, dataset, proposer

from skillc.optimize.host import SilentObserver
from skillc.optimize.null_arm import NullArm, null_arm_of
from skillc.outcomes import Example
from skillc.plan.initial import initial_document

PAGE = Path(__file__).resolve().with_name("README.md")
WORKERS = 2
SIZE = Size(train=48, validation=100, test=400, steps=10)
MOST = 0.05
_NULL_ARMS = 20


@dataclass(frozen=True, slots=True)
class Rethrown(World):
    """A noisy world whose coins differ from throw to throw, with the same examples."""

    throw: int = 0

    def right(self, text: str | None, example: Example, sample: int) -> bool:
        """Whether the target answers an example rightly under a skill's text."""
        return World.right(self, f"{self.throw} {text}", example, sample)


@dataclass(frozen=True, slots=True)
class Case:
    """A world, and how often the optimizer proposes the rule that helps."""

    name: str
    worth: float
    helpful: float
    held: bool = True


CASES = (
    Case("no effect", 0.0, 0.0),
    Case("strong effect, 25 points", 0.25, 0.5),
    Case("marginal effect, 8 points", 0.08, 0.5, held=False),
)
GATES = (("strict", STRICT), ("confidence", CONFIDENT))


@dataclass(frozen=True, slots=True)
class Summary:
    """The verdict of one compile, and its reported gain."""

    verdict: str
    gain: float
    accepted: int


def one(case: Case, gate: str, size: Size, throw: int) -> Summary:
    """Compile once; `throw` numbers the coins."""
    world = Rethrown(noisy=True, share=0.55, worth=case.worth, throw=throw)
    found = compile_in(world, proposer(("repeat", throw), helpful=case.helpful), name="repeats", size=size, gate=gate)
    return Summary(found.verdict.verdict, found.gain, found.accepted)


def null_arm(case: Case, gate: str, size: Size, throw: int) -> NullArm:
    """Measure the initial skill twice and put it through the gate against itself."""
    world = Rethrown(noisy=True, share=0.55, worth=case.worth, throw=throw)
    plan = plan_of(gate)
    data = dataset(world, (size.train, size.validation, size.test), "repeats")
    engine = engine_of(world, data, proposer(0), plan, SilentObserver())
    initial = initial_document(plan)

    async def measured() -> None:
        for sample in (0, 1):
            await engine.rollouts.measure(initial, data.validation, stage="baseline", sample=sample)

    asyncio.run(measured())
    found = null_arm_of(engine, initial)
    assert found is not None
    return found


def differing(found: list[Summary]) -> tuple[str, int]:
    """The verdict of most compiles, and how many have another one."""
    ((verdict, count),) = Counter(each.verdict for each in found).most_common(1)
    return verdict, len(found) - count


def page(count: int) -> str:
    """Run all compiles and return the page."""
    rows, nulls = [], []
    with ProcessPoolExecutor(WORKERS) as pool:
        for label, gate in GATES:
            arms = list(pool.map(partial(null_arm, CASES[0], gate, SIZE), range(_NULL_ARMS)))
            nulls.append((label, arms))
            for case in CASES:
                found = list(pool.map(partial(one, case, gate, SIZE), range(count), chunksize=2))
                verdict, others = differing(found)
                low, high = interval(others, count)
                spread = sorted(each.gain for each in found)
                limit = f"{'held' if others <= MOST * count else 'missed'}" if case.held else "none"
                rows.append(
                    f"| {case.name} | {label} | {verdict} | {others} of {count} | {low:.1%} to {high:.1%} | {limit} "
                    f"| {mean(spread) * 100:+.1f} | {spread[count // 20] * 100:+.1f} to "
                    f"{spread[-1 - count // 20] * 100:+.1f} | {mean(each.accepted > 0 for each in found):.0%} |"
                )
                print(rows[-1], flush=True)
    table = "\n".join(rows)
    floors = "\n".join(
        f"| {label} | {mean(each.changed / each.examples for each in arms):.1%} "
        f"| {mean(float(each.margin) for each in arms) * 100:.1f} points "
        f"| {mean(each.gates.accepted for each in arms if each.gates):.0%} "
        f"| {mean(float(each.gates.chance) for each in arms if each.gates):.0%} |"
        for label, arms in nulls
    )
    return f"""# Repeated compiles

{count} compiles of the same program, examples, split and seeds, with a target that answers by chance and an optimizer
whose proposals differ from compile to compile; made by `python -m benchmarks.repeats`. {SIZE.validation} validation and
{SIZE.test} test examples, {SIZE.steps} steps. At most {MOST:.0%} of the verdicts may differ from that of most compiles
where there is no effect or a strong one. At a marginal effect the verdict is a matter of power, so no limit is set.

| world | gate | verdict of most | others | 95 % interval | limit | gain | 90 % of gains | with an accept |
|---|---|---|---|---|---|---|---|---|
{table}

## The null arm in the same world

{_NULL_ARMS} null arms: the initial skill measured twice and put through the gate against itself.

| gate | examples that change | margin | accepted | chance of an accept, by exchanges |
|---|---|---|---|---|
{floors}
"""


def main() -> None:
    """Write the page."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    text = page(count)
    PAGE.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
