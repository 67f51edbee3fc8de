"""One measured process: `child.py start PROGRAM` or `child.py run PROGRAM STEPS`. Prints one JSON object."""

from __future__ import annotations

import time

BEGAN = time.perf_counter()

import asyncio  # noqa: E402
import hashlib  # noqa: E402
import json  # noqa: E402
import resource  # noqa: E402
import sys  # noqa: E402
from collections.abc import Mapping  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

from skillc.frontend import estimate, plan_file  # noqa: E402
from skillc.optimize.host import SilentObserver  # noqa: E402


def spent() -> dict[str, float]:
    """Seconds since the start, seconds of processor time, and the most memory held so far in MB."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "seconds": round(time.perf_counter() - BEGAN, 2),
        "processor": round(used.ru_utime + used.ru_stime, 2),
        "megabytes": round(used.ru_maxrss / 1024),
    }


class Models:
    """A target that knows a ticket's team by its first word, more or less, and an optimizer that proposes rules."""

    def __init__(self, teams: Mapping[str, str]) -> None:
        self._teams = teams
        self.calls = 0
        self.first: dict[str, float] = {}
        self.at_once = self.most_at_once = self.most_tasks = 0

    async def __call__(self, sent: Mapping[str, Any]) -> Any:
        self.first = self.first or spent()
        self.calls += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        if self.calls % 500 == 0:
            self.most_tasks = max(self.most_tasks, len(asyncio.all_tasks()))
        await asyncio.sleep(0)
        self.at_once -= 1
        texts = [str(message["content"]) for message in sent["messages"]]
        text = self._edits() if sent["model"].endswith("sage") else self._answer(texts)
        usage = {"prompt_tokens": 400, "completion_tokens": 9}
        return {"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "usage": usage, "model": "m"}

    def _answer(self, texts: list[str]) -> str:
        rules = texts[0].count("Mind point")
        drawn = hashlib.sha256("\n".join(texts).encode()).digest()
        right = drawn[0] < 150 + 8 * min(rules, 8)
        team = self._teams[texts[-1].split(":")[0]]
        return team if right else "sales"

    def _edits(self) -> str:
        rules = [f"Mind point {self.calls}.{i}" for i in range(2)]
        edits = [{"op": "add", "section": "rules", "text": rule, "cures": ["t1", "t2", "t3"]} for rule in rules]
        return json.dumps({"summary": "-", "edits": edits})


class Timed(SilentObserver):
    """Keeps how long each stage took, in all."""

    def __init__(self) -> None:
        super().__init__()
        self._marks: list[tuple[str, float]] = []

    def stage(self, name: str, total: int) -> None:
        self._marks.append((name, time.perf_counter()))

    def stages(self) -> dict[str, float]:
        taken: dict[str, float] = {}
        for (name, begun), (_, ended) in zip(self._marks, [*self._marks[1:], ("", time.perf_counter())], strict=True):
            taken[name] = round(taken.get(name, 0.0) + ended - begun, 2)
        return taken


def main() -> None:
    mode, program = sys.argv[1], Path(sys.argv[2])
    address = {"base_url": "http://localhost:9"}
    planned = plan_file(program, settings=(f"budget.steps={sys.argv[3]}",) if mode == "run" else ())
    estimated = estimate(planned)
    loaded = spent()

    from skillc.models.client import Client
    from skillc.pipeline.compile import Job, compile_job
    from skillc.tasks import runner

    names = {"target": "openai/stub", "optimizer": "openai/sage"}
    roles = {role: m.model_copy(update={"model": names[role], **address}) for role, m in planned.plan.models.items()}
    planned = type(planned)(planned.path, planned.checked, planned.plan.model_copy(update={"models": roles}), ())
    data = estimated.dataset
    every = (*data.train, *data.validation, *data.test)
    models = Models({str(e.inputs["ticket"]).split(":")[0]: str(e.gold["team"]) for e in every})

    class Ready(Exception):  # noqa: N818
        """The first rollout is about to be sent."""

    class Plain:
        """A rollout without DSPy, which would only add its own time to each."""

        tools = ()
        folders = False

        def __init__(
            self, plan: Any, client: Client, *, role: str = "target", root: Any = None, most: Any = None
        ) -> None:
            self._client = client

        async def close(self) -> None:
            """Nothing is open."""

        async def __call__(self, skill: Any, example: Any, sample: int, stage: str) -> Any:
            from skillc.models.calls import Call, Message
            from skillc.trajectories.trajectory import one_turn

            if mode == "start":
                models.first = models.first or spent()
                raise Ready
            messages = (Message("system", skill.text if skill else "-"), Message("user", str(example.inputs["ticket"])))
            with self._client.ticket():
                done = await self._client.complete(Call("target", stage, messages, sample))
            return runner.Rollout(one_turn(done.text, {"team": done.text}, cost=done.cost))

    import skillc.run.session

    setattr(skillc.run.session, "RolloutRunner", Plain)  # noqa: B010
    watch = Timed()
    client = Client(planned.plan, transport=models, cache_folder=program.parent / "cache", concurrency=64)
    job = Job(planned, estimated, program.parent / f"skills-{mode}", program.parent / f".skillc-{mode}")
    found: dict[str, Any] = {"loaded": loaded}
    try:
        compiled = compile_job(job, watch, client)
        found |= {
            "decisions": [d["result"] for d in watch.decisions],
            "evaluated": [d.get("evaluated") for d in watch.decisions],
            "verdict": compiled.tested.verdict.verdict,
        }
    except Ready:
        pass
    finally:
        client.close()
    found |= {"first": models.first, "end": spent(), "calls": models.calls, "at_once": models.most_at_once}
    found |= {"tasks": models.most_tasks, "stages": watch.stages()}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
