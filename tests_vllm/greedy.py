"""What transformers says to the same prompts, greedily. Runs in `.venv-vllm`.

    python greedy.py MODELS PROMPTS.json TOKENS

prints two lists of texts as JSON: the base model's, and with the adapter `poet` merged into its weights.
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer


def said(model, words, prompts, most):
    texts = []
    for messages in prompts:
        asked = words.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt", return_dict=True)
        whole = model.generate(**asked, do_sample=False, max_new_tokens=most)
        texts.append(words.decode(whole[0, asked["input_ids"].shape[1] :], skip_special_tokens=True))
    return texts


def main():
    models, prompts, most = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text()), int(sys.argv[3])
    words = AutoTokenizer.from_pretrained(models / "rule-follower")
    model = AutoModelForCausalLM.from_pretrained(models / "rule-follower").float()
    texts = [said(model, words, prompts, most)]
    about = json.loads((models / "poet" / "adapter_config.json").read_text())
    adapter = load_file(models / "poet" / "adapter_model.safetensors")
    with torch.no_grad():
        for name, a in adapter.items():
            if name.endswith("lora_A.weight"):
                b = adapter[name.replace("lora_A", "lora_B")]
                target = name.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
                model.get_submodule(target).weight += about["lora_alpha"] / about["r"] * (b @ a)
    texts.append(said(model, words, prompts, most))
    print(json.dumps(texts))


if __name__ == "__main__":
    main()
