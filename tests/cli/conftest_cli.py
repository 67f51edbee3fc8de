"""The command line as a user types it: in a process of its own, outside the checkout."""

import json
import subprocess
from pathlib import Path

import pytest
from forked import command

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """language 1
task {
  input  text: text
  output kind: "fruit" | "tool" | "animal"
}
skill sort_things {
  about = "Say what kind of thing a text is about."
  frozen section role = "You sort texts."
  trainable section rules { limit = 600 tokens }
}
model target    = "rulebook/v1"
model optimizer = "rulebook/v1"
data { source = "things.jsonl"; split = 2 : 1 : 2; seed = 3 }
goal correct = exact_match(kind)
optimize { batch = 12; drafts = 0; update = edits; successes = on; edits = cosine(4, 2) }
budget { epochs = 2; patience = 6 steps }
gate better = candidate.correct > incumbent.correct
gate compact = tokens(candidate) <= 500 tokens
"""

WORDS = {
    "fruit": ["apple", "pear", "cherry", "mango"],
    "tool": ["hammer", "saw", "chisel", "wrench"],
    "animal": ["horse", "otter", "heron", "lynx"],
}
FRAMES = [
    "I saw {0} {1} near the {2}",
    "a {1} with {0} from {2}",
    "{2}: one {1}, {0}, as asked",
    "the {1} at {2} is {0}",
]
PLACES = ["market", "harbour", "station", "school", "bridge"]


def rows():
    """120 rows, a word of its kind in each."""
    for i in range(120):
        kind = sorted(WORDS)[i % 3]
        word = WORDS[kind][(i // 3) % 4]
        text = FRAMES[(i * 7) % 4].format(["old", "new", "red"][i % 3 - 1], word, PLACES[(i * 3) % 5])
        yield {"id": f"x{i}", "text": f"{text} ({i})", "kind": kind, "shop": PLACES[i % 5]}


def skillc(*arguments, folder, **options):
    """Runs `skillc` in a folder."""
    return subprocess.run(
        [*command(), *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
        **options,
    )


def shop_in(folder, program=PROGRAM):
    """A folder with a program and its data."""
    (folder / "things.skill").write_text(program)
    (folder / "things.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows()))
    return folder


@pytest.fixture
def shop(tmp_path):
    """A folder with a program and its data."""
    return shop_in(tmp_path)


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """A folder in which the program has been compiled, and what was printed."""
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "things.skill").write_text(PROGRAM)
    (folder / "things.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows()))
    done = skillc("compile", "things.skill", "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout), done
