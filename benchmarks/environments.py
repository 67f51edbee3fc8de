"""Environments: steps a second beside the bare engine, and memory by the number of environments.

    python benchmarks/environments.py [--engine alfworld] [--number 1 16 64] [--json FILE]

With `toy`, the default, each process runs a small environment in pure Python; with `alfworld` household games. A bare
process plays the same actions in a loop. The models answer at once, so a rollout is the environment and skillc.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "models")]

from model_plans import Scripted, plan_of, reply  # noqa: E402

from skillc.models.client import Client  # noqa: E402
from skillc.outcomes import Example  # noqa: E402
from skillc.plan.schema import FieldPlan, Plan, RolloutPlan, TaskPlan, TypePlan  # noqa: E402
from skillc.processes.guard import stat_of  # noqa: E402
from skillc.tasks.environments.household import games  # noqa: E402
from skillc.tasks.environments.household.interpreter import ENGINE, find_interpreter  # noqa: E402
from skillc.tasks.environments.play import opening_of  # noqa: E402
from skillc.tasks.environments.process import EnvironmentProcess  # noqa: E402
from skillc.tasks.runner import RolloutRunner  # noqa: E402

STEPS = 40
TOY = """
class Toy:
    def reset(self, example):
        self.count = 0
        return "start", {"admissible_actions": ["go", "stay"]}
    def step(self, action):
        self.count += 1
        return f"step {self.count}", 0.0, False, {"admissible_actions": ["go", "stay"]}
    def score(self):
        return 0.5
"""
BARE = """
import importlib.util, json, sys, time
spec = importlib.util.spec_from_file_location("environment", sys.argv[1])
module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module)
name, example, steps, *actions = sys.argv[2:]
if name == "Household":
    sys.argv = sys.argv[:1]
    import os, tempfile
    os.environ.setdefault("ALFWORLD_DATA", tempfile.mkdtemp())
    from textworld.envs.pddl import textgen
    before = textgen._parse_and_convert, textgen.copy_context
house = getattr(module, name)()
if name == "Household":
    # As the engine is, without what skillc replaces in it.
    textgen._parse_and_convert, textgen.copy_context = before
start = time.perf_counter()
house.reset(json.loads(example))
for i in range(int(steps)):
    house.step(actions[i % 2])
print(time.perf_counter() - start)
"""
"""The bare engine: the same steps without skillc."""
TEXT = TypePlan(kind="text")


@dataclass
class Result:
    """One measurement.

    Attributes:
        engine: which environments.
        number: environments at once.
        bare: steps a second of one bare process; all three count the reset.
        process: steps a second of one process, through its pipe.
        cpu: its steps a second of processor time, which other programs of the machine do not change.
        rollout: steps a second of one rollout, with prompts, calls and records.
        memory: resident bytes of all processes of environments.
        parent: resident bytes of this process.
    """

    engine: str
    number: int
    bare: float
    process: float
    cpu: float
    rollout: float
    memory: int
    parent: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["toy", "alfworld"], default="toy")
    parser.add_argument("--number", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "toy.py").write_text(TOY)
        for number in given.number:
            result = asyncio.run(measure(given.engine, number, root))
            results.append(result)
            print(
                f"{result.engine} {number:3}: bare {result.bare:8.1f} steps/s, process {result.process:8.1f} "
                f"({result.cpu:.1f} a CPU second), rollout {result.rollout:8.1f} "
                f"({result.rollout / result.bare:.2f} of bare), {result.memory / 2**20 / number:.0f} MiB each, "
                f"{result.memory / 2**30:.2f} GiB together, skillc {result.parent / 2**20:.0f} MiB"
            )
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n")


async def measure(engine: str, number: int, root: Path) -> Result:
    """Measure one engine with a number of environments at once."""
    alfworld = engine == "alfworld"
    row = games.make_game("pick_heat_then_place_in_recep", 3).row() if alfworld else {"id": "toy", "goal": "walk"}
    actions = ("look", "inventory") if alfworld else ("go", "stay")
    name = "alfworld" if alfworld else "toy:Toy"
    settings: dict[str, Any] = {"turns": STEPS, "processes": number}
    if alfworld:
        settings["python"] = str(find_interpreter(None, ROOT))
    made = plan_of(
        task=TaskPlan(
            inputs=(FieldPlan(name="goal", type=TEXT, column="goal"),),
            outputs=(FieldPlan(name="action", type=TEXT, column="action"),),
            rollout=RolloutPlan(kind="environment", arguments=(name,), settings=settings),
        )
    )
    bare = bare_speed(settings.get("python", sys.executable), ENGINE if alfworld else root / "toy.py", row, actions)
    process, used = await process_speed(made, root, row, actions)

    def act(sent: dict[str, Any]) -> Any:
        return reply(actions[sum(message["role"] == "assistant" for message in sent["messages"]) % 2])

    with Client(made, transport=Scripted(act), root=root) as client:
        runner = RolloutRunner(made, client, root=root)
        try:
            examples = [Example(str(i), {"goal": f"{row['goal']} {i}"}, {}, dict(row), str(i)) for i in range(number)]
            # The first round starts the processes.
            await asyncio.gather(*(runner(None, each, 0, "rollout") for each in examples))
            memory = sum(resident(each.pid) for each in runner._kind._pool._alive)
            start = time.perf_counter()
            rollout = await runner(None, examples[0], 1, "rollout")
            seconds = time.perf_counter() - start
            assert rollout.trajectory.turns == STEPS, rollout
        finally:
            await runner.close()
    return Result(engine, number, bare, process, used, STEPS / seconds, memory, resident("self"))


def bare_speed(python: str, file: Path, row: dict[str, object], actions: tuple[str, str]) -> float:
    """Return the steps a second of the class without skillc."""
    cls = "Household" if Path(file) == ENGINE else "Toy"
    done = subprocess.run(
        [python, "-c", BARE, str(file), cls, json.dumps(row), str(STEPS), *actions],
        capture_output=True,
        text=True,
        check=True,
    )
    return STEPS / float(done.stdout.split()[-1])


async def process_speed(
    made: Plan, root: Path, row: dict[str, object], actions: tuple[str, str]
) -> tuple[float, float]:
    """Return the steps a second of one process, asked through its pipe: of time, and of its processor time."""
    process = await EnvironmentProcess.start(opening_of(made, root), 120)
    try:
        start, used = time.perf_counter(), cpu(process.pid)
        await process.ask("reset", 60, example=row, seed=0)
        for i in range(STEPS):
            await process.ask("step", 60, action=actions[i % 2])
        seconds = time.perf_counter() - start
        return STEPS / seconds, STEPS / max(cpu(process.pid) - used, 0.01)
    finally:
        await process.close()


def cpu(pid: int) -> float:
    """Return the processor time that a process has used, in seconds."""
    fields = stat_of(pid)
    assert fields is not None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int | str) -> int:
    """Return the resident bytes of a process, without the pages that it shares."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


if __name__ == "__main__":
    main()
