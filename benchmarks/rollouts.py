"""Rollouts of each kind beside the bare function, command or environment: time of one, and what skillc adds.

Run `python benchmarks/rollouts.py`; about a minute on two cores. The figures are ratios within one run.
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
from pathlib import Path

from overhead import plan_of

from skillc.document.skill import document_of
from skillc.models.client import Client
from skillc.outcomes import Example
from skillc.plan.schema import RolloutPlan
from skillc.sandbox.run import problem_of
from skillc.tasks.kind import Skill
from skillc.tasks.runner import RolloutRunner

REPEATS = 3
SKILL = Skill.of(document_of("route-tickets", "routes", [("rules", "trainable", "- Invoices go to billing.", None)]))
EXAMPLE = Example("1", {"ticket": "my invoice"}, {"team": "billing"}, {}, "1")
# What an agent does is small here, so that what is around it shows.
AGENT = "import time\n\n\ndef run(inputs, skill):\n    time.sleep({seconds})\n    return 'billing'\n"
SCRIPT = "import time\ntime.sleep({seconds})\nprint('billing')\n"


async def rates(one: Callable[[], Awaitable[object]], count: int, at_once: int) -> list[float]:
    """Seconds for each of `count` runs, one figure per repeat."""
    figures = []
    for repeat in range(REPEATS + 1):
        start = time.perf_counter()
        for _ in range(0, count, at_once):
            await asyncio.gather(*(one() for _ in range(at_once)))
        if repeat:
            figures.append((time.perf_counter() - start) / count)
    return figures


async def measured(root: Path, rollout: RolloutPlan, count: int, at_once: int) -> list[float]:
    """The same of rollouts of a kind."""
    plan = plan_of("rulebook/v1")
    plan = plan.model_copy(update={"task": plan.task.model_copy(update={"rollout": rollout})})
    with Client(plan, root=root, offline=True) as client:
        runner = RolloutRunner(plan, client, root=root)
        try:

            async def one() -> object:
                done = await runner(SKILL, EXAMPLE, 0, "rollout")
                assert done.prediction == {"team": "billing"}, done
                return done

            return await rates(one, count, at_once)
        finally:
            await runner.close()


async def main(seconds: float) -> None:
    """Print a line for each kind."""
    rows: list[tuple[str, list[float], list[float]]] = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "agent.py").write_text(AGENT.format(seconds=seconds))
        (root / "script.py").write_text(SCRIPT.format(seconds=seconds))

        async def function() -> None:
            await asyncio.to_thread(time.sleep, seconds)

        python = RolloutPlan(kind="python", arguments=("agent:run",))
        for at_once in (1, 16):
            name = f"python, {at_once} at once"
            rows.append((name, await rates(function, 16, at_once), await measured(root, python, 16, at_once)))

        command = [sys.executable, "-IS", str(root / "script.py")]

        async def process() -> None:
            child = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
            await child.communicate()

        words = (sys.executable, "-IS", "{here}/script.py")
        bare = await rates(process, 8, 1)
        for sandbox in ("unsafe", "bubblewrap", "landlock"):
            if sandbox == "unsafe" or problem_of(sandbox) is None:  # type: ignore[arg-type]
                kind = RolloutPlan(kind="command", arguments=words, settings={"sandbox": sandbox})
                rows.append((f"command, {sandbox}", bare, await measured(root, kind, 8, 1)))
    print(f"{'':24}{'ms, bare':>10}{'ms, rollout':>13}{'added':>9}{'a second':>10}")
    for name, before, after in rows:
        one, other = statistics.median(before), statistics.median(after)
        print(f"{name:24}{one * 1000:10.2f}{other * 1000:13.2f}{other / one - 1:9.1%}{1 / other:10.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.2, help="work of one rollout (default 0.2)")
    asyncio.run(main(parser.parse_args().seconds))
