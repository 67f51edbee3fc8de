"""The options of a server that skillc starts, as typed values: `serve = vllm { max_len = 8192 }`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any

from pydantic import JsonValue

from skillc.errors import SkillcError
from skillc.plan.schema import ModelPlan
from skillc.text import listed

PROVIDER = "hosted_vllm"
DTYPES = ("auto", "half", "float16", "bfloat16", "float", "float32")
# Flags that skillc sets itself, so that a program may not.
_OURS = ("--model", "--host", "--port", "--served-model-name", "--api-key", "--lora-modules", "--uds", "--root-path")


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of a `serve` block; paths as written, times in seconds.

    Attributes:
        model: a folder, or a name on the hub; None means the name behind `hosted_vllm/`.
        revision: commit or branch of a name on the hub.
        lora: folders of adapters by the name that each is served under.
        max_len: tokens of prompt and reply together.
        gpu_share: share of each GPU's memory.
        keep: whether the server runs on after the run.
        timeout: seconds that a start may take.
        args: further arguments, as vLLM reads them.
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
    port: int | None = None
    python: str | None = None
    keep: bool = False
    timeout: float = 1800.0
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


def options_of(model: ModelPlan) -> Options:
    """The options of a role whose plan has a `serve` block.

    Raises:
        SkillcError: a name or a value that there is not; the message names the role and what was meant.
    """
    given = model.serve or {}
    provider, slash, name = model.model.partition("/")
    if provider != PROVIDER or not slash or not name:
        raise SkillcError(
            f"model `{model.role}` is `{model.model}`, and `serve = vllm` serves models of `{PROVIDER}`",
            hint=f'write `"{PROVIDER}/{name or model.model}"`',
        )
    for key in given:
        if key not in _READERS:
            raise _wrong(model, f"knows no setting `{key}`", _meant(key, _READERS))
    read = {key: _READERS[key](model, key, value) for key, value in given.items() if value is not None}
    return Options(**read)


def _meant(word: str, known: Iterable[str]) -> str:
    names = list(known)
    near = get_close_matches(word, names, 1)
    return f"did you mean `{near[0]}`?" if near else f"there are {listed(names)}"


def _wrong(model: ModelPlan, what: str, hint: str | None = None) -> SkillcError:
    return SkillcError(f"`serve` of model `{model.role}` {what}", hint=hint)


def _text(model: ModelPlan, key: str, value: JsonValue) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _wrong(model, f"takes a text for `{key}`, not `{value}`", f'write `{key} = "..."`')
    return value


def _whole(least: int, most: int | None = None) -> Callable[[ModelPlan, str, JsonValue], int]:
    def read(model: ModelPlan, key: str, value: JsonValue) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < least or (most and value > most):
            bounds = f"from {least} to {most}" if most else f"of at least {least}"
            raise _wrong(model, f"takes a whole number {bounds} for `{key}`, not `{value}`")
        return value

    return read


def _number(model: ModelPlan, key: str, value: JsonValue) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
        raise _wrong(model, f"takes a number above 0 for `{key}`, not `{value}`")
    return float(value)


def _share(model: ModelPlan, key: str, value: JsonValue) -> float:
    share = _number(model, key, value)
    if share > 1:
        raise _wrong(model, f"takes a share of at most 1 for `{key}`, not `{value}`", f"write `{key} = 0.9`")
    return share


def _switch(model: ModelPlan, key: str, value: JsonValue) -> bool:
    if not isinstance(value, bool):
        raise _wrong(model, f"takes `on` or `off` for `{key}`, not `{value}`")
    return value


def _dtype(model: ModelPlan, key: str, value: JsonValue) -> str:
    if value not in DTYPES:
        raise _wrong(model, f"knows no `{key}` `{value}`", _meant(str(value), DTYPES))
    return str(value)


def _adapters(model: ModelPlan, key: str, value: JsonValue) -> dict[str, str]:
    if isinstance(value, dict):
        found = {name: _text(model, f"{key}.{name}", folder) for name, folder in value.items()}
    else:
        split = [str(item).partition("=") for item in value] if isinstance(value, list) else []
        if not split or any(not (name and equals and folder) for name, equals, folder in split):
            raise _wrong(model, f"takes adapters for `{key}`, not `{value}`", f'write `{key} {{ name = "folder" }}`')
        found = {name: folder for name, _, folder in split}
        if len(found) < len(split):
            raise _wrong(model, f"names an adapter twice in `{key}`")
    if not found:
        raise _wrong(model, f"names no adapter in `{key}`", f'write `{key} {{ name = "folder" }}`')
    return dict(sorted(found.items()))


def _arguments(model: ModelPlan, key: str, value: JsonValue) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _wrong(model, f"takes a list of texts for `{key}`", f'write `{key} = ["--block-size", "32"]`')
    found = tuple(str(item) for item in value)
    for argument in found:
        name = argument.partition("=")[0]
        if name in _OURS:
            raise _wrong(model, f"takes no `{name}` in `{key}`, because skillc says it itself", _instead(name))
    return found


def _instead(name: str) -> str | None:
    own = {"--model": "model", "--port": "port", "--lora-modules": "lora"}.get(name)
    return f"write `{own} = ...` in the block" if own else None


def _environment(model: ModelPlan, key: str, value: JsonValue) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(item, str | int | float) for item in value.values()):
        raise _wrong(model, f"takes names with texts or numbers for `{key}`", f'write `{key} {{ NAME = "value" }}`')
    if "VLLM_API_KEY" in value:
        raise _wrong(model, f"takes no `VLLM_API_KEY` in `{key}`", 'declare the key of the model: `key = env("NAME")`')
    return {name: str(item) for name, item in sorted(value.items())}


_READERS: Mapping[str, Callable[[ModelPlan, str, JsonValue], Any]] = {
    "model": _text,
    "revision": _text,
    "tokenizer": _text,
    "chat_template": _text,
    "lora": _adapters,
    "max_len": _whole(1),
    "dtype": _dtype,
    "quantization": _text,
    "gpu_share": _share,
    "tensor_parallel": _whole(1),
    "data_parallel": _whole(1),
    "port": _whole(1, 65535),
    "python": _text,
    "keep": _switch,
    "timeout": _number,
    "args": _arguments,
    "env": _environment,
}
assert set(_READERS) == {each.name for each in fields(Options)}
