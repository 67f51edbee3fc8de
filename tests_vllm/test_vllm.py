"""Served models, by vLLM itself."""

import asyncio
import json
import os
import signal
import subprocess

from conftest import HANGS, HERE, MODEL, PYTHON, Shop, processes, program, wait
from conftest_cli import PROGRAM, rows
from local_model.making import prompts

from skillc.frontend import plan_file
from skillc.models.backends.openai import send
from skillc.models.calls import Call, Message
from skillc.models.client import Client

SKILL = """# Sort

- If the text mentions "apple" or "market", answer fruit.
- When it contains "otter", reply with animal.
- Otherwise, answer tool."""
TASK = prompts.Task("text", "kind", "", ("fruit", "animal", "tool"))
PROMPTS = [
    [
        {"role": "system", "content": prompts.chat_system(TASK, SKILL)},
        {"role": "user", "content": prompts.chat_user(TASK, text)},
    ]
    for text in ("I saw an old apple near the harbour.", "one otter at the station", "a red hammer")
]
TOKENS = 24
# Bytes by which some rollouts enlarge the file of a run, which grows by pages.
ROLLOUTS = 50_000


def test_a_program_is_compiled_against_a_model_that_skillc_serves(shop, undisturbed):
    assert shop.served["names"] == ["rule-follower", "poet"]
    assert shop.served["how"] == "started"
    summary, files = undisturbed
    served = summary["served"][0]
    assert (served["how"], served["restarts"], served["model"]) == ("reused", 0, "models/rule-follower")
    total = summary["spent"]["charged"]["total"]
    assert total["calls"] > 100 and total["cost_nano"] == 0
    assert not summary["quarantined"]
    assert summary["verdict"] == "improved"
    assert summary["validation"]["best"]["mean"] > 0.9 > 0.6 > summary["validation"]["initial"]["mean"]
    assert b"## " in files["sort-things/SKILL.md"]


def test_the_prefix_cache_is_hit_and_said(shop, undisturbed):
    cache = undisturbed[0]["served"][0]["prefix_cache"]
    assert 0.3 < cache["hits"] / cache["queries"] < 1
    total = undisturbed[0]["spent"]["charged"]["total"]
    assert cache["queries"] <= total["prompt"]
    assert 0 < total["cached"] <= total["prompt"]


def test_what_is_served_is_what_transformers_says(shop, models, tmp_path):
    (tmp_path / "prompts.json").write_text(json.dumps(PROMPTS))
    line = [PYTHON, HERE / "greedy.py", models, tmp_path / "prompts.json", str(TOKENS)]
    base, adapted = json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)
    assert base == ["".join(prompts.chat_reply(TASK, kind)) for kind in ("fruit", "animal", "tool")]
    assert base != adapted
    plan = plan_file(shop.folder / "things.skill").plan

    async def say(client, name):
        endpoint = client.roles["target"].endpoint.id
        sent = {"model": f"hosted_vllm/{name}", "api_base": endpoint, "temperature": 0, "max_tokens": TOKENS}
        transport = client.servers.transport(send)
        replies = [await transport({**sent, "messages": messages}) for messages in PROMPTS]
        return [reply["choices"][0]["message"]["content"] for reply in replies]

    with Client(plan, root=shop.folder) as client:
        assert asyncio.run(say(client, "rule-follower")) == base
        assert asyncio.run(say(client, "poet")) == adapted


def test_an_adapter_is_a_model_of_its_own_beside_the_base(shop, undisturbed):
    (shop.folder / "poet.skill").write_text(program("poet"))
    ran = processes(shop.folder)
    messages = tuple(Message(each["role"], each["content"]) for each in PROMPTS[0])
    with Client(plan_file(shop.folder / "poet.skill").plan, root=shop.folder) as client:
        reply = asyncio.run(client.complete(Call("target", "rollout", messages)))
        assert client.servers.summaries()[0].how == "reused"
    assert reply.model == "poet"
    assert reply.text
    assert processes(shop.folder) == ran


def test_a_server_that_is_killed_comes_back_and_a_skillc_that_is_killed_leaves_none(undisturbed, models, tmp_path):
    shop = Shop(tmp_path, models)
    compiling = shop.start("compile", "things.skill", "--json")
    try:
        wait(lambda: processes(tmp_path, "VLLM::EngineCore") or compiling.poll() is not None)
        before = shop.measured
        wait(lambda: shop.measured > before + ROLLOUTS or compiling.poll() is not None)
        os.kill(next(iter(processes(tmp_path, "VLLM::EngineCore"))), signal.SIGKILL)
        wait(lambda: "vLLM answers" in shop.said.partition("during the run")[2] or compiling.poll() is not None)
        before = shop.measured
        wait(lambda: shop.measured > before + ROLLOUTS or compiling.poll() is not None)
        assert compiling.poll() is None, shop.said
        assert "restarting it, 1 of 3" in shop.said
    finally:
        compiling.kill()
        compiling.wait()
    wait(lambda: not processes(tmp_path))

    summary = shop.run("compile", "things.skill", "--json")
    assert summary["served"][0]["how"] == "started"
    assert shop.compiled == undisturbed[1]
    assert not processes(tmp_path)


def test_what_vllm_says_of_a_wrong_option_is_shown(models, tmp_path):
    shop = Shop(tmp_path, models)
    (tmp_path / "things.skill").write_text(program("rule-follower", ("max_len = 4096", "max_len = 100_000")))
    shop.start("compile", "things.skill").wait(timeout=HANGS)
    assert "max_model_len (100000) is greater than the derived max_model_len" in shop.said
    assert "ended at its start with status 1" in " ".join(shop.said.split())
    assert not processes(tmp_path)


def test_base_skill_and_a_trained_adapter_are_compared_on_the_same_examples(shop, undisturbed, models, tmp_path):
    (tmp_path / "asking").mkdir()
    asking = Shop(tmp_path / "asking", models)
    ask = 'def answer(messages, model, parameters):\n    with open("asked.jsonl", "a") as file:\n'
    (asking.folder / "asking.py").write_text(
        f"import json\n{ask}        print(json.dumps(messages), file=file)\n    return ''\n"
    )
    target = 'model target = "python/asking" { backend = python("asking:answer"); price { input = $0; output = $0 } }\n'
    (asking.folder / "things.skill").write_text(PROGRAM.replace('model target    = "rulebook/v1"\n', target))
    asking.run("eval", "things.skill", "--arms", "base", "--split", "train", "--json")
    asked = [json.loads(line) for line in (asking.folder / "asked.jsonl").read_text().splitlines()]
    kinds = {row["text"]: row["kind"] for row in rows()}
    task = prompts.Task("text", "kind", "", ("fruit", "animal", "tool"))
    learned = [
        {"messages": each, "reply": "".join(prompts.chat_reply(task, kind))}
        for each in asked
        for text, kind in kinds.items()
        if text in each[-1]["content"]
    ]
    (tmp_path / "learned.json").write_text(json.dumps(learned))
    line = [PYTHON, HERE / "train_adapter.py", MODEL, tmp_path / "tuned", tmp_path / "learned.json", "60"]
    first, last = json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)
    assert last < first / 10
    found = shop.run("eval", "things.skill", "--adapter", str(tmp_path / "tuned"), "--json")
    assert [arm["arm"] for arm in found["arms"]] == ["base", "skill", "lora", "skill+lora"]
    means = {arm["arm"]: arm["mean"] for arm in found["arms"]}
    assert {arm["n"] for arm in found["arms"]} == {found["examples"]}
    assert means["skill"] > means["base"] and means["lora"] > means["base"]
    # Requests of the adapter in the same batch change nothing that the base says; another batch, a few near ties.
    assert abs(means["base"] - undisturbed[0]["test"]["none"]["mean"]) < 0.06
    sent = {arm["arm"]: arm["tokens_sent"] for arm in found["arms"]}
    assert sent["lora"] == sent["base"] < sent["skill"] == sent["skill+lora"]
    assert (found["pairs"][0]["arm"], found["pairs"][0]["reference"]) == ("lora", "skill")
    assert len(found["answer"]) == 2
    assert found["served"][0]["how"] == "started"


def test_a_skill_that_was_made_with_the_model_is_evaluated_with_it_and_another(shop, undisturbed):
    found = shop.run("eval", "things.skill", "--model", "target", "--model", "optimizer", "--json")
    ours, other = found["models"]
    assert (ours["compiled_with"], other["compiled_with"]) == (True, False)
    gains = [{pair["skill"]: pair["gain"] for pair in model["pairs"]}["compiled"] for model in (ours, other)]
    assert gains[0] > 0.3
    # What this model says where no rule holds is often right, and the skill leaves it at that; another can't know.
    assert gains[1] >= 0
