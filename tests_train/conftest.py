"""A program, its training files, and `skillc distill` as a process on the model of `examples/local_model`."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
MODEL = HERE.parent / "examples" / "local_model" / "model"
PYTHON = Path(os.environ.get("SKILLC_TRAIN_PYTHON") or HERE.parent / ".venv-train" / "bin" / "python")
VLLM = Path(os.environ.get("SKILLC_VLLM_PYTHON") or HERE.parent / ".venv-vllm" / "bin" / "python")
# Seconds after which something hangs; a busy machine may be slow, and no test measures time.
HANGS = 4 * 3600
TEAMS = {"billing": "invoice", "shipping": "parcel"}
PROGRAM = """language 1

task { input ticket: text
  output team: "billing" | "shipping" }

skill route_tickets {
  about = "Routes tickets."
  trainable section rules { limit = 200 tokens }
}

model target    = "hosted_vllm/rule-follower" {
  temperature = 0
  max_tokens  = 40
  serve = vllm {
    model   = "model"
    max_len = 2048
    dtype   = float32
    args = ["--enforce-eager", "--block-size", "32"]
    env {
      VLLM_CPU_KVCACHE_SPACE    = 1
      HF_HUB_OFFLINE            = 1
      VLLM_CPU_OMP_THREADS_BIND = "nobind"
      OMP_NUM_THREADS           = 1
    }
  }
}
model optimizer = "rulebook/v1"

data { source = "tickets.jsonl"; split = 1 : 1 : 1 }
goal correct = exact_match(team)
budget { epochs = 1 }
gate better = candidate.correct > incumbent.correct
"""


def tickets(number):
    return [
        {"ticket": f"Case {i}: the {TEAMS[team]} is not what it was.", "team": team}
        for i, team in enumerate(list(TEAMS) * (number // 2))
    ]


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def asked(i, team):
    return [{"role": "user", "content": f"Where does letter {i} about the {TEAMS[team]} go? Say the team."}]


def answer(text):
    return [{"role": "assistant", "content": f"team {text}"}]


def sft_rows(number=24):
    teams = list(TEAMS) * (number // 2)
    return [{"prompt": asked(i, team), "completion": answer(team)} for i, team in enumerate(teams)]


def dpo_rows(number=16):
    teams = list(TEAMS) * (number // 2)
    other = dict(zip(TEAMS, reversed(TEAMS), strict=True))
    return [
        {"prompt": asked(i, team), "chosen": answer(team), "rejected": answer(other[team])}
        for i, team in enumerate(teams)
    ]


class Workshop:
    """A folder with a program and training files."""

    def __init__(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        (folder / "tickets.skill").write_text(PROGRAM)
        write_lines(folder / "tickets.jsonl", tickets(30))
        if not (folder / "model").exists():
            (folder / "model").symlink_to(MODEL)
        write_lines(folder / "sft.jsonl", sft_rows())
        write_lines(folder / "dpo.jsonl", dpo_rows())

    def start(self, *arguments):
        environ = {**os.environ, "SKILLC_TRAIN_PYTHON": str(PYTHON), "SKILLC_VLLM_PYTHON": str(VLLM)}
        environ["OMP_NUM_THREADS"] = "1"
        out, errors = (self.folder / "stdout.txt").open("w"), (self.folder / "stderr.txt").open("w")
        with out, errors:
            return subprocess.Popen(
                [sys.executable, "-m", "skillc", *arguments], cwd=self.folder, env=environ, stdout=out, stderr=errors
            )

    def distill(self, out, *more, files=("sft", "dpo")):
        named = [part for kind in files for part in (f"--{kind}", f"{kind}.jsonl")]
        line = [
            "--base",
            "model",
            *named,
            "--out",
            out,
            "--epochs",
            "4",
            "--dpo-epochs",
            "2",
            "--learning-rate",
            "0.003",
        ]
        line += ["--dpo-learning-rate", "0.0003", "--rank", "8", "--max-length", "512", "--yes", "--json"]
        return self.start("distill", "tickets.skill", *line, *more)

    def finish(self, process, status=0):
        assert process.wait(timeout=HANGS) == status, self.said
        return (self.folder / "stdout.txt").read_text()

    @property
    def said(self):
        return (self.folder / "stderr.txt").read_text()


def wait(until, seconds=HANGS):
    last = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < last, "it did not come about"
        time.sleep(0.05)


def by_trainer(code, *arguments):
    """What a program prints that the Python with TRL runs, as JSON."""
    done = subprocess.run(
        [PYTHON, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=HANGS, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """An adapter of an undisturbed training, and its record."""
    made = Workshop(tmp_path_factory.mktemp("whole"))
    return made, json.loads(made.finish(made.distill("adapter")))
