"""Batch-invariant kernels: on where the installed vLLM and every GPU have them, in the identity, and off on demand."""

import sys
from pathlib import Path

import pytest

from skillc.errors import SkillcError
from skillc.models.serving import installed
from skillc.models.serving.installed import INVARIANCE, capabilities, is_batch_invariant, unsupported
from skillc.models.serving.launch import environment, launch_of
from skillc.plan.schema import ModelPlan
from skillc.processes.interpreters import output_of


def served(**serve):
    return ModelPlan(role="target", model="hosted_vllm/./models/tiny", serve=serve)


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine with one GPU and a vLLM that has the kernels."""

    def made(vllm="0.22.1 True", found=(9.0,), gpu=True):
        device = tmp_path / "nvidiactl"
        device.touch()
        monkeypatch.setattr(installed, "_GPU", device if gpu else tmp_path / "none")
        monkeypatch.setattr(installed, "find_interpreter", lambda *_: Path(sys.executable))
        monkeypatch.setattr(installed, "output_of", lambda python, code: vllm)
        monkeypatch.setattr(installed, "capabilities", lambda: found)

    monkeypatch.delenv(INVARIANCE, raising=False)
    made()
    return made


def folder(path):
    (path / "models" / "tiny").mkdir(parents=True)
    (path / "models" / "tiny" / "config.json").write_text("{}")
    return path


def test_it_is_on_in_the_servers_environment_and_identity(machine, tmp_path):
    root = folder(tmp_path)
    on = launch_of(served(), root, None)
    assert on.batch_invariant
    assert environment(on, "key", [], {})[INVARIANCE] == "1"
    declared = launch_of(served(batch_invariant=True), root, None)
    assert (declared.identity, declared.server_id) == (on.identity, on.server_id)
    off = launch_of(served(batch_invariant=False), root, None)
    assert not off.batch_invariant
    assert INVARIANCE not in environment(off, "key", [], {})
    assert off.identity != on.identity
    machine(gpu=False)
    # Without a GPU nothing changes, also not the name of the endpoint.
    assert launch_of(served(), root, None).identity == off.identity


def test_what_the_user_sets_takes_precedence(machine, tmp_path):
    root = folder(tmp_path)
    own = launch_of(served(env={INVARIANCE: "0"}), root, None)
    assert not own.batch_invariant
    assert environment(own, "key", [], {})[INVARIANCE] == "0"
    assert not is_batch_invariant(served(), None, root, {INVARIANCE: "0"})
    machine(gpu=False)
    assert is_batch_invariant(served(), None, root, {INVARIANCE: "1"})
    machine()
    # A server at a declared address may be someone else's.
    assert not is_batch_invariant(served(), "http://localhost:8000/v1", root, {})
    assert is_batch_invariant(served(batch_invariant=True), "http://localhost:8000/v1", root, {})


@pytest.mark.parametrize(
    ("vllm", "found", "why"),
    [
        ("0.22.1 True", (8.0, 9.0), None),
        ("0.20.0 True", (8.6,), None),
        ("0.12.0 True", (9.0,), None),
        ("0.12.0 True", (8.9,), "vLLM 0.12.0 needs compute capability 9.0 for it; a GPU has 8.9"),
        ("0.22.1 True", (9.0, 7.5), "vLLM 0.22.1 needs compute capability 8.0 for it; a GPU has 7.5"),
        ("0.10.2 False", (9.0,), "vLLM 0.10.2 does not have it"),
        ("0.22.1+cpu True", (9.0,), "this machine has no NVIDIA GPU for it"),
        ("0.22.1 True", (), "this machine has no NVIDIA GPU for it"),
        ("", (9.0,), "its vLLM cannot be examined"),
    ],
)
def test_where_it_is_supported(machine, tmp_path, vllm, found, why):
    assert unsupported(vllm, found) == why
    machine(vllm, found)
    assert is_batch_invariant(served(), None, tmp_path, {}) == (why is None)
    if why is not None:
        with pytest.raises(SkillcError) as raised:
            is_batch_invariant(served(batch_invariant=True), None, tmp_path, {})
        assert raised.value.message == f"`serve` of model `target` has `batch_invariant = on`, and {why}"


@pytest.mark.parametrize("text", ["", "import os\nos.environ.get('VLLM_BATCH_INVARIANT')\n"])
def test_the_package_is_examined_without_an_import(tmp_path, monkeypatch, text):
    package = tmp_path / "vllm"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    (package / "envs.py").write_text(text)
    info = tmp_path / "vllm-0.23.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.23.0\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    output_of.cache_clear()
    assert output_of(sys.executable, installed._KNOWS) == f"0.23.0 {bool(text)}"
    output_of.cache_clear()


def test_capabilities_are_those_that_nvidia_smi_lists(tmp_path, monkeypatch):
    capabilities.cache_clear()
    command = tmp_path / "nvidia-smi"
    command.write_text("#!/bin/sh\necho 9.0\necho ' 8.6'\necho '[N/A]'\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path) + ":/bin:/usr/bin")
    assert capabilities() == (9.0, 8.6)
    capabilities.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    assert capabilities() == ()
    capabilities.cache_clear()
