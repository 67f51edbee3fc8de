"""How much memory a model takes, from the `config.json` in its folder.

Weights: as many parameters as a Llama-like decoder of that shape has, times the bytes of one. KV cache: for each token
and layer a key and a value of `head_dim` for each KV head, so 2 x layers x kv_heads x head_dim x bytes; with DeepSeek's
latent attention layers x (kv_lora_rank + qk_rope_head_dim) x bytes. Only layers with attention have a KV cache: in
hybrid models, such as Qwen3.5, those that `layer_types` or `full_attention_interval` name; the small fixed state of the
others is left out. Layers with a sliding window are counted as if they kept the whole context.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_BYTES = {
    "float32": 4,
    "float": 4,
    "float16": 2,
    "half": 2,
    "bfloat16": 2,
    "fp8": 1,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
    "float8_e4m3fn": 1,
    "int8": 1,
}
_BITS_OF_METHOD = {"awq": 4, "gptq": 4, "fp8": 8, "mxfp4": 4, "bitsandbytes": 4}


@dataclass(frozen=True, slots=True)
class Shape:
    """What of a decoder's shape decides its memory.

    Attributes:
        parameters: how many it has.
        weight_bits: of one parameter.
        cache_values: numbers in the KV cache for one token.
        value_bytes: of one of those.
        context: tokens that it was made for; None where the file does not say.
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
        """Bytes of the KV cache of so many tokens."""
        return self.cache_values * self.value_bytes * tokens


def shape_of(config: Mapping[str, Any], dtype: str | None = None) -> Shape | None:
    """The shape in a `config.json`, None where it is no decoder that can be reckoned.

    Args:
        config: the file's values.
        dtype: what the server is told to use, as vLLM names it; None or `auto` takes the file's own.
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
    return Shape(
        parameters=_parameters(own, hidden, layers, heads * size, kept * size, words),
        weight_bits=_weight_bits(own, value),
        cache_values=_caching(own, layers) * per_layer,
        value_bytes=value,
        context=_count(own, "max_position_embeddings", "n_positions"),
    )


def _caching(own: Mapping[str, Any], layers: int) -> int:
    """Layers that have a KV cache."""
    types, interval = own.get("layer_types"), _count(own, "full_attention_interval")
    if isinstance(types, list) and len(types) == layers:
        return sum("linear" not in str(each) for each in types)
    return layers // interval if interval else layers


def _parameters(own: Mapping[str, Any], hidden: int, layers: int, queries: int, keys: int, words: int) -> int:
    """Embedding and head, and per layer attention, feed-forward (each expert's, with a router) and two norms."""
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
    # vLLM serves what is stored in 32 bits in 16, unless it is told otherwise.
    return known if dtype not in (None, "auto") else min(known, 2)


def _weight_bits(own: Mapping[str, Any], value: int) -> int:
    quantized = own.get("quantization_config")
    if not isinstance(quantized, Mapping):
        return 8 * value
    bits = quantized.get("bits")
    return bits if isinstance(bits, int) else _BITS_OF_METHOD.get(str(quantized.get("quant_method")), 8)


def _count(own: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        value = own.get(name)
        if type(value) is int and value > 0:
            return value
    return None
