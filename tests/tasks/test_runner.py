from __future__ import annotations

import asyncio
from typing import Any

import pytest
from model_plans import TASK, Scripted, model, plan_of, reply

from skillc.document.skill import Document
from skillc.models.client import Client
from skillc.models.failures import BudgetReached, PermanentFailure
from skillc.models.pace import RetryPolicy
from skillc.outcomes import Example
from skillc.plan.initial import task_text
from skillc.plan.schema import FieldPlan, RolloutPlan, TaskPlan, TypePlan
from skillc.tasks.kind import Skill
from skillc.tasks.runner import Rollout, RolloutRunner

SKILL = "# Route tickets\n\n## Rules\n\n- If the ticket mentions `invoice`, answer billing.\n"


def skill_of(text: str | None) -> Skill | None:
    return None if text is None else Skill(Document("route-tickets", "routes", ()), text)


def answer(text: str) -> str:
    return f"[[ ## team ## ]]\n{text}\n\n[[ ## completed ## ]]"


def example(ticket: str = "my invoice", **inputs: Any) -> Example:
    return Example(ticket, {"ticket": ticket, **inputs}, {"team": "billing"}, {}, ticket)


async def no_sleep(seconds: float) -> None:
    await asyncio.sleep(0)


def one(transport: Any, *, text: str | None = SKILL, plan: Any = None, at: Example | None = None) -> Rollout:
    with Client(plan or plan_of(), transport=transport, sleep=no_sleep, retries=RetryPolicy(attempts=2)) as client:
        return asyncio.run(RolloutRunner(plan or plan_of(), client)(skill_of(text), at or example(), 0, "rollout"))


def test_a_rollout_gives_the_outputs_and_the_reply() -> None:
    transport = Scripted(lambda sent: reply(answer("billing"), usage=(30, 4)))
    rollout = one(transport)
    assert rollout.prediction == {"team": "billing"}
    assert rollout.trajectory.reply == answer("billing")
    assert (rollout.failure, rollout.trajectory.problem, rollout.trajectory.tokens) == (None, None, 34)
    assert rollout.trajectory.cost == 30 * 150 + 4 * 600
    system, user = transport.sent[0]["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    assert "If the ticket mentions `invoice`, answer billing." in system["content"]
    told = "\n".join(f"{' ' * 8}{line}" for line in SKILL.strip().splitlines())
    assert system["content"].endswith(f"your objective is: \n{told}")
    assert "my invoice" in user["content"]
    assert "my invoice" not in system["content"]  # what is shared stands first, for the server's prefix cache


def test_without_a_skill_the_target_reads_the_task_alone() -> None:
    transport = Scripted(lambda sent: reply(answer("billing")))
    one(transport, text=None)
    (told,) = [sent["messages"][0]["content"] for sent in transport.sent]
    assert told.endswith(f"your objective is: \n{' ' * 8}{task_text(plan_of().task)}")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (answer("marketing"), "`team` is no declared value: marketing"),
        ("billing, I think", "lacks `team`"),
    ],
)
def test_a_whole_reply_that_cannot_be_read_is_a_problem_and_no_failure(text: str, problem: str) -> None:
    transport = Scripted(lambda sent: reply(text))
    rollout = one(transport)
    assert rollout.prediction is None
    assert rollout.failure is None
    assert problem in str(rollout.trajectory.problem)
    assert rollout.trajectory.reply == text
    assert len(transport.sent) == 1  # no second paid call in another format


@pytest.mark.parametrize(
    ("sent_back", "failure"),
    [
        (TimeoutError("slow"), "transport"),
        ({"broken": True}, "transport"),
        (reply(""), "empty"),
        (reply(answer("billing"), finish="length"), "cut"),
    ],
)
def test_an_infrastructure_failure_is_never_a_score(sent_back: Any, failure: str) -> None:
    rollout = one(Scripted(lambda sent: sent_back))
    assert rollout.failure == failure
    assert rollout.prediction is None
    assert rollout.trajectory.problem is None


class Refused(Exception):  # noqa: N818
    status_code = 401


def test_permanent_failures_and_caps_pass_through_dspy_unharmed() -> None:
    with pytest.raises(PermanentFailure, match="`target`"):
        one(Scripted(lambda sent: Refused("no")))
    with pytest.raises(BudgetReached) as reached:
        one(Scripted(), plan=plan_of(calls=0))
    assert reached.value.cap == "calls"


def test_samples_are_calls_of_their_own_and_repeats_are_not() -> None:
    transport = Scripted(lambda sent: reply(answer("billing")))

    async def scenario() -> None:
        with Client(plan_of(), transport=transport) as client:
            runner = RolloutRunner(plan_of(), client)
            for sample, stage in ((0, "baseline"), (0, "gate"), (1, "gate")):
                await runner(skill_of(SKILL), example(), sample, stage)
            lines = client.ledger.snapshot()["charged"]["lines"]  # type: ignore[index,call-overload]
            assert [(line["stage"], line["calls"]) for line in lines] == [("baseline", 1), ("gate", 2)]

    asyncio.run(scenario())
    assert len(transport.sent) == 2


def test_concurrent_rollouts_of_several_skills_do_not_mix() -> None:
    def echo(sent: Any) -> Any:
        system, user = (message["content"] for message in sent["messages"])
        even = int(user.split("number ")[1].split()[0]) % 2 == 0
        return reply(answer("billing" if even == ("billing first" in system) else "shipping"), usage=(7, 1))

    async def scenario() -> list[Rollout]:
        with Client(plan_of(), transport=Scripted(echo), concurrency=8) as client:
            runner = RolloutRunner(plan_of(), client)
            texts = ("# A\n\nbilling first\n", "# B\n\nshipping first\n")
            jobs = [runner(skill_of(text), example(f"number {i} "), 0, "rollout") for i in range(40) for text in texts]
            return await asyncio.gather(*jobs)

    rollouts = asyncio.run(scenario())
    for i in range(40):
        first, second = rollouts[2 * i : 2 * i + 2]
        expected = ("billing", "shipping") if i % 2 == 0 else ("shipping", "billing")
        assert ((first.prediction or {})["team"], (second.prediction or {})["team"]) == expected
        assert first.trajectory.tokens == second.trajectory.tokens == 8


def test_chain_of_thought_asks_for_reasoning_first() -> None:
    task = TASK.model_copy(update={"rollout": RolloutPlan(kind="chain_of_thought")})
    transport = Scripted(lambda sent: reply("[[ ## reasoning ## ]]\nwell\n\n" + answer("shipping")))
    rollout = one(transport, plan=plan_of(task=task))
    assert rollout.prediction == {"team": "shipping"}
    assert "reasoning" in transport.sent[0]["messages"][0]["content"]


def test_outputs_of_every_type_come_back_as_json_has_them() -> None:
    def field(name: str, kind: str, **more: Any) -> FieldPlan:
        return FieldPlan(name=name, type=TypePlan.model_validate({"kind": kind, **more}), column=name)

    outputs = (
        field("signature", "text"),
        field("yes", "bool"),
        field("n", "number"),
        field("i", "integer"),
        field("j", "json"),
        field("l", "list", item=TypePlan(kind="integer")),
        field("o", "text", optional=True),
    )
    task = TaskPlan(inputs=(field("lm", "text"), field("config", "list", item=TypePlan(kind="text"))), outputs=outputs)
    texts = {"signature_": "me", "yes": "true", "n": "1.5", "i": "3", "j": '{"a": [1]}', "l": "[1, 2]", "o": "x"}
    whole = "\n".join(f"[[ ## {name} ## ]]\n{text}" for name, text in texts.items())
    at = Example("1", {"lm": "an input named lm", "config": ["a", "b"]}, {}, {}, "1")
    transport = Scripted(lambda sent: reply(whole))
    rollout = one(transport, plan=plan_of(task=task), at=at)
    expected = {"signature": "me", "yes": True, "n": 1.5, "i": 3, "j": {"a": [1]}, "l": [1, 2], "o": "x"}
    assert rollout.prediction == expected
    assert "an input named lm" in transport.sent[0]["messages"][1]["content"]
    infinite = one(Scripted(lambda sent: reply(whole.replace("1.5", "Infinity"))), plan=plan_of(task=task), at=at)
    assert infinite.prediction is None
    assert "`n`" in str(infinite.trajectory.problem)


def test_the_rulebook_is_reached_the_same_way() -> None:
    plan = plan_of(model(name="rulebook/v1", base_url=None))
    with Client(plan, offline=True) as client:
        rollout = asyncio.run(
            RolloutRunner(plan, client)(skill_of(SKILL), example("where is my invoice"), 0, "rollout")
        )
    assert rollout.prediction == {"team": "billing"}
    assert rollout.trajectory.cost == 0
    assert rollout.trajectory.tokens > 0
