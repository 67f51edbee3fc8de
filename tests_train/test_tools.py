"""Rows with tools: chat templates of known models render them, and TRL trains on the assistant's tokens alone."""

import json
import shutil

import pytest
from conftest import MODEL, PYTHON, Workshop, by_trainer, write_lines

from skillc.export.conversation import conversation_of, inferred_schemas
from skillc.sessions.session import Event, Session
from skillc.trajectories.trajectory import Message, Observation, ToolCall

TEMPLATES = next((PYTHON.parent.parent / "lib").glob("python*/site-packages/trl/chat_templates"), None)
RENDERED = """
import json, sys
from datasets import Dataset
from transformers import AutoTokenizer
rows = json.loads(sys.argv[3])
tok = AutoTokenizer.from_pretrained(sys.argv[1])
tok.chat_template = open(sys.argv[2]).read()
found = []
for row in Dataset.from_list(rows, on_mixed_types="use_json"):
    whole = row["prompt"] + (row.get("completion") or row["chosen"])
    found.append(tok.apply_chat_template(whole, tools=row["tools"], tokenize=False))
print(json.dumps(found))
"""


def session(number, failed=False):
    steps = [
        Message(f"Where is order {number}?", "user"),
        Message("I look it up."),
        ToolCall("find_order", {"number": f"A-{number}"})
        if number % 2
        else ToolCall("search", {"words": ["order"], "most": 3}),
        Observation("it is in the depot"),
        Message("Nobody knows." if failed else f"Order {number} is in the depot."),
    ]
    return Session(key=f"s:{number}", format="openai", events=tuple(map(Event, steps)))


def rows(kind, number=12):
    made = []
    for i in range(number):
        right, wrong = conversation_of(session(i)), conversation_of(session(i, failed=True))
        tools = list(inferred_schemas([conversation_of(session(1)), conversation_of(session(2))]))
        if kind == "sft":
            made.append({"prompt": right.prompt, "completion": right.messages[1:], "tools": tools})
        else:
            sides = {"chosen": right.messages[-1:], "rejected": wrong.messages[-1:]}
            made.append({"prompt": right.messages[:-1], **sides, "tools": tools})
    return made


@pytest.mark.parametrize("name", ["qwen3", "qwen2_5", "llama3_1", "glm4moe"])
@pytest.mark.parametrize("kind", ["sft", "dpo"])
def test_templates_of_models_render_tools_calls_and_results(kind, name):
    found = by_trainer(RENDERED, MODEL, TEMPLATES / f"{name}.jinja", json.dumps(rows(kind, 2)))
    for number, text in enumerate(found):
        # The schemas, the call of this row alone, and its result.
        assert "find_order" in text
        assert "it is in the depot" in text
        assert ("A-1" in text) == bool(number)
        assert '"required"' in text
        # No argument of another row's call, filled up with null.
        assert "null" not in text
        assert "None" not in text


@pytest.fixture
def with_template(tmp_path):
    """A workshop whose model has the chat template of Qwen3, which has tools."""

    def make(name):
        made = Workshop(tmp_path / (name or "own"))
        (made.folder / "model").unlink()
        shutil.copytree(MODEL, made.folder / "model")
        if name is not None:
            shutil.copy(TEMPLATES / f"{name}.jinja", made.folder / "model" / "chat_template.jinja")
        for kind in ("sft", "dpo"):
            write_lines(made.folder / f"{kind}.jsonl", rows(kind))
        return made

    return make


def test_a_training_on_rows_with_tools(with_template):
    made = with_template("qwen3")
    record = json.loads(made.finish(made.distill("adapter", "--max-length", "2048", "--epochs", "1")))
    assert [stage["stage"] for stage in record["stages"]] == ["sft", "dpo"]
    assert all(stage["loss_first"] > 0 for stage in record["stages"])


def test_a_template_without_tools_is_refused(with_template):
    made = with_template(None)
    made.finish(made.distill("adapter", files=("dpo",)), status=2)
    assert "calls of tools, which the chat template of the base model would leave out" in made.said


MASKS = """
import json, sys
sys.path.insert(0, sys.argv[3])
from transformers import AutoTokenizer
import runner
from datasets import Dataset
from trl import SFTConfig, SFTTrainer
from transformers import AutoModelForCausalLM
rows = json.loads(sys.argv[2])
tok = AutoTokenizer.from_pretrained(sys.argv[1])
trainer = SFTTrainer(
    model=AutoModelForCausalLM.from_pretrained(sys.argv[1]), processing_class=tok,
    args=SFTConfig(output_dir=sys.argv[4], assistant_only_loss=runner.needs_mask(rows), completion_only_loss=True,
                   report_to="none", use_cpu=True, bf16=False, max_length=None),
    train_dataset=Dataset.from_list(rows, on_mixed_types="use_json"))
row = trainer.train_dataset[0]
text = tok.decode([t for t, label in zip(row["input_ids"], row["labels"]) if label != -100])
# The runner sends what is printed to standard error.
print(json.dumps(text), file=runner._OUTPUT, flush=True)
"""


def test_the_loss_counts_calls_and_answers_and_no_result(with_template, tmp_path):
    from skillc.training.environment import RUNNER

    made = with_template("qwen3")
    text = by_trainer(MASKS, made.folder / "model", json.dumps(rows("sft", 2)), RUNNER.parent, tmp_path / "out")
    # The tokenizer of the model writes spaces between all words and signs.
    text = "".join(text.split())
    assert "Ilookitup." in text
    assert '"name":"search"' in text
    assert "Order0isinthedepot." in text
    assert text.count("depot") == 1
    assert "Whereisorder" not in text
