"""`skillc distill` as a whole: SFT, then DPO, killed in each and resumed, and the adapter in use."""

import json
import os
import signal

import pytest
from conftest import VLLM, Workshop, by_trainer, dpo_rows, sft_rows, wait

# Mean log-probability of answers, by the base model and with the adapter.
SCORES = """
import json, sys, torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer
torch.set_num_threads(1)
base, adapter, rows = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
tok = AutoTokenizer.from_pretrained(base)
def score(model):
    found = []
    for prompt, reply in rows:
        head = tok.apply_chat_template(prompt, add_generation_prompt=True, return_dict=True)["input_ids"]
        ids = torch.tensor([list(tok.apply_chat_template(prompt + reply, return_dict=True)["input_ids"])])
        with torch.no_grad():
            logs = model(input_ids=ids).logits[0, :-1].log_softmax(-1)
        found.append(float(logs.gather(1, ids[0, 1:, None])[len(head) - 1 :].sum()))
    return found
model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32).eval()
before = score(model)
print(json.dumps([before, score(PeftModel.from_pretrained(model, adapter).eval())]))
"""
SAME = """
import json, sys
from safetensors.torch import load_file
one, other = (load_file(f"{each}/adapter_model.safetensors") for each in sys.argv[1:])
print(json.dumps([sorted(one) == sorted(other), max(float((one[n] - other[n]).abs().max()) for n in one),
                  max(float(one[n].abs().max()) for n in one)]))
"""


def test_sft_then_dpo_learn_and_the_adapter_loads(trained):
    made, record = trained
    sft, dpo = record["stages"]
    assert (sft["stage"], dpo["stage"]) == ("sft", "dpo")
    assert (sft["steps"], dpo["steps"]) == (12, 4)
    assert sft["loss_last"] < 0.7 * sft["loss_first"]
    assert dpo["loss_last"] < dpo["loss_first"]
    assert dpo["margin_last"] > dpo["margin_first"]
    assert record["hours"] > 0
    assert record["versions"]["trl"]
    assert not (made.folder / "adapter" / ".training").exists()
    rows = [[row["prompt"], row["completion"]] for row in sft_rows(8)]
    before, after = by_trainer(SCORES, made.folder / "model", made.folder / "adapter", json.dumps(rows))
    assert all(b > a for a, b in zip(before, after, strict=True))
    pairs = [[row["prompt"], row[side]] for row in dpo_rows(8) for side in ("chosen", "rejected")]
    before, after = by_trainer(SCORES, made.folder / "model", made.folder / "adapter", json.dumps(pairs))
    margins = [[scores[i] - scores[i + 1] for i in range(0, len(scores), 2)] for scores in (before, after)]
    assert sum(margins[1]) > sum(margins[0])


def test_a_training_that_is_killed_in_each_stage_resumes_and_ends_as_an_undisturbed_one(trained, tmp_path):
    whole, record = trained
    made = Workshop(tmp_path / "killed")
    home = made.folder / "adapter" / ".training"
    for stage, checkpoint in (("sft", 5), ("dpo", 2)):
        process = made.distill("adapter")
        wait(lambda at=home / stage / f"checkpoint-{checkpoint}" / "trainer_state.json": at.is_file())
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert not (made.folder / "adapter" / "training.json").exists()
        # The trainer ends with the process that started it.
        wait(lambda: not running(made.folder))
    again = json.loads(made.finish(made.distill("adapter")))
    assert "resumes from checkpoint-" in made.said
    assert [each["steps"] for each in again["stages"]] == [each["steps"] for each in record["stages"]]
    names, difference, size = by_trainer(SAME, made.folder / "adapter", whole.folder / "adapter")
    assert names
    assert difference < 1e-3 * size
    assert again["hours"] > 0


def running(folder):
    return [
        pid
        for pid in (each for each in os.listdir("/proc") if each.isdigit())
        if str(folder) in open(f"/proc/{pid}/cmdline").read() and "runner.py" in open(f"/proc/{pid}/cmdline").read()
    ]


def test_an_adapter_that_is_finished_is_not_trained_over(trained):
    made, _ = trained
    made.finish(made.distill("adapter"), status=2)
    assert "has a finished adapter" in made.said


@pytest.mark.skipif(not VLLM.is_file(), reason="vLLM is not installed: make test-vllm")
def test_vllm_serves_the_adapter_in_an_evaluation(trained):
    made, _ = trained
    line = ["eval", "tickets.skill", "--adapter", "adapter", "--arms", "base,lora", "--split", "validation", "--json"]
    found = json.loads(made.finish(made.start(*line)))
    assert [arm["arm"] for arm in found["arms"]] == ["base", "lora"]
    assert {arm["n"] for arm in found["arms"]} == {found["examples"]} != {0}
