"""Environments: what skillc adds to a game beside the bare engine, steps a second, and memory by their number.

    python benchmarks/environments.py [--engine alfworld] [--number 1 16 64] [--rounds 7] [--json FILE]

With `toy`, the default, each process runs a small environment in pure Python; with `alfworld` household games. The
models answer at once, so a rollout is the environment and skillc. A game is a reset and 40 steps, the same in all
processes: the engine as it is installed, the class without skillc, and a rollout. They take turns, and the result is
the median over the rounds of processor time, which other programs of the machine change less than the clock.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "models")]

from model_plans import Scripted, plan_of, reply  # noqa: E402

from skillc.models.client import Client  # noqa: E402
from skillc.outcomes import Example  # noqa: E402
from skillc.plan.schema import FieldPlan, RolloutPlan, TaskPlan, TypePlan  # noqa: E402
from skillc.tasks.environments.household import ENGINE, find_interpreter, games  # noqa: E402
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
SERVER = """
import importlib.util, json, sys, time
arguments, sys.argv = sys.argv, sys.argv[:1]
spec = importlib.util.spec_from_file_location("environment", arguments[1])
module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module)
if arguments[3] == "bare" and arguments[2] == "Household":
    # The engine as it is, without what the class replaces in it.
    import os, tempfile
    os.environ.setdefault("ALFWORLD_DATA", tempfile.mkdtemp())
    import fast_downward
    from textworld.envs.pddl import textgen
    from textworld.logic import Rule
    places = [(textgen, "_parse_and_convert"), (textgen, "copy_context"), (Rule, "parse_conjunctive_query"),
              (fast_downward, "pddl2sas")]
    before = [vars(owner)[name] for owner, name in places]
house = getattr(module, arguments[2])()
if arguments[3] == "bare" and arguments[2] == "Household":
    for (owner, name), function in zip(places, before):
        setattr(owner, name, function)
for line in sys.stdin:
    request = json.loads(line)
    start = time.process_time()
    info = house.reset(request["row"])[1]
    reset = time.process_time() - start
    walk = []
    for i in range(request["steps"]):
        actions = info["admissible_actions"]
        walk.append(request["walk"][i] if request["walk"] else actions[7 * i % len(actions)])
        info = house.step(walk[-1])[3]
    print(json.dumps({"reset": reset, "game": time.process_time() - start, "walk": walk}), flush=True)
"""
"""Plays games without skillc: the class as it is, or the bare engine."""
TEXT = TypePlan(kind="text")


@dataclass
class Result:
    """One measurement; times are processor seconds, medians over the rounds.

    Attributes:
        engine: which environments.
        number: environments at once.
        bare: of a game with the engine as it is installed.
        own: of the same game with the class, without skillc.
        rollout: of the same game as a rollout, in the process of the environment and in this one.
        inside: the part of it in the process of the environment.
        reset: of a reset with the class, without skillc.
        clock: steps a second of one environment by the clock, of the rollouts at once.
        memory: resident bytes of all processes of environments.
        parent: resident bytes of this process.
    """

    engine: str
    number: int
    bare: float
    own: float
    rollout: float
    inside: float
    reset: float
    clock: float
    memory: int
    parent: int

    def text(self) -> str:
        """Return the measurement on four lines."""
        added = self.rollout - self.own
        share = f", {added / self.bare:.1%} of the bare engine and {added / self.own:.0%} of the class"
        return "\n".join(
            [
                f"{self.engine}, {self.number} at once, a game of {STEPS} steps: {self.bare * 1e3:.1f} ms with the "
                f"bare engine, {self.own * 1e3:.1f} ms with the class, {self.rollout * 1e3:.1f} ms as a rollout",
                f"  skillc adds {added / STEPS * 1e3:.2f} ms a step{share if self.engine == 'alfworld' else ''}",
                f"  {STEPS / self.inside:.0f} steps a second of processor time with the reset, "
                f"{STEPS / (self.inside - self.reset):.0f} without; {self.clock:.1f} by the clock with the reset",
                f"  {self.memory / 2**20 / self.number:.0f} MiB each, {self.memory / 2**30:.2f} GiB together, skillc "
                f"{self.parent / 2**20:.0f} MiB",
            ]
        )


class Bare:
    """A process that plays without skillc."""

    def __init__(self, python: str, file: Path, cls: str, mode: str) -> None:
        self._process = subprocess.Popen(
            [python, "-c", SERVER, str(file), cls, mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def play(self, row: dict[str, object], walk: Sequence[str] = ()) -> dict[str, Any]:
        """Play a game; return the processor times and the actions."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"row": row, "steps": STEPS, "walk": list(walk)}) + "\n")
        self._process.stdin.flush()
        # Libraries print too.
        while not (line := self._process.stdout.readline()).startswith("{"):
            assert line
        played: dict[str, Any] = json.loads(line)
        return played

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["toy", "alfworld"], default="toy")
    parser.add_argument("--number", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "toy.py").write_text(TOY)
        for number in given.number:
            results.append(asyncio.run(measure(given.engine, number, given.rounds, root)))
            print(results[-1].text())
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n")


async def measure(engine: str, number: int, rounds: int, root: Path) -> Result:
    """Measure one engine with a number of environments at once."""
    alfworld = engine == "alfworld"
    rows = [game.row() for game in games.games(rounds + 1, seed=3)] if alfworld else [{"goal": "walk"}] * (rounds + 1)
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
    file, cls = (ENGINE, "Household") if alfworld else (root / "toy.py", "Toy")
    bare, own = (Bare(settings.get("python", sys.executable), file, cls, mode) for mode in ("bare", "class"))
    walk: list[str] = []

    def act(sent: dict[str, Any]) -> Any:
        return reply(walk[sum(message["role"] == "assistant" for message in sent["messages"])])

    found: list[tuple[float, ...]] = []
    with Client(made, transport=Scripted(act), root=root) as client:
        runner = RolloutRunner(made, client, root=root)
        try:
            # The first round starts the processes.
            for i, row in enumerate(rows):
                first = own.play(row)
                walk = first["walk"]
                played = bare.play(row, walk)
                before = await rollouts(runner, row, i, 1 if i else number)
                found.append((played["game"], first["game"], before[0], before[1], first["reset"]))
            memory = sum(resident(each.pid) for each in runner._kind._pool._alive)
            clocked = []
            # Another game each time, as in a run.
            for i, row in enumerate(rows[:3]):
                walk = own.play(row)["walk"]
                clocked.append((await rollouts(runner, row, 100 + i, number))[2])
            clock = statistics.median(clocked)
        finally:
            await runner.close()
            bare.close()
            own.close()
    middle = [statistics.median(values) for values in zip(*found[1:], strict=True)]
    return Result(engine, number, *middle, clock, memory, resident("self"))


async def rollouts(
    runner: RolloutRunner, row: dict[str, object], sample: int, number: int
) -> tuple[float, float, float]:
    """Play a game in some rollouts at once; processor time of each, in its process, and steps a second of each."""
    examples = [Example(str(i), {"goal": f"{row['goal']} {i}"}, {}, dict(row), str(i)) for i in range(number)]
    alive = list(runner._kind._pool._alive)
    inside, here, start = sum(used(each.pid) for each in alive), time.process_time(), time.perf_counter()
    done = await asyncio.gather(*(runner(None, each, sample, "rollout") for each in examples))
    seconds, here = time.perf_counter() - start, time.process_time() - here
    inside = sum(used(each.pid) for each in alive) - inside
    for each in done:
        assert each.trajectory.turns == STEPS, each
    return (here + inside) / number, max(inside, 1e-9) / number, STEPS / seconds


def used(pid: int) -> float:
    """Return the processor time that a process has used, in seconds, finer than the ticks of `stat`."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def resident(pid: int | str) -> int:
    """Return the resident bytes of a process, without the pages that it shares."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


if __name__ == "__main__":
    main()
