"""Rollouts of each kind beside the bare function, command or environment: time of one, and what skillc adds.

Run `python benchmarks/rollouts.py`; about a minute on two cores. The figures are medians and ratios within one run:
what skillc adds to the median and to the fastest of a kind. `ms, next` is the time from the end of an agent's work to
the beginning of the next one's, the start of its interpreter included.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from overhead import plan_of

from skillc.document.skill import document_of
from skillc.models.client import Client
from skillc.outcomes import Example
from skillc.plan.schema import RolloutPlan
from skillc.sandbox.container import ENGINES
from skillc.sandbox.policy import IMAGE
from skillc.sandbox.run import problem_of
from skillc.tasks.kind import Skill
from skillc.tasks.runner import RolloutRunner

REPEATS = 20
SKILL = Skill.of(document_of("route-tickets", "routes", [("rules", "trainable", "- Invoices go to billing.", None)]))
EXAMPLE = Example("1", {"ticket": "my invoice"}, {"team": "billing"}, {}, "1")
# What an agent does is small here, so that what is around it shows.
AGENT = "import time\n\n\ndef run(inputs, skill):\n    time.sleep({seconds})\n    return 'billing'\n"
SCRIPT = "import time\ntime.sleep({seconds})\nprint('billing')\n"


@dataclass
class Row:
    """A kind of rollout beside what it runs.

    Attributes:
        at_once: rollouts side by side.
        before: seconds for each bare run, one figure per batch.
        after: the same of rollouts.
    """

    name: str
    bare: Callable[[], Awaitable[object]]
    rollout: RolloutPlan
    at_once: int = 1
    before: list[float] = field(default_factory=list)
    after: list[float] = field(default_factory=list)


async def batch(one: Callable[[], Awaitable[object]], at_once: int) -> float:
    """Return the seconds of one run, when some run side by side."""
    start = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(at_once)))
    return (time.perf_counter() - start) / at_once


async def measure(root: Path, rows: list[Row]) -> None:
    """Run a batch of each kind in turn, so that other work of the machine slows all of them alike."""
    with ExitStack() as clients:
        rollouts = [(row, *_rollout(root, row.rollout, clients)) for row in rows]
        try:
            for repeat in range(REPEATS + 1):
                for row, one, _ in rollouts:
                    times = await batch(row.bare, row.at_once), await batch(one, row.at_once)
                    if repeat:
                        row.before.append(times[0])
                        row.after.append(times[1])
        finally:
            for _, _, runner in rollouts:
                await runner.close()


def _rollout(
    root: Path, rollout: RolloutPlan, clients: ExitStack
) -> tuple[Callable[[], Awaitable[object]], RolloutRunner]:
    plan = plan_of("rulebook/v1")
    plan = plan.model_copy(update={"task": plan.task.model_copy(update={"rollout": rollout})})
    runner = RolloutRunner(plan, clients.enter_context(Client(plan, root=root, offline=True)), root=root)

    async def one() -> object:
        done = await runner(SKILL, EXAMPLE, 0, "rollout")
        assert done.prediction == {"team": "billing"}, done
        return done

    return one, runner


async def main(seconds: float, image: str | None) -> None:
    """Print a line for each kind."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "agent.py").write_text(AGENT.format(seconds=seconds))
        (root / "script.py").write_text(SCRIPT.format(seconds=seconds))

        threads = ThreadPoolExecutor(16)

        async def function() -> None:
            await asyncio.get_running_loop().run_in_executor(threads, time.sleep, seconds)

        async def process() -> None:
            child = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
            await child.communicate()

        python = RolloutPlan(kind="python", arguments=("agent:run",))
        rows = [Row(f"python, {at_once} at once", function, python, at_once) for at_once in (1, 16)]
        command = [sys.executable, "-IS", str(root / "script.py")]
        for sandbox in ("unsafe", "bubblewrap", "landlock", "docker", "podman"):
            inside = image is not None and sandbox in ENGINES
            if sandbox == "unsafe" or ((inside or sandbox not in ENGINES) and not problem_of(sandbox, image or IMAGE)):
                program = "python3" if inside else sys.executable
                setting = {"kind": sandbox, **({"image": image} if inside else {})}
                kind = RolloutPlan(
                    kind="command",
                    arguments=(program, "-IS", "{here}/script.py"),
                    settings={"sandbox": setting},
                )
                rows.append(Row(f"command, {sandbox}", process, kind))
        await measure(root, rows)
    print(f"{'':24}{'ms, bare':>10}{'ms, rollout':>13}{'added':>9}{'fastest':>9}{'ms, next':>10}")
    for row in rows:
        (before, least), (after, least_after) = (
            (statistics.median(each), min(each)) for each in (row.before, row.after)
        )
        following = f"{(after - seconds) * 1000:10.1f}" if row.at_once == 1 else ""
        print(
            f"{row.name:24}{before * 1000:10.1f}{after * 1000:13.1f}"
            f"{after / before - 1:9.1%}{least_after / least - 1:9.1%}{following}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.2, help="work of one rollout (default 0.2)")
    parser.add_argument("--image", help="with Python, on this machine, to measure containers too")
    given = parser.parse_args()
    asyncio.run(main(given.seconds, given.image))
