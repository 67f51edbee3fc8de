"""The options of a server that skillc starts, as typed values: `serve = vllm { max_len = 8192 }`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from pydantic import JsonValue

from skillc.dataclass import dataclass
from skillc.diagnostics.suggest import spelling_hint
from skillc.errors import SkillcError
from skillc.language.kinds import DTYPES
from skillc.plan.schema import ModelPlan
from skillc.text import listed

PROVIDER = "hosted_vllm"
# Flags that skillc sets, each with the setting that a program uses in its place.
_RESERVED_FLAGS: Mapping[str, str | None] = {
    "--model": "model",
    "--port": "port",
    "--lora-modules": "lora",
    "--host": None,
    "--served-model-name": None,
    "--api-key": None,
    "--uds": None,
    "--root-path": None,
}


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of a `serve` block; paths as written, times in seconds.

    Attributes:
        model: a folder, or a name on the hub; None is the name after `hosted_vllm/`.
        revision: commit or branch of a name on the hub.
        lora: folders of adapters by the name that each is served under.
        max_len: maximum tokens of prompt and reply together.
        gpu_share: share of each GPU's memory.
        batch_invariant: None for on where vLLM and the GPU support it.
        keep: whether the server outlives the run.
        timeout: limit of a start.
        args: further arguments of vLLM.
        env: variables of the server's environment.
    """

    model: str | None = None
    revision: str | None = None
    tokenizer: str | None = None
    chat_template: str | None = None
    lora: Mapping[str, str] = field(default_factory=dict)
    max_len: int | None = None
    dtype: str | None = None
    quantization: str | None = None
    gpu_share: float | None = None
    tensor_parallel: int | None = None
    data_parallel: int | None = None
    batch_invariant: bool | None = None
    port: int | None = None
    python: str | None = None
    keep: bool = False
    timeout: float = 1800.0
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


def options_of(model: ModelPlan) -> Options:
    """Read the options of a role whose plan has a `serve` block; raise `SkillcError` for an invalid value.

    The checker has checked names and simple types.
    """
    provider, slash, name = model.model.partition("/")
    if provider != PROVIDER or not slash or not name:
        raise SkillcError(
            f"model `{model.role}` is `{model.model}`, and `serve = vllm` serves models of `{PROVIDER}`",
            hint=f'write `"{PROVIDER}/{name or model.model}"`',
        )
    values: dict[str, Any] = {}
    for key, value in (model.serve or {}).items():
        if isinstance(value, str) and not value.strip():
            raise _invalid(model, f"has an empty `{key}`", f'write `{key} = "..."`')
        if value is not None:
            values[key] = _READERS[key](model, value) if key in _READERS else value
    return Options(**values)


def _invalid(model: ModelPlan, problem: str, hint: str | None = None) -> SkillcError:
    return SkillcError(f"`serve` of model `{model.role}` {problem}", hint=hint)


def _share(model: ModelPlan, value: JsonValue) -> float:
    if not isinstance(value, int | float) or not 0 < value <= 1:
        raise _invalid(
            model, f"needs a share above 0 and at most 1 for `gpu_share`, not `{value}`", "`gpu_share = 0.9`"
        )
    return float(value)


def _port(model: ModelPlan, value: JsonValue) -> int:
    if not isinstance(value, int) or not 1 <= value <= 65535:
        raise _invalid(model, f"needs a whole number from 1 to 65535 for `port`, not `{value}`")
    return value


def _timeout(model: ModelPlan, value: JsonValue) -> float:
    if not isinstance(value, int | float) or value <= 0:
        raise _invalid(model, f"needs a time above 0 for `timeout`, not `{value}`", "write `timeout = 60 min`")
    return float(value)


def _dtype(model: ModelPlan, value: JsonValue) -> str:
    if value not in DTYPES:
        hint = spelling_hint(str(value), DTYPES) or f"valid types: {listed(DTYPES)}"
        raise _invalid(model, f"has an unknown `dtype` `{value}`", hint)
    return str(value)


def _adapters(model: ModelPlan, value: JsonValue) -> dict[str, str]:
    hint = 'write `lora { name = "folder" }`'
    if isinstance(value, dict):
        pairs = list(value.items())
    else:
        parts = [str(item).partition("=") for item in value] if isinstance(value, list) else []
        pairs = [(name, folder) for name, _, folder in parts]
    if not pairs or not all(name and isinstance(folder, str) and folder.strip() for name, folder in pairs):
        raise _invalid(model, f"needs adapters with their folders for `lora`, not `{value}`", hint)
    if len(dict(pairs)) < len(pairs):
        raise _invalid(model, "names an adapter twice in `lora`", hint)
    return {name: str(folder) for name, folder in sorted(pairs)}


def _arguments(model: ModelPlan, value: JsonValue) -> tuple[str, ...]:
    arguments = tuple(map(str, value)) if isinstance(value, list) else ()
    for argument in arguments:
        flag = argument.partition("=")[0]
        if flag in _RESERVED_FLAGS:
            setting = _RESERVED_FLAGS[flag]
            hint = f"write `{setting} = ...` in the block" if setting else None
            raise _invalid(model, f"has `{flag}` in `args`, which skillc sets itself", hint)
    return arguments


def _environment(model: ModelPlan, value: JsonValue) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(item, str | int | float) for item in value.values()):
        raise _invalid(model, "needs names with texts or numbers for `env`", 'write `env { NAME = "value" }`')
    if "VLLM_API_KEY" in value:
        raise _invalid(model, "has `VLLM_API_KEY` in `env`", 'declare the key of the model: `key = env("NAME")`')
    return {name: str(item) for name, item in sorted(value.items())}


# The settings whose values the checker does not check in full.
_READERS: Mapping[str, Callable[[ModelPlan, JsonValue], Any]] = {
    "gpu_share": _share,
    "port": _port,
    "timeout": _timeout,
    "dtype": _dtype,
    "lora": _adapters,
    "args": _arguments,
    "env": _environment,
}
