"""Whole compiles in this process with scripted models: `compile_job` as the command line calls it, DSPy left out."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "honest"))

from worlds import ANSWERS, Proposer, World, proposer

from skillc.frontend import estimate, plan_file
from skillc.models.calls import Call, Message
from skillc.models.client import Client
from skillc.models.failures import CallFailed
from skillc.models.ledger import Caps
from skillc.models.pace import RetryPolicy
from skillc.optimize.host import SilentObserver
from skillc.outcomes import Example
from skillc.pipeline.compile import Compiled, Job, compile_job
from skillc.tasks.kind import Skill
from skillc.tasks.runner import Rollout
from skillc.trajectories.trajectory import one_turn

PROGRAM = """language 1
task {
  input  question: text
  output answer: "right" | "wrong"
}
skill guess {
  about = "Answer questions."
  frozen section role = "You answer."
  trainable section rules { limit = 200 tokens }
}
model target    = "openai/stub" { base_url = "http://localhost:9"; max_reply = 40; price { input = $1; output = $4 } }
model optimizer = "openai/sage" { base_url = "http://localhost:9"; max_reply = 400; price { input = $5; output = $30 } }
data { source = "questions.jsonl"; split = 1 : 1 : 2; seed = 3; GROUP }
goal correct = exact_match(answer)
optimize {
  batch = 8; drafts = 0; update = edits; minibatch = 8; edits = constant(2)
  replay = 0; successes = off; meta_skill = off
}
budget { steps = 6; patience = 100 steps }
gate better = GATE
"""
STRICT = "candidate.correct > incumbent.correct"
KINDS = {"transient": "transport", "malformed": "transport", "empty": "empty", "cut": "cut"}

# (role, stage's messages as one text, number of the attempt) -> what becomes of an attempt: None, or an exception to
# raise, or a reply to give.
Fate = Callable[[str, str, int], Any]


def reply(text: str, usage: tuple[int, int] | None, finish: str = "stop") -> dict[str, Any]:
    counts = {"prompt_tokens": usage[0], "completion_tokens": usage[1]} if usage else None
    return {"choices": [{"message": {"content": text}, "finish_reason": finish}], "usage": counts, "model": "m"}


@dataclass
class Models:
    """The transport: a target that lives in a world, and an optimizer that proposes what it is told to.

    Attributes:
        fate: what becomes of an attempt instead of its answer.
        used: tokens of an attempt as the provider reports them; None leaves them out.
        pace: draws how long each attempt takes, in turns of the event loop; 0 answers at once.
    """

    world: World = field(default_factory=World)
    propose: Proposer = field(default_factory=lambda: proposer("runs", edits=2))
    fate: Fate = lambda role, text, number: None
    used: Callable[[str, int], tuple[int, int] | None] = lambda text, number: (len(text) // 4, 20)
    pace: int = 0
    sent: list[tuple[str, str]] = field(default_factory=list)
    look: Callable[[], None] = lambda: None

    async def __call__(self, sent: Mapping[str, Any]) -> Any:
        """One attempt."""
        role = "target" if sent["model"].endswith("stub") else "optimizer"
        texts = [str(message["content"]) for message in sent["messages"]]
        text = "\n".join(texts)
        number = len(self.sent)
        self.sent.append((role, text))
        self.look()
        for _ in range(random.Random(f"{self.pace} {number}").randrange(3) if self.pace else 0):
            await asyncio.sleep(0)
        fated = self.fate(role, text, number)
        if isinstance(fated, Exception):
            raise fated
        if fated is not None:
            return fated
        answer = self._answer(texts) if role == "target" else self._edits(number)
        return reply(answer, self.used(text, number))

    def _answer(self, texts: Sequence[str]) -> str:
        example = Example(texts[-1], {}, {}, {}, texts[-1].split(" of ")[-1])
        return ANSWERS[0] if self.world.right(texts[0], example, 0) else ANSWERS[1]

    def _edits(self, number: int) -> str:
        calls = [i for i, (role, _) in enumerate(self.sent) if role == "optimizer"]
        rules = self.propose((calls.index(number),))
        edits = [{"op": "add", "section": "rules", "text": rule, "cures": ["t1", "t2", "t3"]} for rule in rules]
        return json.dumps({"summary": "-", "edits": edits})


class PlainRunner:
    """A rollout is one call with the skill and the question, and nothing around them."""

    tools = ()

    def __init__(self, plan: Any, client: Client, *, role: str = "target", root: Any = None, most: Any = None) -> None:
        self._client = client

    async def close(self) -> None:
        """Nothing is open."""

    async def __call__(self, skill: Skill | None, example: Example, sample: int, stage: str) -> Rollout:
        """One rollout."""
        text = skill.text if skill is not None else None
        # About as much text as a compiled module puts around a skill.
        around = "." * 1280
        messages = (Message("system", f"{text or '-'}{around}"), Message("user", str(example.inputs["question"])))
        with self._client.ticket():
            try:
                done = await self._client.complete(Call("target", stage, messages, sample))
            except CallFailed as failure:
                return Rollout(failure=KINDS[failure.kind], detail=failure.detail)  # type: ignore[arg-type]
        return Rollout(one_turn(done.text, {"answer": done.text}, cost=done.cost))


@dataclass(frozen=True)
class Run:
    """A compile that was done."""

    compiled: Compiled
    client: Client
    watch: SilentObserver
    models: Models
    estimated: Any


def questions(count: int, per_customer: int = 1) -> str:
    """The data: the right answer is always `right`."""
    rows = (
        {
            "id": f"q{i}",
            "question": f"question {i} of {i // per_customer}",
            "answer": "right",
            "customer": str(i // per_customer),
        }
        for i in range(count)
    )
    return "".join(json.dumps(row) + "\n" for row in rows)


async def no_wait(seconds: float) -> None:
    """A retry that waits only until others had their turn."""
    await asyncio.sleep(0)


def planned_job(
    folder: Path, *, examples: int = 120, program: str = PROGRAM, gate: str = STRICT, settings: Sequence[str] = ()
) -> Job:
    """The job of a program in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "guess.skill").write_text(program.replace("GATE", gate).replace("; GROUP", ""))
    (folder / "questions.jsonl").write_text(questions(examples))
    planned = plan_file(folder / "guess.skill", settings=settings)
    return Job(planned, estimate(planned), folder / "skills", folder / ".skillc")


def compiled(job: Job, models: Models, *, concurrency: int = 16, attempts: int = 3, cache: Path | None = None) -> Run:
    """The compile of a job; no account may pass a cap at any moment.

    Raises:
        SkillcError: as `compile_job`.
    """
    plan = job.planned.plan
    caps = Caps.of(plan.budget)
    client = Client(
        plan,
        transport=models,
        concurrency=concurrency,
        retries=RetryPolicy(attempts, 0, 0),
        sleep=no_wait,
        cache_folder=cache,
    )

    def look() -> None:
        for book in (client.ledger.charged, client.ledger.paid):
            total = book.spent.plus(book.reserved)
            assert caps.exceeded_by(total) is None, (total, caps)

    models.look = look
    watch = SilentObserver()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skillc.run.session.RolloutRunner", PlainRunner)
        try:
            return Run(compile_job(job, watch, client), client, watch, models, job.estimated)
        finally:
            look()
            client.close()
