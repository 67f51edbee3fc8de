"""Exit statuses and messages where a model cannot be had; and that nothing takes its place unasked."""

import json
import os
import socket
import subprocess
import sys

import pytest
from conftest_cli import PROGRAM, skillc

BARE = {
    name: value
    for name, value in os.environ.items()
    if not name.endswith(("_API_KEY", "_BASE_URL", "_API_BASE")) and not name.startswith("SKILLC_")
}
KEY = "sk-planted-0123456789abcdef"


def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def with_target(text):
    return PROGRAM.replace('model target    = "rulebook/v1"', f"model target = {text}")


KEYLESS = with_target('"openai/gpt-4o-mini"')
NO_ADDRESS = with_target('"openai/gpt-4o-mini" { base_url = env("SHOP_ADDRESS") }')
NO_SERVER = with_target('"hosted_vllm/llama"')
UNREACHABLE = with_target(f'"openai/own" {{ base_url = "http://127.0.0.1:{closed_port()}/v1" }}')


def findings(done):
    return json.loads(done.stdout)["findings"]


OFFLINE = """
import socket, sys
def refuse(*_, **__):
    raise AssertionError("a socket was connected")
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = socket.create_connection = refuse
sys.argv = ["skillc", "doctor", "things.skill", "--offline"]
from skillc.cli import main
main()
"""


def test_offline_no_socket_is_opened(shop):
    (shop / "things.skill").write_text(UNREACHABLE)
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE], cwd=shop, capture_output=True, text=True, check=False, env=BARE
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing is missing" in done.stdout
    assert done.stderr == ""


def test_nothing_is_missing_for_a_program_with_the_rulebook(shop):
    done = skillc("doctor", "things.skill", folder=shop, env=BARE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing is missing" in done.stdout
    assert not (shop / ".skillc").exists()
    groups = {
        finding["group"] for finding in findings(skillc("doctor", "things.skill", "--json", folder=shop, env=BARE))
    }
    assert groups == {"installed", "program", "models", "cost", "disk"}


def test_without_a_program_it_says_what_is_installed_and_which_keys_are_set(shop):
    done = skillc("doctor", "--json", folder=shop, env={**BARE, "OPENAI_API_KEY": KEY})
    assert done.returncode == 0, done.stdout
    assert "OPENAI_API_KEY" in done.stdout
    assert KEY not in done.stdout + done.stderr
    assert {"dspy", "litellm", "memory"} <= {finding["what"] for finding in findings(done)}


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (KEYLESS, "OPENAI_API_KEY"),
        (NO_ADDRESS, "SHOP_ADDRESS"),
        (NO_SERVER, "base_url"),
        (UNREACHABLE, "no connection to"),
    ],
    ids=["key", "address", "server", "unreachable"],
)
def test_a_model_that_cannot_be_had_is_said_and_offline_is_offered(shop, program, said):
    (shop / "things.skill").write_text(program)
    doctor = skillc("doctor", "things.skill", "--json", folder=shop, env=BARE)
    assert doctor.returncode == 1, doctor.stdout + doctor.stderr
    (missing,) = [finding for finding in findings(doctor) if finding["level"] == "missing"]
    assert (missing["group"], missing["what"]) == ("models", "target")
    assert said in missing["detail"] + missing["fix"]
    assert "--offline" in missing["fix"]
    assert skillc("plan", "things.skill", folder=shop, env=BARE).returncode == 0


@pytest.mark.parametrize(
    "program", [KEYLESS, NO_ADDRESS, NO_SERVER, UNREACHABLE], ids=["key", "address", "server", "unreachable"]
)
def test_a_compile_without_its_model_ends_and_never_takes_the_rulebook_by_itself(shop, program):
    (shop / "things.skill").write_text(program)
    done = skillc("compile", "things.skill", folder=shop, env=BARE)
    assert done.returncode == 2
    assert "--offline" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (shop / "skills").exists()


def test_the_cost_is_said_before_and_calls_can_be_left_out(shop):
    (shop / "things.skill").write_text(UNREACHABLE)
    asked = skillc("doctor", "things.skill", folder=shop, env=BARE)
    assert "--no-calls" in asked.stderr
    left_out = skillc("doctor", "things.skill", "--no-calls", folder=shop, env=BARE)
    assert left_out.returncode == 0
    assert left_out.stderr == ""
    assert "not called" in left_out.stdout


def test_data_that_is_not_there_is_one_finding_of_several(shop):
    (shop / "things.jsonl").unlink()
    done = skillc("doctor", "things.skill", "--json", folder=shop, env=BARE)
    assert done.returncode == 1
    (missing,) = [finding for finding in findings(done) if finding["level"] == "missing"]
    assert missing["what"] == "data"
    assert any(finding["group"] == "models" for finding in findings(done))


@pytest.mark.parametrize(
    ("arguments", "said"), [(("missing.skill",), "missing.skill"), (("--set", "a.b=1"), "program")]
)
def test_a_users_mistake_is_a_message_and_status_2(shop, arguments, said):
    done = skillc("doctor", *arguments, folder=shop)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


SERVED = with_target('"hosted_vllm/org/a-model" { serve = vllm { max_len = 4096; env { HF_HUB_OFFLINE = 1 } } }')


def test_a_served_model_is_missing_where_the_hub_is_switched_off(shop):
    (shop / "things.skill").write_text(SERVED)
    done = skillc("doctor", "things.skill", "--json", folder=shop, env={**BARE, "HF_HUB_CACHE": str(shop / "hub")})
    assert done.returncode == 1
    missing = {finding["what"]: finding for finding in findings(done) if finding["level"] == "missing"}
    assert "its weights are missing" in missing["target"]["detail"]
    assert "`HF_HUB_OFFLINE` in the program's `env` block" in missing["weights of `serve` of `target`"]["detail"]


def test_commands_can_be_copied_from_a_pipe_of_60_columns(shop):
    (shop / "things.skill").write_text(SERVED)
    environ = {**BARE, "HF_HUB_CACHE": str(shop / "hub"), "COLUMNS": "60"}
    done = skillc("doctor", "things.skill", folder=shop, env=environ)
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert "env HF_HUB_OFFLINE=0 hf download org/a-model" in lines
    assert any(
        line.startswith(f"python3 -m venv {shop}/.venv-vllm && {shop}/.venv-vllm/bin/pip install") for line in lines
    )
