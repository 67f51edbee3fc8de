"""Writes a checkpoint in Hugging Face's layout: `python -m local_model.making.export FOLDER MODEL`."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import GenerationConfig, Qwen3Config, Qwen3ForCausalLM

from . import tokenizer
from .network import Network, Shape

POSITIONS = 4096


def config(shape: Shape, end: int, pad: int) -> Qwen3Config:
    """The network's sizes as Hugging Face names them."""
    return Qwen3Config(
        vocab_size=shape.vocabulary,
        hidden_size=shape.width,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.heads,
        head_dim=shape.head,
        max_position_embeddings=POSITIONS,
        rms_norm_eps=shape.eps,
        rope_parameters={"rope_type": "default", "rope_theta": shape.theta},
        tie_word_embeddings=True,
        attention_bias=False,
        bos_token_id=None,
        eos_token_id=end,
        pad_token_id=pad,
        dtype=torch.float16,
    )


def whole(network: Network) -> Qwen3ForCausalLM:
    """The network as Hugging Face's model, in single precision."""
    words = _words(network.shape.vocabulary)
    made = Qwen3ForCausalLM(config(network.shape, words.token_to_id(tokenizer.END), words.token_to_id(tokenizer.PAD)))
    made = made.float()
    weights = {"model.embed_tokens.weight": network.embed_tokens, "model.norm.weight": network.norm}
    weights["lm_head.weight"] = network.embed_tokens
    for number, layer in enumerate(network.layers):
        for name, weight in layer.named_parameters():
            room = ""
            if name in ("q_proj", "k_proj", "v_proj", "o_proj", "q_norm", "k_norm"):
                room = "self_attn."
            elif name in ("gate_proj", "up_proj", "down_proj"):
                room = "mlp."
            weights[f"model.layers.{number}.{room}{name}.weight"] = weight
    made.load_state_dict({name: weight.detach().float().cpu() for name, weight in weights.items()}, strict=True)
    return made.eval()


def _words(size: int) -> Tokenizer:
    """Return the tokenizer of a network: that of the first stage, or the one with capitals."""
    first = tokenizer.build(marks=True)
    return first if first.get_vocab_size() == size else tokenizer.build()


def load(checkpoint: Path) -> Network:
    """Load the network of a checkpoint."""
    return _network(torch.load(checkpoint, map_location="cpu")["network"])


def read(model: Path) -> Network:
    """Load the network of a model that was exported."""
    state = {}
    for name, weight in load_file(model / "model.safetensors").items():
        parts = [part for part in name.split(".") if part not in ("model", "self_attn", "mlp", "weight")]
        if parts != ["lm_head"]:
            state[".".join(parts)] = weight.float()
    return _network(state)


def _network(state: dict[str, torch.Tensor]) -> Network:
    layers = len({name.split(".")[1] for name in state if name.startswith("layers.")})
    network = Network(Shape(state["embed_tokens"].shape[0], layers=layers))
    network.load_state_dict(state)
    return network


def export(checkpoint: Path, model: Path) -> None:
    """Writes weights in half precision, configuration and tokenizer."""
    made = whole(load(checkpoint)).half()
    end, pad = made.config.eos_token_id, made.config.pad_token_id
    made.generation_config = GenerationConfig(eos_token_id=end, pad_token_id=pad, do_sample=False)
    made.save_pretrained(model, safe_serialization=True)
    tokenizer.save(_words(made.config.vocab_size), model)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="write a checkpoint as Hugging Face's libraries read it")
    parser.add_argument("folder", type=Path, help="of the training")
    parser.add_argument("model", type=Path, help="to write")
    given = parser.parse_args()
    export(given.folder / "checkpoint.pt", given.model)
    size = sum(path.stat().st_size for path in given.model.iterdir())
    print(f"{given.model}: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
