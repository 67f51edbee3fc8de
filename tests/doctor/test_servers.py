"""Whether models fit into GPUs and memory; a fix that is offered has to be one."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from model_plans import model, plan_of
from test_shapes import LLAMA_8B
from thorough import example_count

from skillc.doctor import servers as servers_module
from skillc.doctor.machine import Gpu, Machine, Memory
from skillc.doctor.report import Finding
from skillc.doctor.servers import check_servers, check_vllm
from skillc.errors import SkillcError

GIB = 1024**3
WEIGHTS = 16 * GIB


def find_interpreter(declared: str | None, root: Path) -> Path:
    if declared == "none":
        raise SkillcError("there is no vLLM to serve the model with", hint="make one")
    return Path(declared or "/opt/vllm/bin/python")


@pytest.fixture(autouse=True)
def interpreters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers_module, "find_interpreter", find_interpreter)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of 8 billion parameters; its weights are a file without content."""
    folder = tmp_path_factory.mktemp("root")
    (folder / "llama").mkdir()
    (folder / "llama" / "config.json").write_text(json.dumps(LLAMA_8B))
    with (folder / "llama" / "model.safetensors").open("wb") as file:
        file.truncate(WEIGHTS)
    return folder


def gpu(gib: float, free: float | None = None) -> Gpu:
    return Gpu("NVIDIA Test", int(gib * GIB), int((gib if free is None else free) * GIB))


def found(
    root: Path,
    *serves: dict[str, Any],
    gpus: Sequence[Gpu] = (),
    memory: float | None = 64,
    running: frozenset[str] = frozenset(),
    environ: dict[str, str] | None = None,
) -> list[Finding]:
    roles = [
        model(f"role{i}", name="hosted_vllm/llama", base_url=None, serve=serve)
        for i, serve in enumerate(serves or [{}])
    ]
    machine = Machine(tuple(gpus), Memory(int(memory * GIB), int(memory * GIB)) if memory is not None else None)
    environ = {"HF_HUB_CACHE": str(root / "hub"), **(environ or {})}
    return list(check_servers(plan_of(*roles), root, running, environ, machine))


def of(group: str, findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.group == group]


def test_a_model_that_fits_says_how_many_sequences_do(root: Path) -> None:
    findings = found(root, {"max_len": 8192}, gpus=[gpu(80)])
    assert [finding.level for finding in findings] == ["ok", "ok", "ok"]
    (memory,) = of("memory", findings)
    # 0.9 x 80 - 16 - 1.5 GiB are left, and a sequence of 8,192 tokens takes 1 GiB.
    assert "room for 54 such sequences" in memory.detail
    assert "1.1 GB of KV cache for 8,192 tokens" in memory.detail


@pytest.mark.parametrize(
    ("serve", "gpus", "fix"),
    [
        ({"max_len": 65536}, [gpu(24)], r"set `max_len = \d+`"),
        ({"max_len": 65536}, [gpu(16), gpu(16)], r"set `tensor_parallel = 2`"),
        ({}, [gpu(8)], "a smaller model"),
        ({"gpu_share": 0.1}, [gpu(80)], "a smaller model"),
        ({"tensor_parallel": 2, "data_parallel": 2}, [gpu(80), gpu(80)], "lower `tensor_parallel`"),
    ],
)
def test_what_does_not_fit_comes_with_a_fix(root: Path, serve: dict[str, Any], gpus: list[Gpu], fix: str) -> None:
    (memory,) = of("memory", found(root, serve, gpus=gpus))
    assert memory.level == "missing"
    assert memory.fix is not None
    assert re.search(fix, memory.fix), memory.fix


@settings(max_examples=example_count(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(4, 160),
    st.integers(1, 8),
    st.integers(256, 200_000),
    st.sampled_from([0.3, 0.5, 0.8, 0.95]),
    st.sampled_from([1, 2]),
)
def test_what_is_offered_helps(root: Path, gib: int, count: int, length: int, share: float, copies: int) -> None:
    serve: dict[str, Any] = {"max_len": length, "gpu_share": share, "data_parallel": copies}
    gpus = [gpu(gib)] * count
    (memory,) = of("memory", found(root, serve, gpus=gpus))
    said = re.fullmatch(r"set `(max_len|tensor_parallel) = (\d+)`", memory.fix or "")
    if said is not None:
        assert of("memory", found(root, {**serve, said[1]: int(said[2])}, gpus=gpus))[0].level == "ok"


def test_a_gpu_that_somebody_else_uses(root: Path) -> None:
    (memory,) = of("memory", found(root, {"max_len": 4096}, gpus=[gpu(80, free=40)]))
    assert memory.level == "missing"
    assert memory.fix == "end the processes that use the GPU (`nvidia-smi` lists them), or set `gpu_share = 0.5`"
    enough = found(root, {"max_len": 4096, "gpu_share": 0.5}, gpus=[gpu(80, free=40)])
    assert of("memory", enough)[0].level == "ok"
    own = found(root, {"max_len": 4096}, gpus=[gpu(80, free=4)], running=frozenset({"role0"}))
    assert of("memory", own)[0].level == "ok"


def test_two_servers_on_one_gpu_share_it_or_are_told_to(root: Path) -> None:
    findings = found(root, {"max_len": 1024}, {"max_len": 2048}, gpus=[gpu(80)])
    assert findings[-1].what == "servers together"
    assert "gpu_share = 0.5" in str(findings[-1].fix)
    halves = found(root, {"max_len": 1024, "gpu_share": 0.5}, {"max_len": 2048, "gpu_share": 0.5}, gpus=[gpu(80)])
    assert all(finding.level == "ok" for finding in halves)
    apart = found(
        root, {"max_len": 1024}, {"max_len": 2048, "env": {"CUDA_VISIBLE_DEVICES": "1"}}, gpus=[gpu(80), gpu(80)]
    )
    assert all(finding.level == "ok" for finding in apart)


def test_roles_whose_servers_are_told_the_same_share_one(root: Path) -> None:
    findings = found(root, {"max_len": 1024}, {"max_len": 1024, "keep": True}, gpus=[gpu(80)])
    assert len(of("memory", findings)) == 1
    assert "`role0` and `role1`" in of("memory", findings)[0].what


@pytest.mark.parametrize(
    ("serve", "memory", "environ", "level"),
    [
        ({"max_len": 8192}, 64, {}, "ok"),
        ({"max_len": 8192}, 20, {}, "missing"),
        ({"max_len": 8192, "dtype": "float32"}, 30, {}, "missing"),
        ({"max_len": 65536}, 64, {}, "missing"),
        ({"max_len": 65536}, 64, {"VLLM_CPU_KVCACHE_SPACE": "8"}, "ok"),
        ({"max_len": 65536, "env": {"VLLM_CPU_KVCACHE_SPACE": "8"}}, 64, {}, "ok"),
        ({"max_len": 8192}, 64, {"VLLM_CPU_KVCACHE_SPACE": "all"}, "ok"),
        ({"max_len": 8192}, None, {}, "note"),
    ],
)
def test_without_a_gpu_the_machines_memory_counts(
    root: Path, serve: dict[str, Any], memory: float | None, environ: dict[str, str], level: str
) -> None:
    (finding,) = of("memory", found(root, serve, memory=memory, environ=environ))
    assert finding.level == level, finding
    if level == "missing":
        assert finding.fix


def test_the_space_that_is_offered_on_a_cpu_is_enough(root: Path) -> None:
    (finding,) = of("memory", found(root, {"max_len": 100_000}))
    said = re.search(r"VLLM_CPU_KVCACHE_SPACE=(\d+)", str(finding.fix))
    assert said is not None
    environ = {"VLLM_CPU_KVCACHE_SPACE": said[1]}
    assert of("memory", found(root, {"max_len": 100_000}, environ=environ))[0].level == "ok"


def test_weights_that_are_not_there(root: Path) -> None:
    missing = found(root, {"model": "./nowhere"})
    assert of("disk", missing)[0].level == "missing"
    hub = found(root, {"model": "org/name"})
    assert of("disk", hub)[0].level == "note"
    assert "hf download org/name" in str(of("disk", hub)[0].fix)
    assert of("memory", hub)[0].level == "note"
    (root / "empty").mkdir(exist_ok=True)
    (root / "empty" / "config.json").write_text(json.dumps(LLAMA_8B))
    assert of("disk", found(root, {"model": "empty"}))[0].level == "missing"


def test_the_interpreter_is_found_or_its_absence_comes_with_the_commands(root: Path) -> None:
    assert of("installed", found(root, {}))[0].detail == "in /opt/vllm/bin/python"
    assert of("installed", found(root, {"python": "own/python"}))[0].detail == "in own/python"
    missing = of("installed", found(root, {"python": "none"}))[0]
    assert (missing.level, missing.fix) == ("missing", "make one")


def test_vllm_is_only_noted_where_no_program_needs_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_vllm(root).level == "ok"

    monkeypatch.setattr(servers_module, "find_interpreter", lambda declared, root: find_interpreter("none", root))
    assert check_vllm(root).level == "note"


def test_weights_that_do_not_fit_are_named_before_the_kv_cache(root: Path) -> None:
    on_cpu = of("memory", found(root, {"max_len": 65536}, memory=10))[0]
    on_gpu = of("memory", found(root, {"max_len": 65536}, gpus=[gpu(8)]))[0]
    for finding in (on_cpu, on_gpu):
        assert finding.level == "missing"
        assert "17.2 GB of weights do not fit" in finding.detail
        assert "KV cache" not in finding.detail
        assert finding.fix == "serve a smaller model, or one with quantized weights"


def test_a_variable_of_the_programs_env_block_is_changed_there(root: Path) -> None:
    serve = {"max_len": 65536, "env": {"VLLM_CPU_KVCACHE_SPACE": 4}}
    finding = of("memory", found(root, serve, environ={"VLLM_CPU_KVCACHE_SPACE": "90"}))[0]
    assert finding.level == "missing"
    assert finding.fix == "set `VLLM_CPU_KVCACHE_SPACE = 8` in its `env` block, or a smaller `max_len`"
    fixed = {"max_len": 65536, "env": {"VLLM_CPU_KVCACHE_SPACE": 8}}
    assert of("memory", found(root, fixed))[0].level == "ok"


def test_gpus_are_those_that_the_server_sees(root: Path) -> None:
    gpus = [gpu(8), gpu(80)]
    assert of("memory", found(root, {"max_len": 1024}, gpus=gpus))[0].level == "missing"
    block = {"max_len": 1024, "env": {"CUDA_VISIBLE_DEVICES": "1"}}
    assert of("memory", found(root, block, gpus=gpus, environ={"CUDA_VISIBLE_DEVICES": "0"}))[0].level == "ok"
    outside = found(root, {"max_len": 1024}, gpus=gpus, environ={"CUDA_VISIBLE_DEVICES": "1"})
    assert of("memory", outside)[0].level == "ok"


def hub(root: Path, *, weights: bool = True) -> Path:
    home = root / "hub"
    snapshot = home / "models--org--cached" / "snapshots" / "abc"
    snapshot.mkdir(parents=True, exist_ok=True)
    (snapshot / "config.json").write_text(json.dumps(LLAMA_8B))
    (snapshot / "model.safetensors").unlink(missing_ok=True)
    if weights:
        (snapshot / "model.safetensors").write_bytes(b"weights")
    (home / "models--org--cached" / "refs").mkdir(exist_ok=True)
    (home / "models--org--cached" / "refs" / "main").write_text("abc")
    return home


@pytest.mark.parametrize("variable", ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
@pytest.mark.parametrize("where", ["environ", "block"])
def test_a_model_that_is_only_on_the_hub_is_missing_where_the_hub_is_switched_off(
    root: Path, variable: str, where: str
) -> None:
    hub(root)
    block = {"env": {variable: 1}} if where == "block" else {}
    environ = {variable: "1"} if where == "environ" else {}
    disk = of("disk", found(root, {"model": "org/name", **block}, environ=environ))[0]
    assert disk.level == "missing"
    assert f"`{variable}` in {'the program' if where == 'block' else 'the environment'}" in disk.detail
    assert disk.fix == f"fetch it first: `env {variable}=0 hf download org/name`"
    cached = of("disk", found(root, {"model": "org/cached", **block}, environ=environ))[0]
    assert cached.level == "ok"
    other = of("disk", found(root, {"model": "org/cached", "revision": "v2", **block}, environ=environ))[0]
    assert other.level == "missing"
    assert "hf download org/cached --revision v2" in str(other.fix)
    hub(root, weights=False)
    half = of("disk", found(root, {"model": "org/cached", **block}, environ=environ))[0]
    assert half.level == "missing"


def test_the_programs_env_block_can_switch_the_hub_on(root: Path) -> None:
    serve = {"model": "org/name", "env": {"HF_HUB_OFFLINE": 0}}
    assert of("disk", found(root, serve, environ={"HF_HUB_OFFLINE": "1"}))[0].level == "note"
