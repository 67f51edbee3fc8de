"""The weights of a served model: its files, and the shape that its configuration describes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skillc.dataclass import dataclass

_KINDS = (".safetensors", ".bin", ".pt", ".gguf")
_NOT_WEIGHTS = ("optimizer", "scheduler", "training_args", "rng_state", "tokenizer")


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model's folder, the values of its `config.json`, and the bytes of its weights, None without weights."""

    folder: Path
    config: Mapping[str, Any]
    size: int | None


def files_of(model: str, root: Path, environ: Mapping[str, str], revision: str | None) -> ModelFiles | None:
    """Find the files of a model, a folder relative to `root` or a name on the hub; None if not on this machine."""
    for folder in (root / Path(model).expanduser(), _snapshot(model, environ, revision or "main")):
        if (folder / "config.json").is_file():
            return ModelFiles(folder, _config(folder), _size(folder))
    return None


def hub_cache(environ: Mapping[str, str]) -> Path:
    """Return the folder in which the hub's library keeps models."""
    if environ.get("HF_HUB_CACHE"):
        return Path(environ["HF_HUB_CACHE"])
    home = environ.get("HF_HOME") or Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "huggingface"
    return Path(home) / "hub"


def is_folder_name(model: str) -> bool:
    """Whether a name can only be a folder: hub names have one slash and do not begin with a dot, slash or tilde."""
    return model.startswith((".", "/", "~")) or model.count("/") != 1


def is_offline(environ: Mapping[str, str]) -> bool:
    """Whether the environment forbids connections to the hub."""
    value = environ.get("HF_HUB_OFFLINE") or environ.get("TRANSFORMERS_OFFLINE") or ""
    return value.upper() in ("1", "ON", "YES", "TRUE")


def _snapshot(model: str, environ: Mapping[str, str], revision: str) -> Path:
    """Return the folder in the hub's cache from which a server loads a branch or commit of a model."""
    home = hub_cache(environ) / f"models--{model.replace('/', '--')}"
    try:
        commit = (home / "refs" / revision).read_text(encoding="utf-8").strip()
    except OSError:
        commit = revision
    return home / "snapshots" / commit


def _config(folder: Path) -> Mapping[str, Any]:
    try:
        data = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _size(folder: Path) -> int | None:
    """Return the bytes of the weights, in the format that vLLM would load."""
    for kind in _KINDS:
        found = [file for file in folder.glob(f"*{kind}") if not file.name.startswith(_NOT_WEIGHTS)]
        if found:
            return sum(file.stat().st_size for file in found)
    return None


# Bytes of a value by type; any other type has 2.
_BYTES = {
    "float32": 4,
    "float": 4,
    "fp8": 1,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
    "float8_e4m3fn": 1,
    "int8": 1,
}
_BITS_OF_METHOD = {"awq": 4, "gptq": 4, "fp8": 8, "mxfp4": 4, "bitsandbytes": 4}


@dataclass(frozen=True, slots=True)
class ModelShape:
    """The dimensions of a decoder that determine its memory.

    Attributes:
        parameters: how many it has.
        weight_bits: of one parameter.
        cache_values: numbers in the KV cache for one token.
        value_bytes: of one of those.
        context: maximum tokens of a sequence; None if the file does not declare it.
    """

    parameters: int
    weight_bits: int
    cache_values: int
    value_bytes: int
    context: int | None = None

    @property
    def weights(self) -> int:
        """Bytes of the weights."""
        return self.parameters * self.weight_bits // 8

    def cache(self, tokens: int) -> int:
        """Return the bytes of the KV cache for a number of tokens."""
        return self.cache_values * self.value_bytes * tokens


def shape_of(config: Mapping[str, Any], dtype: str | None = None) -> ModelShape | None:
    """Read the shape from a `config.json`; None if it is not a known decoder.

    `dtype` is the server's setting, as vLLM names it; None or `auto` is the file's type.
    """
    text = config.get("text_config")
    own = {**config, **text} if isinstance(text, Mapping) else dict(config)
    hidden, layers = _count(own, "hidden_size", "n_embd", "d_model"), _count(own, "num_hidden_layers", "n_layer")
    heads, words = _count(own, "num_attention_heads", "n_head"), _count(own, "vocab_size")
    if not (hidden and layers and heads and words):
        return None
    kept = _count(own, "num_key_value_heads", "num_kv_heads") or (1 if own.get("multi_query") else heads)
    size = _count(own, "head_dim") or hidden // heads
    latent = _count(own, "kv_lora_rank")
    per_layer = latent + (_count(own, "qk_rope_head_dim") or 0) if latent else 2 * kept * size
    value = _value_bytes(own, dtype)
    return ModelShape(
        parameters=_parameters(own, hidden, layers, heads * size, kept * size, words),
        weight_bits=_weight_bits(own, value),
        cache_values=_caching(own, layers) * per_layer,
        value_bytes=value,
        context=_count(own, "max_position_embeddings", "n_positions"),
    )


def _caching(own: Mapping[str, Any], layers: int) -> int:
    """Return the number of layers that have a KV cache."""
    types, interval = own.get("layer_types"), _count(own, "full_attention_interval")
    if isinstance(types, list) and len(types) == layers:
        return sum("linear" not in str(each) for each in types)
    return layers // interval if interval else layers


def _parameters(own: Mapping[str, Any], hidden: int, layers: int, queries: int, keys: int, words: int) -> int:
    """Count embedding and head, and per layer attention, feed-forward (each expert's, with a router) and two norms."""
    inner = _count(own, "moe_intermediate_size", "intermediate_size", "n_inner", "ffn_dim") or 4 * hidden
    experts = _count(own, "num_local_experts", "num_experts", "n_routed_experts") or 1
    shared = (_count(own, "n_shared_experts") or 0) if experts > 1 else 0
    biased = bool(own.get("attention_bias") or own.get("model_type") == "qwen2")
    attention = 2 * hidden * queries + 2 * hidden * keys + (queries + 2 * keys if biased else 0)
    forward = 3 * hidden * inner * (experts + shared) + (hidden * experts if experts > 1 else 0)
    tables = 1 if own.get("tie_word_embeddings") else 2
    return tables * words * hidden + layers * (attention + forward + 2 * hidden) + hidden


def _value_bytes(own: Mapping[str, Any], dtype: str | None) -> int:
    named = dtype if dtype not in (None, "auto") else own.get("torch_dtype") or own.get("dtype")
    known = _BYTES.get(str(named), 2)
    # By default vLLM serves 32-bit weights in 16 bits.
    return known if dtype not in (None, "auto") else min(known, 2)


def _weight_bits(own: Mapping[str, Any], value: int) -> int:
    quantized = own.get("quantization_config")
    if not isinstance(quantized, Mapping):
        return 8 * value
    bits = quantized.get("bits")
    return bits if isinstance(bits, int) else _BITS_OF_METHOD.get(str(quantized.get("quant_method")), 8)


def _count(own: Mapping[str, Any], *names: str) -> int | None:
    return next((value for value in map(own.get, names) if type(value) is int and value > 0), None)
