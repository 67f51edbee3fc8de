"""Rollouts on a real Ray cluster: the results of a local run, also if a machine dies in the middle."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ray = pytest.importorskip("ray")
from fake_agents import plan, program, run  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402

from skillc.plan.schema import ExecutorPlan  # noqa: E402

SKILLC = [sys.executable, "-m", "skillc"]
AGENT = """
import os, pathlib, time
import dspy


def run(inputs, skill, lm):
    if pathlib.Path("seen.txt").exists():
        pathlib.Path(pathlib.Path("seen.txt").read_text(), str(os.getpid())).touch()
    signature = dspy.Signature("ticket -> team", skill or "Name the team.")
    with dspy.context(lm=lm):
        first = dspy.Predict(signature)(ticket=inputs["ticket"].lower()).team
        time.sleep(0.02)
        return dspy.Predict(signature)(ticket=inputs["ticket"]).team or first
"""
PROGRAM = """language 1
task {{
  rollout = python("my_agent:run")
  {executor}
  input  ticket: text
  output team: "billing" | "shipping"
}}
skill route {{ about = "Route a ticket to a team."; trainable section rules {{ limit = 300 tokens }} }}
model target    = "rulebook/v1"
model optimizer = "rulebook/v1"
data {{ source = "tickets.jsonl" }}
goal correct = exact_match(team)
budget {{ steps = 3 }}
gate better = candidate.correct > incumbent.correct
"""


def project(folder: Path, executor: str) -> Path:
    folder.mkdir()
    (folder / "my_agent.py").write_text(AGENT)
    words = {"billing": ("invoice", "refund", "card"), "shipping": ("parcel", "courier", "delivery")}
    rows = [
        {"id": f"{team}{i}", "ticket": f"{word} number {i}", "team": team}
        for team, known in words.items()
        for i in range(30)
        for word in (known[i % len(known)],)
    ]
    (folder / "tickets.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "route.skill").write_text(PROGRAM.format(executor=executor))
    return folder


def compiled(folder: Path) -> subprocess.Popen[str]:
    command = [*SKILLC, "compile", "route.skill"]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def results(folder: Path) -> dict[str, bytes]:
    names = ("route/SKILL.md", "route.py", "route.history.jsonl", "route.lock")
    return {name: (folder / "skills" / name).read_bytes() for name in names}


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = project(tmp_path_factory.mktemp("local") / "here", "")
    done = compiled(folder)
    out, err = done.communicate(timeout=300)
    assert done.returncode == 0, out + err
    return folder


@pytest.fixture
def cluster():
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    second = made.add_node(num_cpus=2)
    made.wait_for_nodes()
    yield made, second
    made.shutdown()


@pytest.mark.parametrize("killed", [False, True], ids=["whole", "one machine killed"])
def test_a_cluster_of_two_machines_gives_the_results_of_a_local_run(tmp_path, local, cluster, killed):
    made, second = cluster
    folder = project(tmp_path / "far", f'executor = ray {{ address = "{made.address}"; workers = 3 }}')
    seen = tmp_path / "seen"
    seen.mkdir()
    (folder / "seen.txt").write_text(str(seen))
    running = compiled(folder)
    if killed:
        waited = time.monotonic() + 120
        while len(list(seen.iterdir())) < 3 and running.poll() is None and time.monotonic() < waited:
            time.sleep(0.05)
        assert running.poll() is None
        made.remove_node(second, allow_graceful=False)
    out, err = running.communicate(timeout=500)
    assert running.returncode == 0, out + err
    assert results(folder) == results(local)
    shutil.rmtree(folder)


def test_an_agent_on_the_cluster_is_charged_what_it_reports(tmp_path, cluster):
    made, _ = cluster
    code = (
        "import json, sys, pathlib\n"
        'usage = {"input": 100, "cached": 40, "output": 10}\n'
        'pathlib.Path(sys.argv[1]).write_text(json.dumps({"usage": usage, "turns": 3}))\n'
        "print('billing')\n"
    )
    program(tmp_path, code)
    near = plan(arguments=("{here}/agent {report}",), tokens=1000)
    executor = ExecutorPlan(address=made.address, workers=2)
    far = near.model_copy(update={"task": near.task.model_copy(update={"executor": executor})})
    found = []
    for each in (near, far):
        done = run(each, tmp_path, rollouts=3)
        ray.shutdown()
        assert [one.failure for one in done.all] == [None] * 3
        found.append(
            (
                [(one.prediction, one.trajectory.tokens, one.trajectory.cost) for one in done.all],
                done.client.ledger.charged.spent,
                done.client.ledger.charged.reserved,
                done.client.ledger.paid.reserved,
            )
        )
    assert found[0] == found[1]
