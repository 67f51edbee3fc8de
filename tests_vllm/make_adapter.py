"""Makes a LoRA adapter of random weights for a model. Runs in `.venv-vllm`.

    python make_adapter.py MODEL FOLDER

leaves it in FOLDER; the same bytes each time.
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

RANK = 8


def main():
    model, folder = Path(sys.argv[1]), Path(sys.argv[2])
    config = json.loads((model / "config.json").read_text())
    width, heads = config["hidden_size"], config["num_attention_heads"] * config["head_dim"]
    chance = torch.Generator().manual_seed(11)
    weights = {}
    for layer in range(config["num_hidden_layers"]):
        name = f"base_model.model.model.layers.{layer}.self_attn.q_proj"
        # Strong enough to change what is said, and not how.
        weights[f"{name}.lora_A.weight"] = torch.randn(RANK, width, generator=chance)
        weights[f"{name}.lora_B.weight"] = 0.04 * torch.randn(heads, RANK, generator=chance)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, folder / "adapter_model.safetensors")
    about = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": RANK,
        "lora_alpha": 2 * RANK,
        "target_modules": ["q_proj"],
        "bias": "none",
        "base_model_name_or_path": model.name,
    }
    (folder / "adapter_config.json").write_text(json.dumps(about))


if __name__ == "__main__":
    main()
