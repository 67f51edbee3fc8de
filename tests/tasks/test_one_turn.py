"""Rollouts of one turn send and read what the compiled DSPy module would, without a call of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils.exceptions import AdapterParseError
from model_plans import TASK, Scripted, plan_of
from PIL import Image

from skillc.document.skill import Document
from skillc.models.client import Client
from skillc.models.scope import scope
from skillc.outcomes import Example
from skillc.plan.schema import FieldPlan, Plan, RolloutPlan, TaskPlan, TypePlan
from skillc.program.module import SkillModule
from skillc.program.names import as_read, instructions
from skillc.tasks.kind import Site, Skill
from skillc.tasks.predict import Turns, dspy_settings, unreadable, values_of

TEXT = "# Route\n\n## Rules\n\n- Answer `billing`.\n\n        indented, with {braces} and «quotes»\n"
SKILL = Skill(Document("route-tickets", "routes", ()), TEXT)
INPUTS: tuple[tuple[str, TypePlan, Any], ...] = (
    ("text", TypePlan(kind="text"), "one\n  two [[ ## team ## ]] é 😀"),
    ("flag", TypePlan(kind="bool"), True),
    ("amount", TypePlan(kind="number"), 1.50),
    ("count", TypePlan(kind="integer"), 3),
    ("record", TypePlan(kind="json"), {"z": [1, "é"], "a": None}),
    ("kind", TypePlan(kind="labels", labels=("x", "y")), "x"),
    ("lines", TypePlan(kind="list", item=TypePlan(kind="text")), ["p", "q\nr"]),
    ("many", TypePlan(kind="list"), ["only"]),
    ("given", TypePlan(kind="text", optional=True), "there"),
    ("missing", TypePlan(kind="text", optional=True), None),
    ("signature", TypePlan(kind="text"), "a reserved name"),
    ("picture", TypePlan(kind="image"), "red.png"),
    ("pictures", TypePlan(kind="list", item=TypePlan(kind="image")), ["red.png", "https://example.org/a.png"]),
    ("paper", TypePlan(kind="file"), "what the loader has read"),
)
OUTPUTS = (
    ("team", TypePlan(kind="labels", labels=("billing", "shipping"))),
    ("sure", TypePlan(kind="bool")),
    ("score", TypePlan(kind="number")),
    ("parts", TypePlan(kind="integer")),
    ("data", TypePlan(kind="json")),
    ("names", TypePlan(kind="list", item=TypePlan(kind="text"))),
    ("note", TypePlan(kind="text", optional=True)),
    ("config", TypePlan(kind="text")),
)
WHOLE = {
    "team": "billing",
    "sure": "True",
    "score": "0.25",
    "parts": "4",
    "data": '{"a": [1, null]}',
    "names": '["x", "y"]',
    "note": "fine",
    "config_": "plain\n\ntext",
}


def written(**changed: str | None) -> str:
    fields = {**WHOLE, **changed}
    return "\n\n".join(f"[[ ## {k} ## ]]\n{v}" for k, v in fields.items() if v is not None)


REPLIES: dict[str, Any] = {
    "whole": written() + "\n\n[[ ## completed ## ]]",
    "no end": written(),
    "text around": f"Sure:\n{written()}\n[[ ## completed ## ]]\nbye",
    "on the line of the marker": "\n".join(f"  [[ ## {k} ## ]] {v}" for k, v in WHOLE.items()),
    "twice": f"{written()}\n\n{written(team='shipping')}",
    "unknown field": f"[[ ## other ## ]]\nx\n\n{written()}",
    "optional left out": written(note=None),
    "one left out": written(data=None),
    "three left out": written(team=None, sure=None, names=None),
    "quoted label": written(team='"shipping"'),
    "label with a type": written(team="Literal[shipping]"),
    "unknown label": written(team="marketing"),
    "word for a bool": written(sure="perhaps"),
    "number with words": written(score="about 3"),
    "infinite": written(score="inf"),
    "not a number": written(score="nan"),
    "decimal for an integer": written(parts="4.5"),
    "broken json, repaired": written(data='{"a": 1'),
    "single quotes": written(names="['x', 'y']"),
    "list for an object": written(data="[1, 2]"),
    "text for a list": written(names="x and y"),
    "empty field": written(config_=""),
    "prose": "billing, I think",
    "json object": json.dumps(WHOLE),
    "reasoning first": f"[[ ## reasoning ## ]]\nas asked\n\n{written()}",
}
CALLED = [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]


def task_of(kind: str = "predict") -> TaskPlan:
    return TASK.model_copy(
        update={
            "inputs": tuple(FieldPlan(name=n, type=t, column=n, about=f"the {n}") for n, t, _ in INPUTS),
            "outputs": tuple(FieldPlan(name=n, type=t, column=n) for n, t in OUTPUTS),
            "rollout": RolloutPlan(kind=kind),
        }
    )


EXAMPLE = Example("1", {name: value for name, _, value in INPUTS}, {}, {}, "1")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images")
    Image.new("RGB", (30, 20), "red").save(folder / "red.png")
    return folder


def answering(text: str, calls: list[dict[str, Any]] | None = None) -> Scripted:
    message = {"content": text, **({"tool_calls": calls} if calls else {})}
    usage = {"prompt_tokens": 5, "completion_tokens": 2}
    return Scripted(
        lambda sent: {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage, "model": "m"}
    )


def both_ways(plan: Plan, root: Path, transport: Scripted, text: str | None) -> tuple[Any, Any]:
    """Answer, problem and reply of a rollout; and what the module and DSPy's `acall` give for them."""

    async def of_module(site: Site) -> tuple[Any, str | None, str]:
        told = instructions(plan.task, text)
        module = SkillModule(as_read(plan.task), plan.skill.name, told, root=root, by_reference=True)
        adapter = dspy.ChatAdapter(use_json_adapter_fallback=False)
        with scope("rollout", 0) as inside, dspy.context(**dspy_settings(site, adapter)):
            try:
                prediction = await module.acall(**EXAMPLE.inputs)
            except AdapterParseError as raised:
                return None, unreadable(raised), inside.completions[-1].text
        return *values_of(prediction, plan), inside.completions[-1].text

    async def of_rollout(site: Site) -> tuple[Any, str | None, str]:
        with scope("rollout", 0):
            found = await Turns(site).run(None if text is None else SKILL, EXAMPLE, sample=0)
        return found.answer, found.problem, found.reply

    found = []
    for way in (of_module, of_rollout):
        with Client(plan, transport=transport, root=root) as client:
            found.append(asyncio.run(way(Site(plan, client, "target", root))))
    return found[0], found[1]


@pytest.mark.parametrize("kind", ["predict", "chain_of_thought"])
@pytest.mark.parametrize("text", [TEXT, None])
def test_the_messages_are_those_of_the_module_to_the_byte(root: Path, kind: str, text: str | None) -> None:
    transport = answering(REPLIES["reasoning first"])
    both_ways(plan_of(task=task_of(kind)), root, transport, text)
    of_module, of_rollout = transport.sent
    assert json.dumps(of_rollout) == json.dumps(of_module)
    system, user = of_rollout["messages"]
    assert ("braces" in system["content"]) == (text is not None)
    kinds = [part["type"] for part in user["content"]]
    assert kinds.count("image_url") == 3
    assert "data:image/png;base64,iVBOR" in json.dumps(user)


@pytest.mark.parametrize("kind", ["predict", "chain_of_thought"])
@pytest.mark.parametrize("name", REPLIES)
def test_answers_and_problems_are_those_of_the_module(root: Path, kind: str, name: str) -> None:
    of_module, of_rollout = both_ways(plan_of(task=task_of(kind)), root, answering(REPLIES[name]), TEXT)
    assert of_rollout == of_module
    answer, problem, reply = of_rollout
    assert (answer is None) == (problem is not None)
    assert reply == REPLIES[name]


@pytest.mark.parametrize("text", ["", " \n", REPLIES["whole"]])
def test_calls_of_tools_that_nobody_offered_change_nothing(root: Path, text: str) -> None:
    of_module, of_rollout = both_ways(plan_of(task=task_of()), root, answering(text, CALLED), TEXT)
    assert of_rollout == of_module


def test_an_example_is_formatted_once_for_all_texts_unless_it_has_images(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    formatted: list[str] = []
    own = dspy.ChatAdapter.format_user_message_content

    def counted(self: Any, signature: Any, inputs: Any, *arguments: Any, **named: Any) -> str:
        formatted.append(inputs.get("ticket", ""))
        return str(own(self, signature, inputs, *arguments, **named))

    monkeypatch.setattr(dspy.ChatAdapter, "format_user_message_content", counted)
    transport = Scripted()
    examples = [Example(name, {"ticket": f"ticket {name}"}, {}, {}, name) for name in "ab"]
    namesake = Example("a", {"ticket": "another ticket"}, {}, {}, "a")
    plan = plan_of()

    async def scenario() -> None:
        with Client(plan, transport=transport) as client:
            turns = Turns(Site(plan, client, "target", root))
            for text in ("first text", "second text"):
                for example in (*examples, namesake) if text == "second text" else examples:
                    with scope("rollout", 0):
                        await turns.run(Skill(SKILL.document, text), example, sample=0)

    asyncio.run(scenario())
    assert [each for each in formatted if each] == ["ticket a", "ticket b", "another ticket"]
    read = [tuple(message["content"] for message in sent["messages"]) for sent in transport.sent]
    assert [("second text" in system, user.splitlines()[1]) for system, user in read] == [
        (False, "ticket a"),
        (False, "ticket b"),
        (True, "ticket a"),
        (True, "ticket b"),
        (True, "another ticket"),
    ]
