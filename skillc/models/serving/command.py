"""The command line and the environment of a vLLM server: each option is a documented flag of vLLM's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from skillc.models.serving.launch import Launch, lora_rank

HOST = "127.0.0.1"
_MODULE = "vllm.entrypoints.openai.api_server"
# Another interpreter's home would be taken for its own; keys of providers are none of a server's business.
_DROPPED = ("PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")


def command(launch: Launch, python: Path, names: Sequence[str], port: int) -> list[str]:
    """The command line.

    Args:
        launch: what is served.
        python: the interpreter that has vLLM.
        names: what the base model is called, one at least.
        port: on the loopback.
    """
    told, flags = launch.options, ["--enable-prompt-tokens-details"]
    for flag, value in (
        ("--revision", told.revision),
        ("--tokenizer", launch.tokenizer),
        ("--chat-template", launch.chat_template),
        ("--max-model-len", told.max_len),
        ("--dtype", told.dtype),
        ("--quantization", told.quantization),
        ("--gpu-memory-utilization", told.gpu_share),
        ("--tensor-parallel-size", told.tensor_parallel),
        ("--data-parallel-size", told.data_parallel),
    ):
        if value is not None:
            flags += [flag, str(value)]
    if launch.lora:
        rank = lora_rank(launch)
        flags += ["--enable-lora", "--max-loras", str(len(launch.lora))]
        flags += ["--max-lora-rank", str(rank)] if rank is not None else []
        flags += ["--lora-modules", *(f"{name}={folder}" for name, folder in launch.lora)]
    where = ["--host", HOST, "--port", str(port), "--served-model-name", *names]
    return [str(python), "-m", _MODULE, "--model", launch.source, *where, *flags, *told.args]


def environment(launch: Launch, key: str, secret_names: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """The server's variables: the process's own without what is secret, what the program adds, the server's key.

    Args:
        launch: what is served.
        key: what callers have to show; in the environment, because other users see command lines.
        secret_names: variables that hold keys of providers.
        environ: the process's own.
    """
    dropped = {*_DROPPED, *secret_names}
    kept = {name: value for name, value in environ.items() if name not in dropped}
    quiet = {"VLLM_NO_USAGE_STATS": "1", "PYTHONUNBUFFERED": "1"}
    return {**quiet, **kept, **launch.options.env, "VLLM_API_KEY": key}
