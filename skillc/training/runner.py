"""Train a LoRA adapter with TRL. Run by the Python of the training environment; imports nothing of skillc.

    python runner.py check JOB.json      lengths, template, LoRA modules, and a timed step of the longest rows
    python runner.py train JOB.json      SFT, then DPO, from the last checkpoint of a stopped training

Each line on standard output is one JSON object. Everything else that is printed goes to standard error.
"""

from __future__ import annotations

import json
import math
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

_OUTPUT = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)
# Nothing is downloaded: base model and data are files.
os.environ.update({"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "TRL_EXPERIMENTAL_SILENCE": "1"})


def tell(event: str, **values: Any) -> None:
    """Print one event."""
    print(json.dumps({"event": event, **values}), file=_OUTPUT, flush=True)


def fail(problem: str, hint: str = "") -> None:
    """Print a problem of the user's files and end."""
    tell("problem", problem=problem, hint=hint)
    raise SystemExit(3)


def rows_of(stage: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a stage's file."""
    with Path(stage["file"]).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def load_tokenizer(job: dict[str, Any]) -> Any:
    """Return the tokenizer of the base model, with a token for padding."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(job["base"], local_files_only=True)
    if tokenizer.chat_template is None:
        fail(f"the base model `{job['base']}` has no chat template", "use an instruction-tuned model")
    if tokenizer.eos_token is None:
        fail(
            f"the tokenizer of `{job['base']}` has no end-of-sequence token", "set `eos_token` in tokenizer_config.json"
        )
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_model(job: dict[str, Any]) -> Any:
    """Return the base model: bfloat16 on a GPU that has it, float32 on a CPU."""
    import torch
    from transformers import AutoModelForCausalLM

    dtype = torch.bfloat16 if _on_gpu() else torch.float32
    model = AutoModelForCausalLM.from_pretrained(job["base"], dtype=dtype, local_files_only=True)
    model.config.use_cache = False
    return model.to("cuda") if _on_gpu() else model


def _on_gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def target_modules(model: Any, wanted: list[str]) -> list[str]:
    """Return the names of the linear layers that get LoRA weights: all but the output layer, or those that are wanted.

    All linear layers, as Dettmers et al. 2023 (arXiv:2305.14314) found necessary to reach full fine-tuning.
    """
    import torch

    head = model.get_output_embeddings()
    names = {
        name.rpartition(".")[2]
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear) and module is not head
    }
    if wanted:
        unknown = sorted(set(wanted) - {name.rpartition(".")[2] for name, _ in model.named_modules()})
        if unknown:
            fail(
                f"the base model has no modules `{'`, `'.join(unknown)}`",
                f"its linear layers are: {', '.join(sorted(names))}",
            )
        return sorted(wanted)
    if not names:
        kind = type(model).__name__
        fail(f"no linear layers were found in `{kind}`", "name the modules that get LoRA weights: `--target-modules`")
    return sorted(names)


# ---- check -----------------------------------------------------------------------------------------


def lengths_of(tokenizer: Any, stage: dict[str, Any]) -> list[tuple[int, int]]:
    """Return tokens of prompt and of prompt with completion, for each completion of a stage."""
    found = []
    rows = rows_of(stage)
    template = _check_template(tokenizer, rows, stage)
    for number, row in enumerate(rows, 1):
        tools = row.get("tools")
        if "messages" in row:
            whole = _tokens(tokenizer, row["messages"], tools, chat_template=template)
            found.append((0, len(whole)))
            continue
        prompt = _tokens(tokenizer, row["prompt"], tools, chat_template=template, add_generation_prompt=True)
        for side in ("completion",) if "completion" in row else ("chosen", "rejected"):
            whole = _tokens(tokenizer, [*row["prompt"], *row[side]], tools, chat_template=template)
            if whole[: len(prompt)] != prompt:
                fail(
                    f"row {number} of `{stage['file']}`: with the chat template of the base model the prompt is not "
                    "the beginning of the conversation, so the loss would count tokens of the prompt",
                    "fix the chat template: adding a reply must not change what comes before it",
                )
            found.append((len(prompt), len(whole)))
    return found


def _tokens(tokenizer: Any, messages: list[Any], tools: Any, **more: Any) -> list[int]:
    return list(
        tokenizer.apply_chat_template(messages, tools=tools, tokenize=True, return_dict=True, **more)["input_ids"]
    )


def needs_mask(rows: list[dict[str, Any]]) -> bool:
    """Return whether rows have messages of others between those of the assistant, which no loss may count."""
    sides = [side for row in rows for side in (row.get("messages"), row.get("completion")) if side]
    return any(each["role"] != "assistant" for side in sides for each in side)


def _check_template(tokenizer: Any, rows: list[dict[str, Any]], stage: dict[str, Any]) -> str | None:
    """Return the chat template that TRL trains the rows with; None for the tokenizer's own."""
    from trl.chat_template_utils import get_training_chat_template, supports_tool_calling

    if any(row.get("tools") for row in rows) and not supports_tool_calling(tokenizer):
        fail(
            f"`{stage['file']}` has calls of tools, which the chat template of the base model would leave out",
            "use a base model whose chat template has tools",
        )
    replies = [each for row in rows for side in ("chosen", "rejected") for each in row.get(side, ())]
    if any(each["role"] != "assistant" for each in replies):
        fail(
            f"`{stage['file']}` has replies with messages of others, whose tokens DPO's loss would count",
            "`chosen` and `rejected` are one message of the assistant each, as `skillc export dpo` writes them",
        )
    if not needs_mask(rows):
        return None
    try:
        found = get_training_chat_template(tokenizer)
    except ValueError:
        fail(
            f"`{stage['file']}` has whole conversations, and the chat template of the base model does not mark the "
            "assistant's tokens, so the loss would count the user's words and results of tools",
            "add `{% generation %}` to the template, or export a row for each message: `skillc export sft --by-turn`",
        )
    return str(found) if found is not None else None


def check(job: dict[str, Any]) -> None:
    """Report lengths by stage, LoRA modules, and the seconds a token of a training step on the longest rows."""
    tokenizer = load_tokenizer(job)
    longest = reply = 0
    for stage in job["stages"]:
        pairs = lengths_of(tokenizer, stage)
        limit = job["max_length"]
        tell(
            "lengths",
            stage=stage["kind"],
            longest=max(whole for _, whole in pairs),
            tokens=sum(whole for _, whole in pairs),
            completion_tokens=sum(whole - prompt for prompt, whole in pairs),
            too_long=sum(whole > limit for _, whole in pairs),
        )
        longest = max(longest, *(whole for _, whole in pairs))
        reply = max(reply, *(whole - prompt for prompt, whole in pairs))
    positions = _positions(job)
    if positions is not None and job["max_length"] > positions:
        fail(
            f"`--max-length {job['max_length']}` is more than the {positions} positions of the base model",
            f"use at most {positions}",
        )
    model = load_model(job)
    modules = target_modules(model, job["target_modules"])
    seconds, forward, memory = _timed_step(
        job, model, modules, min(longest, job["max_length"]), min(reply, job["max_length"]), len(tokenizer)
    )
    tell(
        "model",
        architecture=type(model).__name__,
        parameters=sum(each.numel() for each in model.parameters()),
        target_modules=modules,
        device="cuda" if _on_gpu() else "cpu",
        seconds_a_token=seconds,
        forward_seconds_a_token=forward,
        memory=memory,
    )


def _positions(job: dict[str, Any]) -> int | None:
    config = json.loads((Path(job["base"]) / "config.json").read_text(encoding="utf-8"))
    found = config.get("max_position_embeddings")
    return found if isinstance(found, int) else None


def _timed_step(
    job: dict[str, Any], model: Any, modules: list[str], length: int, reply: int, words: int
) -> tuple[float, float, int]:
    """Return seconds per token of a training step and of a forward pass, and the peak memory in bytes.

    As in TRL's loss, the output layer is computed for the `reply` last tokens only, where the model can.
    """
    import inspect

    import torch
    from peft import get_peft_model

    adapted = get_peft_model(model, _lora(job, modules))
    adapted.train()
    ids = torch.randint(0, words, (job["batch"], length), device=adapted.device)
    kept = {"logits_to_keep": reply} if "logits_to_keep" in inspect.signature(model.forward).parameters else {}
    spent = []
    try:
        for _ in range(2):
            began = time.monotonic()
            adapted(input_ids=ids, **kept).logits.float().logsumexp(-1).mean().backward()
            if _on_gpu():
                torch.cuda.synchronize()
            spent.append(time.monotonic() - began)
        began = time.monotonic()
        with torch.no_grad():
            adapted(input_ids=ids, **kept)
        if _on_gpu():
            torch.cuda.synchronize()
        forward = time.monotonic() - began
    except (torch.OutOfMemoryError, MemoryError):
        fail(
            f"a step of {job['batch']} rows of {length} tokens does not fit into memory",
            "use a smaller `--batch` or a shorter `--max-length`",
        )
    if _on_gpu():
        memory = int(torch.cuda.max_memory_allocated())
    else:
        import resource

        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    tokens = job["batch"] * length
    return min(spent) / tokens, forward / tokens, memory


# ---- train -----------------------------------------------------------------------------------------


def _lora(job: dict[str, Any], modules: list[str]) -> Any:
    from peft import LoraConfig

    return LoraConfig(
        r=job["rank"],
        lora_alpha=job["alpha"],
        lora_dropout=job["dropout"],
        target_modules=modules,
        bias="none",
        task_type="CAUSAL_LM",
    )


def train(job: dict[str, Any]) -> None:
    """Run the stages that are not finished, each from its last checkpoint, and write the adapter."""
    from peft import PeftModel
    from transformers import set_seed

    home = Path(job["home"])
    tokenizer = load_tokenizer(job)
    before: Path | None = None
    for stage in job["stages"]:
        done = home / stage["kind"] / "adapter"
        if (done / "finished.json").is_file():
            tell("stage", **json.loads((done / "finished.json").read_text(encoding="utf-8")), resumed=True)
            before = done
            continue
        set_seed(job["seed"])
        model = load_model(job)
        modules = target_modules(model, job["target_modules"])
        if before is not None:
            model = PeftModel.from_pretrained(model, str(before), is_trainable=True)
        _stage(job, stage, model, None if before is not None else _lora(job, modules), tokenizer, done)
        before = done


def _stage(job: dict[str, Any], stage: dict[str, Any], model: Any, lora: Any, tokenizer: Any, done: Path) -> None:
    from datasets import Dataset
    from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

    home = Path(job["home"]) / stage["kind"]
    rows = rows_of(stage)
    device = {"use_cpu": not _on_gpu(), "bf16": _on_gpu(), "gradient_checkpointing": _on_gpu()}
    steps = math.ceil(len(rows) / job["batch"]) * stage["epochs"]
    common = {
        "output_dir": str(home),
        "num_train_epochs": stage["epochs"],
        "per_device_train_batch_size": job["batch"],
        "learning_rate": stage["learning_rate"],
        "lr_scheduler_type": "cosine",
        "warmup_steps": max(1, steps // 20),
        "max_length": job["max_length"],
        "logging_steps": 1,
        "save_steps": max(1, min(stage["save_steps"], steps)),
        "save_total_limit": 2,
        "report_to": "none",
        "disable_tqdm": True,
        "seed": job["seed"],
        "data_seed": job["seed"],
        **device,
    }
    if not _on_gpu():
        _score_labels_only()
    if stage["kind"] == "sft":
        loss = {"assistant_only_loss": needs_mask(rows)}
        if "completion" in rows[0]:
            loss["completion_only_loss"] = True
        kind, settings = SFTTrainer, SFTConfig(**common, **loss)
    else:
        kind, settings = DPOTrainer, DPOConfig(**common, beta=stage["beta"])
    more = {"peft_config": lora} if lora is not None else {}
    trainer = _resumable(kind)(
        model=model,
        args=settings,
        # Arguments of calls differ in name from row to row; columns of one type would fill the others with nulls.
        train_dataset=Dataset.from_list(rows, on_mixed_types="use_json"),
        processing_class=tokenizer,
        callbacks=[_progress(stage["kind"], steps)],
        **more,
    )
    checkpoint = _last_checkpoint(home)
    tell("begin", stage=stage["kind"], steps=steps, checkpoint=checkpoint and checkpoint.name)
    began = time.monotonic()
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint is not None else None)
    losses = [each["loss"] for each in trainer.state.log_history if "loss" in each]
    figures: dict[str, Any] = {
        "stage": stage["kind"],
        "steps": trainer.state.global_step,
        "loss_first": losses[0] if losses else None,
        "loss_last": losses[-1] if losses else None,
        "seconds": time.monotonic() - began + _spent_before(home),
    }
    margins = [each["rewards/margins"] for each in trainer.state.log_history if "rewards/margins" in each]
    if margins:
        figures["margin_first"], figures["margin_last"] = margins[0], margins[-1]
    trainer.accelerator.unwrap_model(trainer.model).save_pretrained(str(done), selected_adapters=["default"])
    # Written last, so that an adapter without it is not finished.
    beside = done / "finished.json.new"
    beside.write_text(json.dumps(figures), encoding="utf-8")
    beside.replace(done / "finished.json")
    tell("stage", **figures, resumed=False)


def _score_labels_only() -> None:
    """Let TRL's loss compute the output layer for the tokens of the completions only, as it does on a GPU.

    On other devices TRL computes it for every token, since varying shapes recompile on some accelerators. On a CPU that
    takes two thirds of a step of a small model. The losses are the same.
    """
    from trl.trainer import utils

    if hasattr(utils, "_use_triton"):
        utils._use_triton = lambda device: True


def _resumable(kind: Any) -> Any:
    """Return a trainer that loads the adapter in training from a checkpoint.

    If the model has a second adapter, DPO's reference, the trainer of transformers loads only that one.
    """

    class Resumable(kind):  # type: ignore[misc]
        def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
            from peft import set_peft_model_state_dict
            from safetensors.torch import load_file

            weights = load_file(str(Path(resume_from_checkpoint) / "adapter_model.safetensors"))
            set_peft_model_state_dict(model or self.model, weights, adapter_name="default")

    return Resumable


def _last_checkpoint(home: Path) -> Path | None:
    """Return the newest whole checkpoint: the trainer writes its state last."""
    whole = [each for each in home.glob("checkpoint-*") if (each / "trainer_state.json").is_file()]
    return max(whole, key=lambda each: int(each.name.rpartition("-")[2]), default=None)


def _spent_before(home: Path) -> float:
    """Return the seconds of sessions of this stage that were stopped, as far as they were recorded."""
    path = home / "seconds.json"
    return float(json.loads(path.read_text())["before"]) if path.is_file() else 0.0


def _progress(stage: str, steps: int) -> Any:
    from transformers import TrainerCallback

    class Progress(TrainerCallback):  # type: ignore[misc]
        def __init__(self) -> None:
            self.began = time.monotonic()
            self.before = 0.0

        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.began = time.monotonic()
            path = Path(args.output_dir) / "seconds.json"
            self.before = float(json.loads(path.read_text())["total"]) if path.is_file() else 0.0
            _write(path, {"before": self.before, "total": self.before})

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            total = self.before + time.monotonic() - self.began
            _write(Path(args.output_dir) / "seconds.json", {"before": self.before, "total": total})

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            values = {name: logs[name] for name in ("loss", "rewards/margins") if name in (logs or {})}
            if values:
                tell("step", stage=stage, step=state.global_step, steps=steps, **values)

    return Progress()


def _write(path: Path, value: Any) -> None:
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(value), encoding="utf-8")
    beside.replace(path)


def end_with(parent: int) -> None:
    """End this process when the one that started it is gone, so that no orphan writes beside a resumed training."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.2)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Run a command of the job."""
    end_with(os.getppid())
    command, path = sys.argv[1:]
    job = json.loads(Path(path).read_text(encoding="utf-8"))
    {"check": check, "train": train}[command](job)
    tell("end")


if __name__ == "__main__":
    main()
