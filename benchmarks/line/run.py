"""One compile against the server, in this process: `python -m benchmarks.line.run CASE` prints a JSON object."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import skillc.run.session
from benchmarks.line.server import Answers
from benchmarks.line.watch import Watch, fill, watched
from benchmarks.search.world import Settings, World
from skillc.frontend import estimate, plan_file
from skillc.models.backends.openai import load
from skillc.models.client import Client
from skillc.models.endpoint import Transport
from skillc.pipeline.compile import Job, compile_job

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = """language 1
task {
  input  case: text
  output answer: text
}
skill heed_signs {
  about = "Answer each case as its signs ask."
  frozen section role = "You answer cases."
  trainable section rules
}
model target    = "openai/target" { base_url = "URL"; concurrency = LIMIT }
model optimizer = "openai/optimizer" { base_url = "URL"; concurrency = LIMIT }
data { TRAIN; VALIDATION }
goal     correct = exact_match(answer)
budget   { steps = 8 }
gate better = candidate.correct > incumbent.correct
"""


@dataclass(frozen=True, slots=True)
class Case:
    """One run: the limit on calls at once, latencies in seconds, settings as `--set` takes them."""

    limit: int
    target: float
    optimizer: float
    settings: tuple[str, ...] = ()
    train: int = 400
    validation: int = 200
    seed: int = 0
    loop: bool = False


def measure(case: Case) -> dict[str, Any]:
    """The figures of one compile; `case.loop` leaves the network out: a call is a sleep in this process."""
    watch = Watch()
    if case.loop:
        sleeping = Sleeping(case, watch)
        used, decisions = _compile(case, "http://127.0.0.1:9", watch, sleeping)
        return _figures(case, watch, sleeping.visits, used, decisions)
    command = [sys.executable, "-m", "benchmarks.line.server"]
    for name in ("target", "optimizer", "seed", "train", "validation"):
        command += [f"--{name}", str(getattr(case, name))]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        used, decisions = _compile(case, url, watch, watch.transport)
        server.stdin.write("\n")
        server.stdin.flush()
        told = json.loads(server.stdout.readline())
    finally:
        server.stdin.close()
        server.kill()
        server.wait()
    return _figures(case, watch, [tuple(visit) for visit in told["visits"]], used, decisions)


class Sleeping:
    """A transport that answers as the server does, in this process."""

    def __init__(self, case: Case, watch: Watch) -> None:
        world = World(Settings(train=case.train, validation=case.validation), case.seed)
        self._answers, self._case, self._watch = Answers(world), case, watch
        self.visits: list[tuple[str, float, float]] = []

    async def __call__(self, sent: Mapping[str, Any]) -> Any:
        """One call."""
        name, came = self._watch.named(), time.perf_counter()
        text = self._answers(sent["model"], sent["messages"])
        await asyncio.sleep(self._case.optimizer if sent["model"].endswith("optimizer") else self._case.target)
        self.visits.append((name, came, time.perf_counter()))
        usage = {"prompt_tokens": 300, "completion_tokens": 9}
        return {"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "usage": usage, "model": "m"}


def _figures(
    case: Case, watch: Watch, visits: Sequence[tuple[str, float, float]], used: float, decisions: Sequence[str]
) -> dict[str, Any]:
    found = fill(watch, visits, case.limit)
    shares = {"share": found.share, "crowded_share": found.crowded_share, "mean": found.mean}
    return {**asdict(found), **shares, "processor": used, "decisions": decisions}


def _compile(case: Case, url: str, watch: Watch, transport: Transport) -> tuple[float, list[str]]:
    os.environ.setdefault("OPENAI_API_KEY", "none-needed")
    rollouts, optimizer, observer = watched(watch)
    setattr(skillc.run.session, "Rollouts", rollouts)  # noqa: B010
    setattr(skillc.run.session, "Optimizer", optimizer)  # noqa: B010
    with tempfile.TemporaryDirectory(prefix="skillc-line-") as name:
        folder = Path(name)
        _write(folder / "train.jsonl", range(case.train))
        _write(folder / "validation.jsonl", range(case.train, case.train + case.validation))
        program = folder / "heed_signs.skill"
        files = PROGRAM.replace("TRAIN", 'train = "train.jsonl"').replace(
            "VALIDATION", 'validation = "validation.jsonl"'
        )
        program.write_text(files.replace("URL", url).replace("LIMIT", str(case.limit)))
        planned = plan_file(program, settings=case.settings)
        job = Job(planned, estimate(planned), folder / "skill", folder / "home")
        load()
        # A start-up cost, which `benchmarks/first_call.py` measures; the transport's own import is above.
        importlib.import_module("skillc.tasks.predict")
        before = resource.getrusage(resource.RUSAGE_SELF)
        cache = folder / "cache"
        with Client(planned.plan, cache_folder=cache, concurrency=case.limit, transport=transport) as client:
            compile_job(job, observer, client)
        after = resource.getrusage(resource.RUSAGE_SELF)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, [str(decision["result"]) for decision in observer.decisions]


def _write(path: Path, cases: Sequence[int]) -> None:
    rows = (json.dumps({"id": str(case), "case": f"case {case}", "answer": "right"}) for case in cases)
    path.write_text("".join(row + "\n" for row in rows))


def main() -> None:
    given = json.loads(sys.argv[1])
    print(json.dumps(measure(Case(**{**given, "settings": tuple(given.get("settings", ()))}))))


if __name__ == "__main__":
    main()
