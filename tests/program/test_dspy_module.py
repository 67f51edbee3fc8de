"""The compiled module and the emitted one are ordinary DSPy programs."""

from __future__ import annotations

import asyncio
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest
from model_plans import Scripted, plan_of, reply

from skillc.artifact_paths import ArtifactPaths
from skillc.document.skill import document_of, for_target
from skillc.models.client import Client
from skillc.models.dspy_lm import make_lm
from skillc.models.scope import scope
from skillc.program.artifact import artifact_files, write_artifact
from skillc.program.module import SkillModule
from skillc.program.names import instructions

DOCUMENT = document_of(
    "route-tickets", "Route a ticket: it's for #1", [("rules", "trainable", "- If it says `invoice`: billing.", 800)]
)


def scripted(sent: Any) -> Any:
    """A target that is right once its instructions say `REALLY`, and an optimizer that says so."""
    told = "\n".join(str(message["content"]) for message in sent["messages"])
    if "[[ ## team ## ]]" not in told:
        return reply(json.dumps({"new_instruction": "REALLY answer billing for invoices."}))
    right = "REALLY" in told and "invoice" in sent["messages"][-1]["content"]
    return reply(f"[[ ## team ## ]]\n{'billing' if right else 'shipping'}\n\n[[ ## completed ## ]]")


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(plan_of(), transport=Scripted(scripted)) as made:
        yield made


@pytest.fixture
def emitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    paths = ArtifactPaths(tmp_path, "route-tickets")
    write_artifact(paths, artifact_files(paths, plan_of(), DOCUMENT))
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("route_tickets", None)
    yield importlib.import_module("route_tickets")
    sys.modules.pop("route_tickets", None)


def compiled() -> dspy.Module:
    plan = plan_of()
    return SkillModule(plan.task, plan.skill.name, instructions(plan.task, for_target(DOCUMENT)))


@pytest.fixture(params=["compiled", "emitted"])
def program(request: pytest.FixtureRequest) -> Any:
    return compiled() if request.param == "compiled" else request.getfixturevalue("emitted").program


def examples() -> list[dspy.Example]:
    gold = [("an invoice", "billing"), ("a parcel", "shipping")] * 3
    return [
        dspy.Example(ticket=f"{ticket} {i}", team=team).with_inputs("ticket") for i, (ticket, team) in enumerate(gold)
    ]


def metric(gold: Any, pred: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None) -> Any:
    right = float(gold.team == pred.team)
    return dspy.Prediction(score=right, feedback="right" if right else f"it is {gold.team}") if pred_name else right


def test_sync_async_and_concurrent_calls(program: Any, client: Client) -> None:
    lm = make_lm(client, "target")
    with dspy.context(lm=lm):
        assert program(ticket="a parcel").team == "shipping"

        async def many() -> list[Any]:
            return await asyncio.gather(*[program.acall(ticket=f"an invoice {i}") for i in range(20)])

    with dspy.context(lm=lm):
        assert {prediction.team for prediction in asyncio.run(many())} == {"shipping"}


def test_dspy_evaluate(program: Any, client: Client) -> None:
    with dspy.context(lm=make_lm(client, "target")):
        result = dspy.Evaluate(devset=examples(), metric=metric, num_threads=4, display_progress=False)(program)
    assert result.score == 50.0


def test_gepa_improves_it(program: Any, client: Client) -> None:
    gepa = dspy.GEPA(metric=metric, max_metric_calls=40, reflection_lm=make_lm(client, "optimizer"), num_threads=2)
    with dspy.context(lm=make_lm(client, "target")):
        better = gepa.compile(program, trainset=examples(), valset=examples())
        assert better(ticket="an invoice").team == "billing"
    assert "REALLY" in better.answer.signature.instructions
    assert client.ledger.charged.lines["optimizer", "program"].calls >= 1


def test_state_goes_to_json_and_back(program: Any, tmp_path: Path) -> None:
    program.save(str(tmp_path / "state.json"))
    state = json.loads((tmp_path / "state.json").read_text())
    assert [key for key in state if key != "metadata"] == ["answer"]
    fresh = compiled()
    fresh.answer.signature = fresh.answer.signature.with_instructions("changed")
    fresh.load(str(tmp_path / "state.json"))
    assert fresh.answer.signature.instructions == program.answer.signature.instructions


def test_the_emitted_module_sends_the_very_prompt_that_was_compiled(emitted: Any) -> None:
    transport = Scripted(scripted)
    with Client(plan_of(), transport=transport) as client, dspy.context(lm=make_lm(client, "target")):
        with scope("a"):
            compiled()(ticket="an invoice")
        with scope("b"):
            emitted.program(ticket="an invoice")
        assert client.ledger.charged.lines["target", "b"].calls == 1
    assert len(transport.sent) == 1


def test_the_emitted_module_needs_no_skillc_and_reads_its_skill_anew(tmp_path: Path) -> None:
    paths = ArtifactPaths(tmp_path, "route-tickets")
    write_artifact(paths, artifact_files(paths, plan_of(), DOCUMENT))
    paths.skill.write_text("---\nname: route-tickets\n---\nBy hand --- now.\n", encoding="utf-8")
    code = (
        "import sys\nimport route_tickets\n"
        "assert route_tickets.INSTRUCTIONS == 'By hand --- now.', route_tickets.INSTRUCTIONS\n"
        "assert not [name for name in sys.modules if name.startswith(('skillc', 'litellm'))]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


def test_another_rollout_id_is_another_sample() -> None:
    transport = Scripted(scripted)
    with Client(plan_of(), transport=transport) as client:
        lm = make_lm(client, "target")
        for rollout_id in (1, 2, 1):
            lm("hello", rollout_id=rollout_id, temperature=1.0)
    assert len(transport.sent) == 2
    assert transport.sent[0]["temperature"] == 1.0
