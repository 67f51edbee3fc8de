"""Makes a small Llama of random weights, and a LoRA adapter for it. Runs in `.venv-vllm`, which has transformers.

    python make_model.py FOLDER

leaves `FOLDER/tiny` and `FOLDER/poet`; the same bytes each time.
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

HIDDEN, LAYERS, VOCABULARY, RANK = 128, 4, 512, 8
SENTENCES = (
    "You sort texts. Say what kind of thing a text is about.",
    "I saw an old apple near the market, a red hammer from the harbour, one otter at the station.",
    "Your input fields are: text. Your output fields are: kind, one of fruit, tool, animal.",
    "All interactions will be structured in the following way, with the appropriate values filled in.",
    "[[ ## text ## ]] [[ ## kind ## ]] [[ ## completed ## ]]",
    "Respond with the corresponding output fields, starting with the field, and then ending with the marker.",
)
TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def tokenizer():
    """Byte-level, so that there is a token for every text."""
    special = ["<|pad|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    made.train_from_iterator(SENTENCES, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="<|end|>", pad_token="<|pad|>", chat_template=TEMPLATE
    )


def model(words):
    """About a million parameters. Large weights, so that what it says hangs on what it is told."""
    torch.manual_seed(7)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=HIDDEN,
        intermediate_size=4 * HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        bos_token_id=None,
        eos_token_id=words.eos_token_id,
        pad_token_id=words.pad_token_id,
        initializer_range=0.2,
        tie_word_embeddings=False,
    )
    return LlamaForCausalLM(config).float()


def adapter(folder):
    """A LoRA adapter in PEFT's format, strong enough to change what is said."""
    chance = torch.Generator().manual_seed(11)
    weights = {}
    for layer in range(LAYERS):
        name = f"base_model.model.model.layers.{layer}.self_attn.q_proj"
        weights[f"{name}.lora_A.weight"] = torch.randn(RANK, HIDDEN, generator=chance)
        weights[f"{name}.lora_B.weight"] = torch.randn(HIDDEN, RANK, generator=chance)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, folder / "adapter_model.safetensors")
    about = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": RANK,
        "lora_alpha": 2 * RANK,
        "target_modules": ["q_proj"],
        "bias": "none",
        "base_model_name_or_path": "tiny",
    }
    (folder / "adapter_config.json").write_text(json.dumps(about))


def main():
    folder = Path(sys.argv[1])
    words = tokenizer()
    made = model(words)
    made.generation_config.eos_token_id = words.eos_token_id
    made.save_pretrained(folder / "tiny", safe_serialization=True)
    words.save_pretrained(folder / "tiny")
    adapter(folder / "poet")
    print(sum(each.numel() for each in made.parameters()))


if __name__ == "__main__":
    main()
