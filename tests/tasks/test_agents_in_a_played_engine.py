"""Agents in containers of an engine that a program plays; `make test-containers` runs them in real ones."""

import json

import pytest
from fake_agents import plan, program, run
from played_engine import LIMITS, values

from skillc.doctor.checks import check_agent
from skillc.errors import SkillcError
from skillc.sandbox.policy import IMAGE


def declared(engine, *words, kind="command", **settings):
    sandbox = {"kind": engine.name, "memory": LIMITS.memory, "processes": LIMITS.processes}
    return plan(kind, (" ".join(words),) if words else (), sandbox=sandbox, **settings)


def test_an_agent_beside_the_program_is_mounted_once_and_one_of_the_image_is_not(engine, tmp_path):
    agent = program(tmp_path, "import sys; print(open(sys.argv[1]).read()[:3] and 'billing')")
    done = run(declared(engine, "{here}/agent", "{skill}"), tmp_path)
    assert done.rollout.failure is None, done.rollout.detail
    assert done.rollout.prediction == {"team": "billing"}
    words = engine.asked()[-1]["words"]
    mounted = [each for each in values(words, "--mount") if f"target={agent}" in each]
    assert len(mounted) == 1
    assert "readonly" in mounted[0]
    run(declared(engine, "sh", "-c", "'echo billing'"), tmp_path)
    words = engine.asked()[-1]["words"]
    assert words[-3:] == ["sh", "-c", "echo billing"]
    assert not any("bin/sh" in each for each in values(words, "--mount"))


def test_the_image_keeps_its_path_and_gets_the_home_of_the_rollout_and_the_key(engine, tmp_path):
    run(declared(engine, "true"), tmp_path)
    names = [each.partition("=")[0] for each in values(engine.asked()[-1]["words"], "--env")]
    assert "PATH" not in names
    assert {"HOME", "SKILLC_MODEL_KEY", "HTTPS_PROXY"} <= set(names)
    assert "HOME=/home/agent" in values(engine.asked()[-1]["words"], "--env")


def test_the_version_is_that_of_the_image(engine, tmp_path):
    version = {"kind": "codex", "executable": "sh", "version": "1.2.3"}
    with pytest.raises(SkillcError, match=r"version 1\.2\.3 is declared, and `sh` reports"):
        run(declared(engine, **version), tmp_path)


def test_a_program_that_the_image_lacks_is_an_error_at_the_start_and_a_finding_of_the_doctor(engine, tmp_path):
    made = declared(engine, kind="codex", executable="no-such-agent")
    with pytest.raises(SkillcError, match=f"the image `{IMAGE}` has no program `no-such-agent`") as refused:
        run(made, tmp_path)
    assert "in the image" in refused.value.hint
    (finding,) = check_agent(made, tmp_path, {})
    assert finding.level == "missing"
    engine.play(images=[])
    # The line of the sandbox reports the cause.
    assert list(check_agent(made, tmp_path, {})) == []


def test_an_engine_that_breaks_is_unmeasured_and_its_report_is_quoted(engine, tmp_path):
    program(tmp_path, "print('billing')")
    made = declared(engine, "{here}/agent")
    assert run(made, tmp_path).rollout.failure is None
    state = json.loads((engine.folder / "engine.json").read_text())
    (engine.folder / "engine.json").write_text(json.dumps({**state, "broken": "OCI runtime error"}))
    done = run(made, tmp_path)
    assert done.rollout.failure == "agent"
    assert "it cannot be started" in done.rollout.detail
    assert "OCI runtime error" in done.rollout.detail
    with pytest.raises(SkillcError, match="OCI runtime error"):
        run(declared(engine, "true"), tmp_path)
