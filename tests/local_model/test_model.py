"""The committed weights: what they are, how large, and that the card says what was measured."""

import json
import struct
from pathlib import Path

import pytest
from local_model.making import tokenizer
from local_model.making.conditions import CONDITIONS
from tokenizers import Tokenizer

MODEL = Path(__file__).resolve().parents[2] / "examples" / "local_model" / "model"
ROWS = json.loads((MODEL / "evaluation.json").read_text())


def test_it_is_small_and_in_half_precision():
    assert sum(path.stat().st_size for path in MODEL.iterdir()) < 60_000_000
    with (MODEL / "model.safetensors").open("rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
    tensors = {name: about for name, about in header.items() if name != "__metadata__"}
    assert {about["dtype"] for about in tensors.values()} == {"F16"}
    config = json.loads((MODEL / "config.json").read_text())
    assert config["architectures"] == ["Qwen3ForCausalLM"]
    assert tensors["model.embed_tokens.weight"]["shape"] == [config["vocab_size"], config["hidden_size"]]


def test_its_tokenizer_is_the_one_that_is_built():
    saved, built = Tokenizer.from_file(str(MODEL / "tokenizer.json")), tokenizer.build()
    assert saved.get_vocab() == built.get_vocab()
    for text in (
        'If it says "Gift card" or e-mail,\n\n- answer X-Y.',
        "[[ ## team ## ]]\nbilling\n\n[[ ## completed ## ]]",
    ):
        assert saved.encode(text).ids == built.encode(text).ids
        assert saved.decode(saved.encode(text).ids) == built.decode(built.encode(text).ids)
    assert (MODEL / "chat_template.jinja").read_text() == tokenizer.TEMPLATE


def test_all_conditions_were_measured():
    assert [row["condition"] for row in ROWS] == [condition.name for condition in CONDITIONS]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["condition"])
def test_the_card_shows_what_was_measured_and_what_was_missed(row):
    card = (MODEL / "README.md").read_text()
    (line,) = (line for line in card.splitlines() if line.startswith(f"| {row['condition']} |"))
    most = row["condition"] == "without the rule"
    missed = row["target"] is not None and (row["right"] > row["target"] if most else row["right"] < row["target"])
    assert f"| {row['right']:.3f} | {row['low']:.3f} to {row['high']:.3f} | {row['n']} |" in line
    assert ("missed" in line) == missed
    failed = f"\n- {row['right']:.2f}: {row['condition']}\n"
    assert (failed in card.split("## What it can't do")[1]) == (row["right"] < 0.9 and not most)
