"""Servers that skillc would start: whether vLLM is installed, and whether the machine has memory for their models."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from skillc.dataclass import dataclass
from skillc.doctor.machine import Gpu, Machine, Memory, free_disk, machine_here
from skillc.doctor.report import Finding, Level
from skillc.doctor.weights import ModelFiles, ModelShape, files_of, hub_cache, is_folder_name, is_offline, shape_of
from skillc.errors import SkillcError
from skillc.models.serving.installed import find_interpreter, refused_seed
from skillc.models.serving.options import Options, options_of
from skillc.plan.schema import ModelPlan, Plan
from skillc.text import counted, in_bytes, listed

_GROUP = "memory"
_GIB = 1024**3
# vLLM's default for `gpu_share`, and the approximate memory of a server beside weights and KV cache: activations and
# graphs on a GPU, the process and its libraries on a CPU.
_SHARE, _BESIDE_GPU, _BESIDE_CPU = 0.9, 3 * _GIB // 2, 2 * _GIB
# GiB of KV cache that vLLM takes on a CPU by default.
_CPU_SPACE, _CPU_VARIABLE = 4.0, "VLLM_CPU_KVCACHE_SPACE"
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_SMALLER_MODEL = "serve a smaller model, or one with quantized weights"
# Settings without influence on the memory of a server.
_NOT_MEMORY = frozenset({"python", "keep", "timeout", "port", "chat_template", "tokenizer"})


@dataclass(frozen=True, slots=True)
class ServerPlan:
    """One server of a program, for one or more roles."""

    models: tuple[ModelPlan, ...]
    source: str
    options: Options

    @property
    def name(self) -> str:
        """Its name in findings."""
        return f"`serve` of {listed([model.role for model in self.models], 'and')}"

    @property
    def share(self) -> float:
        """The share of each GPU's memory that it takes."""
        return self.options.gpu_share or _SHARE

    @property
    def copies(self) -> int:
        """Copies of the model."""
        return self.options.data_parallel or 1

    @property
    def parallel(self) -> int:
        """GPUs that share one copy."""
        return self.options.tensor_parallel or 1

    def tokens(self, shape: ModelShape) -> int:
        """Return the maximum tokens of a sequence."""
        return self.options.max_len or shape.context or 0

    def weights(self, shape: ModelShape, size: int | None) -> int:
        """Return the bytes of the weights in memory: as in the files, unless they are widened to 32 bits."""
        widened = self.options.dtype in ("float", "float32") and shape.weight_bits == 32
        return shape.weights if widened else (size or shape.weights)

    def memory(self, level: Level, detail: str, fix: str | None = None) -> Finding:
        """Return a finding about its memory."""
        return Finding(_GROUP, level, self.name, detail, fix)


def servers_of(plan: Plan) -> list[ServerPlan]:
    """Return the servers that a compile starts; roles with equal settings share one. Raises as `options_of`."""
    found: dict[tuple[str, str], list[ModelPlan]] = {}
    for model in plan.models.values():
        if model.serve is not None:
            settings = {name: value for name, value in model.serve.items() if name not in _NOT_MEMORY}
            named = model.serve.get("model")
            source = named if isinstance(named, str) else model.model.partition("/")[2]
            found.setdefault((source, str(sorted(settings.items()))), []).append(model)
    return [ServerPlan(tuple(models), source, options_of(models[0])) for (source, _), models in found.items()]


def check_servers(
    plan: Plan, root: Path, running: frozenset[str], environ: Mapping[str, str], machine: Machine | None = None
) -> Iterator[Finding]:
    """Check whether each server of a program can start; `running` are the roles whose server has just answered."""
    try:
        servers = servers_of(plan)
    except SkillcError as problem:
        yield Finding(_GROUP, "missing", "`serve`", problem.message, problem.hint)
        return
    if not servers:
        return
    machine = machine or machine_here()
    answering = [server for server in servers if running.issuperset(model.role for model in server.models)]
    for server in servers:
        yield _interpreter(f"vllm for {server.name}", server.options.python, root)
        for model in server.models:
            refused = refused_seed(model, root, environ)
            if refused is not None:
                yield Finding("installed", "missing", f"seed of `{model.role}`", refused.message, refused.hint)
        # The server's variables: the process's, overridden by the program's.
        variables = {**environ, **server.options.env}
        files = files_of(server.source, root, variables, server.options.revision)
        yield _weights(server, files, variables)
        shape = shape_of(files.config, server.options.dtype) if files is not None else None
        answers = server in answering
        gpus = _visible(machine.gpus, variables)
        size = files.size if files else None
        if shape is None:
            yield server.memory("note", "its memory is unknown without `config.json`")
        elif gpus:
            yield _on_gpus(server, shape, size, gpus, answers)
        else:
            yield _on_cpu(server, shape, size, machine.memory, answers, variables)
    if machine.gpus:
        yield from _together([server for server in servers if server not in answering])


def _visible(gpus: Sequence[Gpu], variables: Mapping[str, str]) -> Sequence[Gpu]:
    """Return the GPUs that `CUDA_VISIBLE_DEVICES` leaves; all if it is unset or contains other names than numbers."""
    if _VISIBLE not in variables:
        return gpus
    parts = [part.strip() for part in variables[_VISIBLE].split(",") if part.strip()]
    if not all(part.removeprefix("-").isdecimal() for part in parts):
        return gpus
    return [gpus[number] for number in map(int, parts) if 0 <= number < len(gpus)]


def check_vllm(root: Path) -> Finding:
    """Check whether a server could start; a missing vLLM is a note, because most programs do not need it."""
    found = _interpreter("vllm", None, root)
    return replace(found, level="note") if found.level == "missing" else found


def _interpreter(what: str, declared: str | None, root: Path) -> Finding:
    try:
        found = find_interpreter(declared, root)
    except SkillcError as problem:
        return Finding("installed", "missing", what, problem.message, problem.hint)
    return Finding("installed", "ok", what, f"in {found}")


def _weights(server: ServerPlan, files: ModelFiles | None, environ: Mapping[str, str]) -> Finding:
    what = f"weights of {server.name}"
    if files is None:
        if is_folder_name(server.source):
            fix = "name the folder that contains `config.json` and the weights"
            return Finding("disk", "missing", what, f"no model in `{server.source}`", fix)
        return _to_fetch(what, server, environ)
    if files.size is None and hub_cache(environ) in files.folder.parents:
        return _to_fetch(what, server, environ)
    if files.size is None:
        return Finding("disk", "missing", what, f"none in {files.folder}", "put the model's weights there")
    return Finding("disk", "ok", what, f"{in_bytes(files.size)} in {files.folder}")


def _to_fetch(what: str, server: ServerPlan, environ: Mapping[str, str]) -> Finding:
    home = hub_cache(environ)
    revision = server.options.revision
    fetch = f"hf download {server.source}{f' --revision {revision}' if revision else ''}"
    if is_offline(environ):
        name = "HF_HUB_OFFLINE" if environ.get("HF_HUB_OFFLINE") else "TRANSFORMERS_OFFLINE"
        where = "the program's `env` block" if name in server.options.env else "the environment"
        detail = f"`{server.source}` is not in the hub's cache {home}, and `{name}` in {where} forbids fetching it"
        return Finding("disk", "missing", what, detail, f"fetch it first: `env {name}=0 {fetch}`")
    free = free_disk(home)
    space = f"; {in_bytes(free)} are free in {home}" if free is not None else ""
    detail = f"`{server.source}` is not on this machine: the server will fetch it from the hub{space}"
    return Finding("disk", "note", what, detail, f"to fetch it first: `{fetch}`")


def _on_gpus(server: ServerPlan, shape: ModelShape, size: int | None, gpus: Sequence[Gpu], answers: bool) -> Finding:
    """Check each GPU: its share of the weights, the server's memory beside them, and the KV cache in the rest."""
    needed = server.parallel * server.copies
    if needed > len(gpus):
        detail = f"needs {counted(needed, 'GPU')}, found {len(gpus)}"
        return server.memory("missing", detail, "lower `tensor_parallel` or `data_parallel`")
    smallest = min(gpus[:needed], key=lambda gpu: gpu.total)
    weights = server.weights(shape, size) // server.parallel
    tokens = server.tokens(shape)
    one = shape.cache(tokens) // server.parallel
    budget = int(smallest.total * server.share)
    left = budget - weights - _BESIDE_GPU
    parts = f"{in_bytes(weights)} of weights, {in_bytes(one)} of KV cache for {tokens:,} tokens"
    parts += " per GPU" if server.parallel > 1 else ""
    limit = f"{server.share:g} of {in_bytes(smallest.total)} ({smallest.name})"
    if left < max(one, 1):
        detail = f"needs {parts}: more than {limit}"
        if left <= 0:
            detail = (
                f"{in_bytes(weights)} of weights do not fit: with {in_bytes(_BESIDE_GPU)} beside them more than {limit}"
            )
        return server.memory("missing", detail, _fix_for_gpus(server, shape, size, smallest, len(gpus)))
    if smallest.free < budget and not answers:
        free = math.floor(smallest.free / smallest.total * 100) / 100
        enough = smallest.total * free - weights - _BESIDE_GPU >= one
        smaller_share = f", or set `gpu_share = {free:g}`" if enough else ""
        fix = f"end the processes that use the GPU (`nvidia-smi` lists them){smaller_share}"
        return server.memory("missing", f"takes {limit}, of which {in_bytes(smallest.free)} are free", fix)
    return server.memory("ok", f"{parts}; {_at_once(left, one)} in {limit}")


def _fix_for_gpus(server: ServerPlan, shape: ModelShape, size: int | None, gpu: Gpu, gpus: int) -> str:
    """Return the smallest change that lets it fit: a shorter context, more GPUs, else a smaller model."""
    parallel, weights, tokens = server.parallel, server.weights(shape, size), server.tokens(shape)
    budget = gpu.total * server.share - _BESIDE_GPU
    fits = int((budget - weights / parallel) * parallel / shape.cache(1))
    if fits >= min(tokens, 1024):
        return f"set `max_len = {fits // 256 * 256}`"
    for more in (2, 4, 8):
        if parallel < more <= gpus // server.copies and (weights + shape.cache(tokens)) / more <= budget:
            return f"set `tensor_parallel = {more}`"
    return _SMALLER_MODEL


def _on_cpu(
    server: ServerPlan,
    shape: ModelShape,
    size: int | None,
    memory: Memory | None,
    answers: bool,
    variables: Mapping[str, str],
) -> Finding:
    """Check the machine's memory: weights, the KV cache's fixed space, and the process."""
    if memory is None:
        return server.memory("note", "no GPU, and the memory of this machine is unknown")
    weights, tokens = server.weights(shape, size), server.tokens(shape)
    space, one = _cache_space(variables), shape.cache(tokens)
    need = weights + space + _BESIDE_CPU
    parts = f"no GPU: {in_bytes(weights)} of weights, {in_bytes(space)} of KV cache"
    available = memory.total if answers else memory.free
    if weights + _BESIDE_CPU > available:
        detail = f"no GPU: {in_bytes(weights)} of weights do not fit: {in_bytes(available)} are free"
        return server.memory("missing", detail, _SMALLER_MODEL)
    if one > space:
        fix = f"{_set_space(server, math.ceil(one / _GIB))}, or a smaller `max_len`"
        return server.memory("missing", f"{parts}, and {tokens:,} tokens take {in_bytes(one)}", fix)
    if need > available:
        detail = f"{parts}: with the process about {in_bytes(need)}, and {in_bytes(available)} are free"
        fix = f"{_set_space(server, max(1, math.ceil(one / _GIB)))}, or serve a smaller model"
        return server.memory("missing", detail, fix)
    return server.memory("ok", f"{parts}; {_at_once(space, one)}; {in_bytes(available)} are free")


def _together(servers: Sequence[ServerPlan]) -> Iterator[Finding]:
    """Check the servers that share the first GPU, the default."""
    first = [server for server in servers if _VISIBLE not in server.options.env]
    total = sum(server.share for server in first)
    if len(first) > 1 and total > 1:
        names = ", ".join(server.name for server in first)
        share = math.floor(100 / len(first)) / 100
        fix = f'set `gpu_share = {share:g}` in each, or give each its own GPU: `env {{ {_VISIBLE} = "1" }}`'
        yield Finding(_GROUP, "missing", "servers together", f"{names} take {total:g} of the first GPU", fix)


def _cache_space(variables: Mapping[str, str]) -> int:
    try:
        gib = float(variables.get(_CPU_VARIABLE, _CPU_SPACE))
    except ValueError:
        gib = _CPU_SPACE
    return int((gib or _CPU_SPACE) * _GIB)


def _set_space(server: ServerPlan, gib: int) -> str:
    """Return how to set the KV cache's space: the program's `env` block overrides the environment."""
    if _CPU_VARIABLE in server.options.env:
        return f"set `{_CPU_VARIABLE} = {gib}` in its `env` block"
    return f"`export {_CPU_VARIABLE}={gib}`"


def _at_once(space: int, one: int) -> str:
    return f"room for {counted(space // one if one else 0, 'such sequence')} at once"
