"""A small program with data, in a folder or in a git repository."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

PROGRAM = """language 1
use std.gates
task {
  input  text: text
  output kind: "fruit" | "tool" | "animal"
  output why: text
}
skill sort_things {
  about = "Say what kind of thing a text is about."
  frozen section role = \"\"\"
    You sort texts.
    One answer for each.
  \"\"\"
  trainable section rules { limit = 600 tokens }
  slow section guidance { limit = 200 tokens }
}
model target    = "rulebook/v1"
model optimizer = "rulebook/v1"
data { source = "things.jsonl"; field shop: text; field shop_id: text; split = 2 : 1 : 2; group = shop_id; seed = 3 }
goal correct = exact_match(kind)
metric brief = clamp(1 - tokens(why) / 50 tokens, 0, 1)
optimize { batch = 12; samples = 2; sees = [feedback] }
budget { epochs = 2; patience = 6 steps; cost = $2; min_gain = 1% }
gate better = candidate.correct > incumbent.correct
gate safe   = regressed(correct, by = shop) <= 10%
gate small  = gates.small_step(30%)
"""

WORDS = {"fruit": ["apple", "pear"], "tool": ["hammer", "saw"], "animal": ["horse", "otter"]}


def rows(count=120):
    """Rows with a word of their kind, by 40 customers."""
    for i in range(count):
        kind = sorted(WORDS)[i % 3]
        word = WORDS[kind][(i // 3) % 2]
        yield {
            "id": f"x{i}",
            "text": f"a {word}, the {i}th",
            "kind": kind,
            "why": word,
            "shop": ["north", "south"][i % 2],
            "shop_id": f"s{i % 40}",
        }


def write_rows(path, items):
    """Rows as JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in items))


def write_shop(folder: Path, program: str = PROGRAM):
    """The program and its data."""
    (folder / "things.skill").write_text(program)
    write_rows(folder / "things.jsonl", rows())


def learnable():
    """The program as the embedded model can learn it."""
    return edited(
        "  output why: text\n => ",
        "metric brief = clamp(1 - tokens(why) / 50 tokens, 0, 1)\n => ",
        "samples = 2; sees = [feedback] => replay = 10",
        "small_step(30%) => small_step(80%)",
        "batch = 12 => batch = 20",
        "epochs = 2 => epochs = 1",
    )


def edited(*changes: str, program: str = PROGRAM):
    """The program with texts replaced, `old => new`, each of which it has to hold."""
    for change in changes:
        old, new = change.split(" => ")
        assert old in program, old
        program = program.replace(old, new)
    return program


@dataclass(frozen=True)
class Repo:
    folder: Path

    def git(self, *words, fails=False):
        done = subprocess.run(["git", *words], cwd=self.folder, capture_output=True, text=True, check=False)
        assert fails or done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def commit(self, message):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)

    def write(self, *changes: str):
        program = (self.folder / "things.skill").read_text()
        (self.folder / "things.skill").write_text(edited(*changes, program=program))
