"""Agents in containers, against a loopback server that plays the model."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fake_agents import PRICE, plan, run
from model_plans import model
from model_server import CACHED, COMPLETION, PROMPT, model_server
from test_sandbox import IMAGE, web

from skillc.document.skill import document_of
from skillc.errors import SkillcError
from skillc.models.ledger import Spending
from skillc.tasks.kind import Skill
from skillc.trajectories.trajectory import FileChange, Message, ToolCall

HERE = Path(__file__).resolve().parent
RULE = 'If the ticket mentions "invoice", answer billing.'
SKILL = Skill.of(document_of("route-tickets", "routes tickets", [("rules", "trainable", f"- {RULE}", None)]))
KEY = "sk-loopback-4711-4711"
COMMAND = "{here}/agent.py {skill} {base_url} {model} {report}"


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("LOOPBACK_KEY", KEY)


@pytest.fixture
def folder(tmp_path):
    """The folder of a program, with its agent."""
    agent = tmp_path / "agent.py"
    agent.write_text((HERE / "agent.py").read_text())
    agent.chmod(0o755)
    return tmp_path


def declared(kind, command, url, limits=None, agent="command", **settings):
    target = model(name="openai/tiny", base_url=url, key_env="LOOPBACK_KEY", price=PRICE)
    sandbox = {"kind": kind, "image": IMAGE, **(limits or {})}
    return plan(agent, (command,), target=target, sandbox=sandbox, **{"time": 60, **settings})


def engine_names(kind):
    asked = [kind, "ps", "--all", "--filter", "label=skillc", "--format", "{{.Names}}"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize("command", [COMMAND, f"python3 {COMMAND}"], ids=["own program", "of the image"])
def test_the_skill_reaches_the_model_and_a_tool_call_changes_the_workspace(kind, folder, command) -> None:
    (folder / "case").mkdir()
    (folder / "case" / "given.txt").write_text("given")
    with model_server() as server:
        done = run(declared(kind, command, server.url, files="case", tokens=1000), folder, skill=SKILL)
        assert done.rollout.failure is None, done.rollout.detail
        assert json.dumps(RULE)[1:-1] in server.read()
        assert server.keys == {f"Bearer {KEY}"}
    assert done.rollout.prediction == {"team": "billing"}
    call, _, message, change = done.trajectory.steps
    assert isinstance(call, ToolCall)
    assert (message, change) == (Message("billing"), FileChange("made.txt", "added", "made-by-a-tool\n"))
    assert done.trajectory.turns == 2
    assert done.client.ledger.charged.spent[:2] == Spending(1, 2 * (PROMPT + COMPLETION))[:2]
    assert done.client.ledger.paid.lines[("target", "rollout")].cached == 2 * CACHED
    assert engine_names(kind) == []


def test_rollouts_side_by_side_have_their_own_workspaces(kind, folder) -> None:
    command = 'sh -c "ls; touch mine; touch ~/mine; ls ~; pwd"'
    with model_server() as server:
        done = run(declared(kind, command, server.url), folder, skill=None, rollouts=4)
    replies = {each.trajectory.reply for each in done.all}
    assert replies == {"mine\n/sandbox"}


def test_a_declared_host_is_reached_and_no_other(kind, folder) -> None:
    (folder / "get.py").write_text(
        "import sys, urllib.request\n"
        "for port in sys.argv[1:]:\n"
        "    try:\n"
        "        print(urllib.request.urlopen(f'http://localhost:{port}/', timeout=5).read().decode())\n"
        "    except OSError as problem:\n"
        "        print('refused')\n"
    )
    with model_server() as server, web(b"hello") as known, web(b"hidden") as other:
        command = f"python3 {{here}}/get.py {known} {other}"
        done = run(declared(kind, command, server.url, hosts=[f"localhost:{known}"]), folder, skill=None)
    assert done.rollout.failure is None, done.rollout.detail
    assert done.trajectory.reply.split() == ["hello", "refused"]


FAULTS = {
    "no server": (COMMAND, "it exited with status 1"),
    "hang": ("sleep 60", "it ran longer than 2 s"),
    "status": ('sh -c "echo billing; echo broken >&2; exit 3"', "it exited with status 3: broken"),
    "killed": ('sh -c "echo billing; kill -9 $$"', "it exited with status 137"),
    "memory": ("python3 -c 'x = bytearray(10**9)'", "it used more memory than"),
    "disk": (
        "sh -c 'for i in 1 2 3 4 5 6; do cat /usr/bin/python3 > $i; done; sleep 50'",
        "it wrote more than",
    ),
    "nothing": ("true", "it ended without an answer"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_unmeasured_and_charged_its_reservation(kind, folder, fault) -> None:
    command, detail = FAULTS[fault]
    with model_server() as server:
        url = server.url
    limits = {"memory": 2 * 10**8, "disk": 2 * 10**7 if fault == "disk" else 10**9}
    time = 2 if fault == "hang" else 60
    done = run(declared(kind, command, url, limits, tokens=50, time=time), folder, skill=SKILL)
    assert done.rollout.failure == "agent"
    assert detail in done.rollout.detail
    assert done.client.ledger.charged.spent.tokens == 50
    assert engine_names(kind) == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"agent": "codex"}, f"`rollout = codex`: the image `{IMAGE}` has no program `codex`"),
        ({"agent": "codex", "executable": "/opt/codex"}, f"the image `{IMAGE}` has no program `/opt/codex`"),
        ({"agent": "codex", "executable": "./missing"}, "the program `./missing` was not found"),
        ({"agent": "codex", "executable": "python3", "version": "1.2"}, "`python3` reports `Python 3."),
        ({"agent": "codex", "executable": "./agent.py", "version": "1.2"}, "version 1.2 is declared"),
    ],
)
def test_what_the_image_lacks_is_an_error_at_the_start(kind, folder, settings, message) -> None:
    with pytest.raises(SkillcError) as refused:
        run(declared(kind, "", "http://localhost:9099/v1", **settings), folder)
    assert message in refused.value.message


PROGRAM = """language 1
task {
  input  ticket: text
  output team: "billing" | "shipping"
  rollout = command("COMMAND") { sandbox = ENGINE { image = "IMAGE"; memory = 500 MB }; time = 1 min; tokens = TOKENS }
}
skill route_tickets { about = "Route a ticket to a team."; trainable section rules { limit = 300 tokens } }
model target    = "openai/tiny" { base_url = "URL"; key = env("LOOPBACK_KEY"); price { input = $1; output = $2 } }
model optimizer = "rulebook/v1"
data { source = "tickets.jsonl"; split = 1 : 1 : 1; seed = 3 }
goal correct = exact_match(team)
optimize { batch = 6; drafts = 0; update = edits }
budget { steps = 1; cost = $1 }
gate better = candidate.correct > incumbent.correct
"""
SORTED = {"billing": ("invoice", "refund"), "shipping": ("parcel", "courier")}


def test_the_loop_compiles_a_skill_through_an_agent_in_containers(kind, folder) -> None:
    pairs = [(team, SORTED[team][i // 2 % 2]) for i, team in enumerate(("billing", "shipping") * 9)]
    rows = [{"ticket": f"{word} number {i}", "team": team} for i, (team, word) in enumerate(pairs)]
    (folder / "tickets.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with model_server() as server:
        text = PROGRAM
        for word, value in {
            "COMMAND": COMMAND,
            "ENGINE": kind,
            "IMAGE": IMAGE,
            "URL": server.url,
            "TOKENS": "2_000 tokens",
        }.items():
            text = text.replace(word, value)
        (folder / "route.skill").write_text(text)
        done = skillc(folder, "compile", "route.skill")
        assert done.returncode == 0, done.stdout + done.stderr
        (skill,) = folder.glob("skills*/route-tickets/SKILL.md")
        rules = [line for line in skill.read_text().splitlines() if "answer billing" in line]
        assert rules
        assert json.dumps(rules[0])[1:-1] in json.dumps(server.requests[-200:])
        doctor = " ".join(skillc(folder, "doctor", "route.skill").stdout.split())
    assert f"ok {kind} containers" in doctor
    assert "rollouts use it" in doctor
    assert KEY not in "".join(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())
    assert engine_names(kind) == []


def skillc(folder, *words):
    return subprocess.run(
        [sys.executable, "-m", "skillc", *words], cwd=folder, capture_output=True, text=True, check=False
    )


AGENTS = Path(os.environ.get("SKILLC_AGENTS") or HERE.parent / "build" / "agents")


@pytest.fixture
def codex(kind, tmp_path_factory):
    """An image with Codex, from the package that `make test-agents` installs."""
    found = sorted((AGENTS / "node_modules" / "@openai").glob("codex-linux-*/vendor/*/bin/codex"))
    if not found:
        pytest.skip("codex is not installed: make test-agents")
    image = f"{IMAGE}-codex"
    context = tmp_path_factory.mktemp("codex")
    (context / "Dockerfile").write_text(
        f"FROM {IMAGE}\nCOPY vendor /opt/codex\nENV PATH=/opt/codex/bin:/usr/bin:/bin\n"
    )
    shutil.copytree(found[0].parents[1], context / "vendor")
    subprocess.run([kind, "build", "--network", "none", "--tag", image, str(context)], check=True, capture_output=True)
    yield image
    subprocess.run([kind, "rmi", "--force", image], check=False, capture_output=True)


def test_codex_reads_the_skill_and_changes_the_workspace_in_a_container(kind, folder, codex) -> None:
    version = json.loads((HERE.parent / "tests_agents" / "package.json").read_text())["dependencies"]["@openai/codex"]
    with model_server() as server:
        made = declared(kind, "", server.url, {"image": codex}, agent="codex", tokens=1000, version=version)
        done = run(made, folder, skill=SKILL)
        assert done.rollout.failure is None, done.rollout.detail
        assert json.dumps(RULE)[1:-1] in server.read()
        assert server.keys == {f"Bearer {KEY}"}
    assert done.rollout.prediction == {"team": "billing"}
    assert FileChange("made.txt", "added", "made-by-a-tool\n") in done.trajectory.steps
    assert done.client.ledger.charged.spent[:2] == Spending(1, 2 * (PROMPT + COMPLETION))[:2]
