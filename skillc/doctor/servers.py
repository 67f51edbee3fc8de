"""Servers that skillc starts itself: whether there is a vLLM for them, and whether the machine holds their models."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import JsonValue

from skillc.doctor.machine import Gpu, Machine, Memory, free_disk
from skillc.doctor.report import Finding
from skillc.doctor.weights import Files, Shape, files_of, hub_cache, is_folder_name, is_offline, shape_of
from skillc.errors import SkillcError
from skillc.models.serving.interpreter import find_interpreter, refused_seed
from skillc.plan.schema import ModelPlan, Plan
from skillc.text import counted, in_bytes, listed

_GROUP = "memory"
_GIB = 1024**3
# vLLM's own default for `gpu_share`, and what a server takes beside weights and KV cache, roughly: activations and
# graphs on a GPU, the process and its libraries on a CPU.
_SHARE, _BESIDE_GPU, _BESIDE_CPU = 0.9, 3 * _GIB // 2, 2 * _GIB
# GiB of KV cache that vLLM takes on a CPU where nobody says it.
_CPU_SPACE, _CPU_VARIABLE = 4.0, "VLLM_CPU_KVCACHE_SPACE"
_VISIBLE = "CUDA_VISIBLE_DEVICES"
# What serves one set of weights in another way, but takes no memory of its own.
_NOT_MEMORY = frozenset({"python", "keep", "timeout", "port", "chat_template", "tokenizer"})


@dataclass(frozen=True, slots=True)
class Server:
    """One server of a program, for one or more roles."""

    roles: tuple[str, ...]
    source: str
    options: Mapping[str, JsonValue]
    models: tuple[ModelPlan, ...] = ()

    @property
    def name(self) -> str:
        """As findings call it."""
        return f"`serve` of {listed(self.roles, 'and')}"

    def count(self, option: str, default: int = 1) -> int:
        """A whole number among the options."""
        value = self.options.get(option)
        return value if isinstance(value, int) and value > 0 else default

    @property
    def share(self) -> float:
        """The share of each GPU's memory that it takes."""
        value = self.options.get("gpu_share")
        return float(value) if isinstance(value, int | float | str) else _SHARE

    @property
    def environment(self) -> Mapping[str, JsonValue]:
        """Variables that the program gives it."""
        value = self.options.get("env")
        return value if isinstance(value, dict) else {}

    def variables(self, environ: Mapping[str, str]) -> Mapping[str, str]:
        """The variables that it runs with: the process's own, and over them the program's."""
        return {**environ, **{name: str(value) for name, value in self.environment.items()}}


def servers_of(plan: Plan) -> list[Server]:
    """The servers that a compile starts; roles whose servers are told the same share one."""
    found: dict[tuple[str, str], list[ModelPlan]] = {}
    for model in plan.models.values():
        if model.serve is not None:
            told = {name: value for name, value in model.serve.items() if name not in _NOT_MEMORY}
            found.setdefault((_source(model), str(sorted(told.items()))), []).append(model)
    return [
        Server(tuple(model.role for model in models), source, models[0].serve or {}, tuple(models))
        for (source, _), models in found.items()
    ]


def check_servers(
    servers: Sequence[Server], root: Path, machine: Machine, running: frozenset[str], environ: Mapping[str, str]
) -> Iterator[Finding]:
    """Whether each server can be started.

    Args:
        servers: of the program.
        root: the program's folder.
        machine: what there is.
        running: roles whose server has just answered.
        environ: the process's variables.
    """
    for server in servers:
        yield _interpreter(f"vllm for {server.name}", _text(server, "python"), root)
        yield from _seeds(server, root, environ)
        variables = server.variables(environ)
        files = files_of(server.source, root, variables, _text(server, "revision"))
        yield _weights(server, files, variables)
        shape = shape_of(files.config, _text(server, "dtype")) if files is not None else None
        answers = running.issuperset(server.roles)
        gpus = visible(machine.gpus, variables)
        if shape is None:
            yield Finding(_GROUP, "note", server.name, "how much memory it takes can't be told without `config.json`")
        elif gpus:
            yield _on_gpus(server, shape, files.size if files else None, gpus, answers)
        else:
            yield _on_cpu(server, shape, files.size if files else None, machine.memory, answers, variables)
    if machine.gpus:
        yield from _together([server for server in servers if not running.issuperset(server.roles)])


def visible(gpus: Sequence[Gpu], variables: Mapping[str, str]) -> Sequence[Gpu]:
    """The GPUs that `CUDA_VISIBLE_DEVICES` leaves; all where it is not set, or names them otherwise than by number."""
    told = variables.get(_VISIBLE)
    if told is None:
        return gpus
    parts = [part.strip() for part in told.split(",") if part.strip()]
    if not all(part.removeprefix("-").isdecimal() for part in parts):
        return gpus
    return [gpus[number] for number in map(int, parts) if 0 <= number < len(gpus)]


def _source(model: ModelPlan) -> str:
    named = (model.serve or {}).get("model")
    return named if isinstance(named, str) else model.model.partition("/")[2]


def check_vllm(root: Path) -> Finding:
    """Whether a server could be started; nothing that every program needs."""
    found = _interpreter("vllm", None, root)
    return replace(found, level="note") if found.level == "missing" else found


def _interpreter(what: str, declared: str | None, root: Path) -> Finding:
    try:
        found = find_interpreter(declared, root)
    except SkillcError as problem:
        return Finding("installed", "missing", what, problem.message, problem.hint)
    return Finding("installed", "ok", what, f"in {found}")


def _seeds(server: Server, root: Path, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Roles whose seeded calls would end the server."""
    for model in server.models:
        problem = refused_seed(model, root, environ)
        if problem is not None:
            yield Finding("installed", "missing", f"seed of `{model.role}`", problem.message, problem.hint)


def _weights(server: Server, files: Files | None, environ: Mapping[str, str]) -> Finding:
    what = f"weights of {server.name}"
    if files is None:
        if is_folder_name(server.source):
            fix = "name the folder that holds `config.json` and the weights"
            return Finding("disk", "missing", what, f"there is no model in `{server.source}`", fix)
        return _to_fetch(what, server, environ)
    if files.size is None and hub_cache(environ) in files.folder.parents:
        return _to_fetch(what, server, environ)
    if files.size is None:
        return Finding("disk", "missing", what, f"there are none in {files.folder}", "put the model's weights there")
    return Finding("disk", "ok", what, f"{in_bytes(files.size)} in {files.folder}")


def _to_fetch(what: str, server: Server, environ: Mapping[str, str]) -> Finding:
    home = hub_cache(environ)
    revision = _text(server, "revision")
    fetch = f"hf download {server.source}{f' --revision {revision}' if revision else ''}"
    if is_offline(environ):
        name = "HF_HUB_OFFLINE" if environ.get("HF_HUB_OFFLINE") else "TRANSFORMERS_OFFLINE"
        where = "the program's `env` block" if name in server.environment else "the environment"
        detail = f"`{server.source}` is not in the hub's cache {home}, and `{name}` in {where} forbids fetching it"
        return Finding("disk", "missing", what, detail, f"fetch it first: `env {name}=0 {fetch}`")
    free = free_disk(home)
    room = f"; {in_bytes(free)} are free in {home}" if free is not None else ""
    detail = f"`{server.source}` is not on this machine: the server will fetch it from the hub{room}"
    return Finding("disk", "note", what, detail, f"to fetch it before: `{fetch}`")


def _on_gpus(server: Server, shape: Shape, size: int | None, gpus: Sequence[Gpu], answers: bool) -> Finding:
    """On each GPU: its share of the weights, what a server takes beside them, and the KV cache in what is left."""
    parallel, copies = server.count("tensor_parallel"), server.count("data_parallel")
    needed = parallel * copies
    if needed > len(gpus):
        detail = f"asks for {needed} GPUs, and there {_are(len(gpus))}"
        return Finding(_GROUP, "missing", server.name, detail, "lower `tensor_parallel` or `data_parallel`")
    smallest = min(gpus[:needed], key=lambda gpu: gpu.total)
    weights = _held(server, shape, size) // parallel
    tokens = server.count("max_len", shape.context or 0)
    one = shape.cache(tokens) // parallel
    budget = int(smallest.total * server.share)
    left = budget - weights - _BESIDE_GPU
    told = f"{in_bytes(weights)} of weights, {in_bytes(one)} of KV cache for {tokens:,} tokens"
    told += " a GPU" if parallel > 1 else ""
    of = f"{server.share:g} of {in_bytes(smallest.total)} ({smallest.name})"
    if left <= 0:
        detail = f"{in_bytes(weights)} of weights do not fit: with {in_bytes(_BESIDE_GPU)} beside them more than {of}"
        fix = _fix_for_gpus(server, shape, size, smallest, tokens, len(gpus) // copies)
        return Finding(_GROUP, "missing", server.name, detail, fix)
    if left < one:
        fix = _fix_for_gpus(server, shape, size, smallest, tokens, len(gpus) // copies)
        return Finding(_GROUP, "missing", server.name, f"needs {told}: more than {of}", fix)
    if smallest.free < budget and not answers:
        free = math.floor(smallest.free / smallest.total * 100) / 100
        enough = smallest.total * free - weights - _BESIDE_GPU >= one
        fix = f"end what uses the GPU (`nvidia-smi` lists it){f', or say `gpu_share = {free:g}`' if enough else ''}"
        detail = f"takes {of}, of which {in_bytes(smallest.free)} are free"
        return Finding(_GROUP, "missing", server.name, detail, fix)
    return Finding(_GROUP, "ok", server.name, f"{told}; {_at_once(left, one)} in {of}")


def _fix_for_gpus(server: Server, shape: Shape, size: int | None, gpu: Gpu, tokens: int, gpus: int) -> str:
    """The least change that lets it fit: a shorter context, more GPUs, else a smaller model."""
    parallel, weights = server.count("tensor_parallel"), _held(server, shape, size)
    budget = gpu.total * server.share - _BESIDE_GPU
    fits = int((budget - weights / parallel) * parallel / shape.cache(1))
    if fits >= min(tokens, 1024):
        return f"say `max_len = {fits // 256 * 256}`"
    for more in (2, 4, 8):
        if parallel < more <= gpus and (weights + shape.cache(tokens)) / more <= budget:
            return f"say `tensor_parallel = {more}`"
    return "serve a smaller model, or one with quantized weights"


def _on_cpu(
    server: Server, shape: Shape, size: int | None, memory: Memory | None, answers: bool, environ: Mapping[str, str]
) -> Finding:
    """In the machine's memory: weights, the KV cache's fixed space, and the process."""
    if memory is None:
        return Finding(
            _GROUP, "note", server.name, "there is no GPU, and this machine does not say how much memory it has"
        )
    weights = _held(server, shape, size)
    tokens = server.count("max_len", shape.context or 0)
    space, one = _space(environ), shape.cache(tokens)
    need = weights + space + _BESIDE_CPU
    told = f"no GPU: {in_bytes(weights)} of weights, {in_bytes(space)} of KV cache"
    room = memory.total if answers else memory.free
    if weights + _BESIDE_CPU > room:
        detail = f"no GPU: {in_bytes(weights)} of weights do not fit: {in_bytes(room)} are free"
        fix = "serve a smaller model, or one with quantized weights"
        return Finding(_GROUP, "missing", server.name, detail, fix)
    if one > space:
        detail = f"{told}, and {tokens:,} tokens take {in_bytes(one)}"
        fix = f"{_set_space(server, math.ceil(one / _GIB))}, or say a smaller `max_len`"
        return Finding(_GROUP, "missing", server.name, detail, fix)
    if need > room:
        detail = f"{told}: with the process about {in_bytes(need)}, and {in_bytes(room)} are free"
        fix = f"{_set_space(server, max(1, math.ceil(one / _GIB)))}, or serve a smaller model"
        return Finding(_GROUP, "missing", server.name, detail, fix)
    return Finding(_GROUP, "ok", server.name, f"{told}; {_at_once(space, one)}; {in_bytes(room)} are free")


def _held(server: Server, shape: Shape, size: int | None) -> int:
    """Bytes of the weights in memory: as in the files, unless they are told to be widened to 32 bits."""
    widened = _text(server, "dtype") in ("float", "float32") and shape.weight_bits == 32
    return shape.weights if widened else (size or shape.weights)


def _together(servers: Sequence[Server]) -> Iterator[Finding]:
    """Servers that are not told otherwise begin at the first GPU, all of them."""
    first = [server for server in servers if _VISIBLE not in server.environment]
    total = sum(server.share for server in first)
    if len(first) > 1 and total > 1:
        names = ", ".join(server.name for server in first)
        share = math.floor(100 / len(first)) / 100
        yield Finding(
            _GROUP,
            "missing",
            "servers together",
            f"{names} take {total:g} of the first GPU",
            f'say `gpu_share = {share:g}` in each, or give each its own GPU: `env {{ {_VISIBLE} = "1" }}`',
        )


def _space(variables: Mapping[str, str]) -> int:
    try:
        gib = float(variables.get(_CPU_VARIABLE, _CPU_SPACE))
    except ValueError:
        gib = _CPU_SPACE
    return int((gib or _CPU_SPACE) * _GIB)


def _set_space(server: Server, gib: int) -> str:
    """How to set the space where it counts: the program's `env` block wins over the environment."""
    if _CPU_VARIABLE in server.environment:
        return f"say `{_CPU_VARIABLE} = {gib}` in its `env` block"
    return f"`export {_CPU_VARIABLE}={gib}`"


def _text(server: Server, option: str) -> str | None:
    value = server.options.get(option)
    return value if isinstance(value, str) else None


def _at_once(room: int, one: int) -> str:
    count = room // one if one else 0
    return f"room for {counted(count, 'such sequence')} at once"


def _are(count: int) -> str:
    return "is 1" if count == 1 else f"are {count}"
