"""Trains a LoRA adapter on a few conversations, as PEFT would, and leaves it in PEFT's form. Runs in `.venv-vllm`.

    python train_adapter.py MODEL FOLDER CONVERSATIONS.json STEPS

A conversation is `{"messages": [...], "reply": "..."}`; only the reply is learned. Prints the first and the last loss.
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

RANK, ALPHA, BATCH = 8, 16, 8
LAYERS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class Adapted(torch.nn.Module):
    """A linear layer and what is added to it."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.a = torch.nn.Parameter(torch.randn(RANK, layer.in_features) * layer.in_features**-0.5)
        self.b = torch.nn.Parameter(torch.zeros(layer.out_features, RANK))

    def forward(self, x):
        return self.layer(x) + ALPHA / RANK * (x @ self.a.T @ self.b.T)


def tokens(words, conversation):
    """The ids of a conversation, and the labels: -100 where nothing is learned."""
    asked = words.apply_chat_template(conversation["messages"], add_generation_prompt=True, return_dict=True)
    prompt = list(asked["input_ids"])
    reply = [*words(conversation["reply"], add_special_tokens=False)["input_ids"], words.eos_token_id]
    return prompt + reply, [-100] * len(prompt) + reply


def main():
    torch.manual_seed(5)
    torch.set_num_threads(1)
    source, folder, steps = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[4])
    words = AutoTokenizer.from_pretrained(source)
    model = AutoModelForCausalLM.from_pretrained(source).float().requires_grad_(False)
    adapted = {}
    for name, layer in list(model.named_modules()):
        if name.rpartition(".")[2] in LAYERS:
            adapted[name] = Adapted(layer)
            parent, _, last = name.rpartition(".")
            setattr(model.get_submodule(parent), last, adapted[name])
    learned = [tokens(words, each) for each in json.loads(Path(sys.argv[3]).read_text())]
    weights = [weight for each in adapted.values() for weight in (each.a, each.b)]
    optimizer = torch.optim.AdamW(weights, lr=3e-3, weight_decay=0)
    losses = []
    for step in range(steps):
        batch = [learned[i] for i in torch.randint(len(learned), (BATCH,)).tolist()]
        longest = max(len(ids) for ids, _ in batch)
        ids = torch.tensor([[*ids, *[0] * (longest - len(ids))] for ids, _ in batch])
        labels = torch.tensor([[*labels, *[-100] * (longest - len(labels))] for _, labels in batch])
        seen = torch.tensor([[1] * len(each) + [0] * (longest - len(each)) for each, _ in batch])
        loss = model(input_ids=ids, attention_mask=seen, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        optimizer.param_groups[0]["lr"] = 3e-3 * (1 - step / steps)
        losses.append(loss.item())
    folder.mkdir(parents=True, exist_ok=True)
    saved = {}
    for name, each in adapted.items():
        saved[f"base_model.model.{name}.lora_A.weight"] = each.a.detach().contiguous()
        saved[f"base_model.model.{name}.lora_B.weight"] = each.b.detach().contiguous()
    save_file(saved, folder / "adapter_model.safetensors")
    about = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": RANK,
        "lora_alpha": ALPHA,
        "target_modules": list(LAYERS),
        "bias": "none",
        "base_model_name_or_path": source.name,
    }
    (folder / "adapter_config.json").write_text(json.dumps(about))
    print(json.dumps([losses[0], losses[-1]]))


if __name__ == "__main__":
    main()
