"""One compile in the shape of SkillOpt's largest published run, and what its ledger charged by stage."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import skillc.run.session
from benchmarks.ablation.optimizer import EveryStage
from benchmarks.search.world import Settings, World, rules_in
from benchmarks.skillopt_shape.world import HardWorld
from skillc.frontend import estimate, plan_file
from skillc.models.calls import Call, Message
from skillc.models.client import Client
from skillc.optimize.host import SilentObserver
from skillc.outcomes import Example
from skillc.pipeline.compile import Job as Compile
from skillc.pipeline.compile import compile_job
from skillc.tasks.kind import Skill
from skillc.tasks.runner import Rollout
from skillc.trajectories.trajectory import one_turn

TRAIN, VALIDATION, TEST, EPOCHS, BATCH = 400, 200, 1_400, 4, 40
PROGRAM = f"""language 1
task {{
  input  case: text
  output answer: text
}}
skill heed_signs {{
  about = "Answer each case as its signs ask."
  frozen section role = "You answer cases."
  trainable section rules
  slow section guidance
}}
model target    = "openai/target" {{ base_url = "http://localhost:9" }}
model optimizer = "openai/optimizer" {{ base_url = "http://localhost:9" }}
data {{ train = "train.jsonl"; validation = "validation.jsonl"; test = "test.jsonl" }}
goal     correct = exact_match(answer)
optimize {{ batch = {BATCH}; minibatch = 8; edits = cosine(4, 2) }}
budget   {{ epochs = {EPOCHS} }}
GATES
"""
STRICT = "gate better = candidate.correct > incumbent.correct"
BATCH_FIRST = "gate cures = improved(correct, on = batch) - regressed(correct, on = batch) > 0"


@dataclass(frozen=True, slots=True)
class Job:
    """One run: the world, its share of hard examples, the gates, and settings as `--set` takes them."""

    world: Settings
    hard: float
    seed: int
    gates: str
    settings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of it.

    Attributes:
        charged: calls by (role, stage).
        decisions: by result.
        blamed: rejects by the gate that failed.
        steps: that were begun.
        early, wasted: rollouts sent ahead of need, and those of them that no step used.
        validation: the goal of the initial and the best skill, selected on.
        gain: the share of the attainable gain that the best skill has by the hidden truth.
    """

    charged: Mapping[tuple[str, str], int]
    decisions: Mapping[str, int]
    blamed: Mapping[str, int]
    steps: int
    early: int
    wasted: int
    validation: tuple[float, float]
    gain: float
    stopped: str

    @property
    def total(self) -> int:
        """Calls of all roles and stages but the comparison with no skill, which is skillc's own."""
        return sum(count for (_, stage), count in self.charged.items() if stage != "no skill")


class _Models:
    """A transport whose target answers by the world and whose optimizer follows a script."""

    def __init__(self, world: World) -> None:
        self._world, self._optimizer = world, EveryStage(world)
        self._rules: dict[str, frozenset[str]] = {}

    async def __call__(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        texts = [str(message["content"]) for message in sent["messages"]]
        text = self._optimizer.answer(texts[1]) if sent["model"].endswith("optimizer") else self._answer(*texts)
        usage = {"prompt_tokens": 300, "completion_tokens": 9}
        return {"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "usage": usage, "model": "m"}

    def _answer(self, skill: str, case: str) -> str:
        rules = self._rules.setdefault(skill, rules_in(skill))
        number = int(case.removeprefix("case "))
        right = self._world.right(rules, number) != self._world.slips(skill, number, 0)
        return "right" if right else "wrong"


class _Plain:
    """A rollout is one call: skill and case, without DSPy, which changes no count."""

    tools = ()
    folders = False

    def __init__(self, plan: Any, client: Client, *, role: str = "target", root: Any = None, most: Any = None) -> None:
        self._client = client

    async def close(self) -> None:
        """Nothing is open."""

    async def __call__(self, skill: Skill | None, example: Example, sample: int, stage: str) -> Rollout:
        text = skill.text if skill is not None else None
        messages = (Message("system", text or "-"), Message("user", str(example.inputs["case"])))
        with self._client.ticket():
            done = await self._client.complete(Call("target", stage, messages, sample))
        return Rollout(one_turn(done.text, {"answer": done.text}, cost=done.cost))


def run(job: Job) -> Ran:
    """A whole compile: baseline, epochs, final test, verdict."""
    setattr(skillc.run.session, "RolloutRunner", _Plain)  # noqa: B010
    world, observer = HardWorld(job.world, job.seed, job.hard), SilentObserver()
    with tempfile.TemporaryDirectory(prefix="skillc-shape-") as name:
        folder, first = Path(name), 0
        for split, count in (("train", TRAIN), ("validation", VALIDATION), ("test", TEST)):
            _write(folder / f"{split}.jsonl", range(first, first + count))
            first += count
        program = folder / "heed_signs.skill"
        program.write_text(PROGRAM.replace("GATES", job.gates))
        planned = plan_file(program, settings=[f"data.seed={job.seed}", *job.settings])
        with Client(planned.plan, transport=_Models(world), concurrency=64) as client:
            compiled = compile_job(
                Compile(planned, estimate(planned), folder / "skill", folder / "home"), observer, client
            )
    lines: Any = compiled.spent["charged"]
    state, ahead = compiled.trained.state, compiled.trained.engine.ahead
    means = [compiled.tested.validation[name].mean for name in ("initial", "best")]
    return Ran(
        charged={(line["role"], line["stage"]): line["calls"] for line in lines["lines"]},
        decisions=Counter(str(record["result"]) for record in observer.decisions),
        blamed=Counter(str(record["blame"]) for record in observer.decisions if record.get("blame")),
        steps=len({record["place"] for record in observer.decisions if record["kind"] == "step"}),
        early=ahead.sent,
        wasted=ahead.wasted,
        validation=(float(means[0] or 0), float(means[1] or 0)),
        gain=world.gain(frozenset().union(*(rules_in(rule.text) for rule in state.best.rules))),
        stopped=compiled.trained.stopped,
    )


def _write(path: Path, cases: Sequence[int]) -> None:
    rows = ({"id": str(case), "case": f"case {case}", "answer": "right"} for case in cases)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
