from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc.doctor.weights import files_of, hub_cache, is_folder_name, shape_of

LLAMA_8B = {
    "vocab_size": 128256,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
LLAMA_1B = {
    **LLAMA_8B,
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "head_dim": 64,
    "tie_word_embeddings": True,
}
MISTRAL_7B = {**LLAMA_8B, "vocab_size": 32000}
MIXTRAL = {**MISTRAL_7B, "num_local_experts": 8}
QWEN_7B = {
    "model_type": "qwen2",
    "vocab_size": 152064,
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "dtype": "bfloat16",
}


@pytest.mark.parametrize(
    ("config", "published"),
    [
        (LLAMA_8B, 8_030_261_248),
        (LLAMA_1B, 1_235_814_400),
        (MISTRAL_7B, 7_241_732_096),
        (MIXTRAL, 46_702_792_704),
        (QWEN_7B, 7_615_616_512),
    ],
    ids=["Llama 3 8B", "Llama 3.2 1B", "Mistral 7B", "Mixtral 8x7B", "Qwen 2.5 7B"],
)
def test_parameters_are_those_that_are_published(config: dict[str, Any], published: int) -> None:
    shape = shape_of(config)
    assert shape is not None
    assert shape.parameters == published
    assert shape.weights == 2 * published


def test_the_cache_of_a_token_is_two_values_for_each_layer_kv_head_and_dimension() -> None:
    shape = shape_of(LLAMA_8B)
    assert shape is not None
    assert shape.cache(1) == 2 * 32 * 8 * 128 * 2 == 128 * 1024
    assert shape.cache(8192) == 1024**3
    assert shape.context == 8192
    latent = shape_of({**LLAMA_8B, "num_hidden_layers": 61, "kv_lora_rank": 512, "qk_rope_head_dim": 64})
    assert latent is not None
    assert latent.cache(1) == 61 * (512 + 64) * 2


@pytest.mark.parametrize(
    ("more", "dtype", "bits"),
    [
        ({}, None, 16),
        ({}, "auto", 16),
        ({}, "float32", 32),
        ({"torch_dtype": "float32"}, None, 16),
        ({"quantization_config": {"quant_method": "awq", "bits": 4}}, None, 4),
        ({"quantization_config": {"quant_method": "fp8"}}, None, 8),
        ({"quantization_config": {"quant_method": "new"}}, None, 8),
    ],
)
def test_bits_of_a_weight(more: dict[str, Any], dtype: str | None, bits: int) -> None:
    shape = shape_of({**LLAMA_8B, **more}, dtype)
    assert shape is not None
    assert shape.weight_bits == bits


def test_the_text_part_of_a_model_that_also_sees() -> None:
    assert shape_of({"vision_config": {"hidden_size": 1}, "text_config": LLAMA_8B}) == shape_of(LLAMA_8B)


@given(st.dictionaries(st.sampled_from(sorted(LLAMA_8B)), st.none() | st.integers() | st.text() | st.booleans()))
def test_no_config_breaks_it(config: dict[str, Any]) -> None:
    shape = shape_of(config)
    assert shape is None or shape.parameters > 0


def write(folder: Path, **files: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(LLAMA_8B))
    for name, size in files.items():
        (folder / name.replace("__", ".")).write_bytes(b"x" * size)
    return folder


def test_the_weights_of_a_folder_are_of_one_format(tmp_path: Path) -> None:
    write(tmp_path / "m", a__safetensors=70, b__safetensors=30, pytorch_model__bin=500, tokenizer__bin=9)
    found = files_of("m", tmp_path, {}, None)
    assert found is not None
    assert (found.size, found.config["vocab_size"]) == (100, 128256)
    write(tmp_path / "old", pytorch_model__bin=500, training_args__bin=9, optimizer__pt=9)
    old = files_of("./old", tmp_path, {}, None)
    assert old is not None
    assert old.size == 500
    bare = files_of(str(write(tmp_path / "bare")), tmp_path, {}, None)
    assert bare is not None
    assert bare.size is None
    assert files_of("missing", tmp_path, {"HF_HUB_CACHE": str(tmp_path)}, None) is None


def test_a_model_of_the_hub_is_found_in_its_cache_at_the_version_that_main_names(tmp_path: Path) -> None:
    home = tmp_path / "hub" / "models--org--name"
    write(home / "snapshots" / "1111", a__safetensors=10)
    write(home / "snapshots" / "2222", a__safetensors=20)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text("2222\n")
    for environ in ({"HF_HUB_CACHE": str(tmp_path / "hub")}, {"HF_HOME": str(tmp_path)}):
        assert hub_cache(environ) == tmp_path / "hub"
        found = files_of("org/name", tmp_path / "elsewhere", environ, None)
        assert found is not None
        assert found.size == 20


def test_a_config_that_is_no_json_says_nothing(tmp_path: Path) -> None:
    write(tmp_path / "m")
    (tmp_path / "m" / "config.json").write_text("{")
    found = files_of("m", tmp_path, {}, None)
    assert found is not None
    assert shape_of(found.config) is None


@pytest.mark.parametrize(
    ("name", "folder"),
    [("org/name", False), ("./m", True), ("/a/b", True), ("m", True), ("a/b/c", True), ("~/m", True)],
)
def test_which_names_can_only_be_folders(name: str, folder: bool) -> None:
    assert is_folder_name(name) == folder


# Shaped as the models of Qwen3.5: every fourth layer has attention, the others a state of fixed size.
QWEN35 = {
    "text_config": {
        "vocab_size": 248320,
        "hidden_size": 2560,
        "intermediate_size": 9216,
        "num_hidden_layers": 32,
        "num_attention_heads": 16,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "full_attention_interval": 4,
        "layer_types": ["linear_attention", "linear_attention", "linear_attention", "full_attention"] * 8,
        "max_position_embeddings": 262144,
        "tie_word_embeddings": True,
        "dtype": "bfloat16",
    }
}


@pytest.mark.parametrize("without", ["layer_types", "full_attention_interval"])
def test_only_layers_with_attention_have_a_kv_cache(without: str) -> None:
    text = {name: value for name, value in QWEN35["text_config"].items() if name != without}
    shape = shape_of({"text_config": text})
    assert shape is not None
    assert shape.cache(1) == 8 * 2 * 4 * 256 * 2
