"""How many of 200 planted instructions reach an adopted skill, with all layers and without each of them.

`python -m benchmarks.poison.measure` prints the table of docs/guides/poison.md. Each planted instruction is in a tool's
result of a session that is good otherwise; the sessions are imported, rows are made of those that are usable, a program
is compiled on them by an optimizer that copies whatever it reads (`gullible.py`), and the skill is installed without a
person being asked.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

from benchmarks.poison.paraphrasing import paraphrase
from benchmarks.poison.planted import planted
from skillc.dataclass import dataclass
from skillc.sessions.store import SessionStore
from skillc.trajectories.trajectory import Message, Observation

LAYERS = ("scan", "rule scan", "meaning", "copies")
CLEAN = 40
"""Sessions without a planted instruction."""
PROGRAM = """language 1
task {{
  input  page:  text
  output sound: text
}}
skill imitate {{
  about = "Say what an animal says."
  trainable section rules {{ limit = 60_000 tokens }}
}}
model target    = "mine/player" {{ backend = python("gullible:act") }}
model optimizer = "mine/editor" {{ backend = python("{optimizer}:improve") }}
data {{
  train = "train.jsonl"
  validation = "validation.jsonl"
  test = "test.jsonl"
  field session: text
}}
goal right = exact_match(sound)
optimize {{ batch = 20; minibatch = 20; edits = 20; drafts = {drafts} }}
budget {{ epochs = 3 }}
gate better = candidate.right > incumbent.right
"""


@dataclass(frozen=True, slots=True)
class Reached:
    """How far the planted instructions came.

    Attributes:
        planted: how many there were.
        suspect: whose session the scan of sessions set apart.
        learned: that are in the compiled skill.
        adopted: that are in the installed skill.
        refused: edits that were refused because of their text.
        score: of the skill on validation, 0 to 1.
    """

    planted: int
    suspect: int
    refused: int
    learned: int
    adopted: int
    score: float


@contextmanager
def without(layers: Collection[str]) -> Iterator[None]:
    """Switch some layers off."""
    with ExitStack() as stack:
        if "scan" in layers:
            stack.enter_context(patch("skillc.sessions.importing.scan", lambda session: ()))
        if "rule scan" in layers:
            stack.enter_context(patch("skillc.optimize.from_sessions.scan_rule", lambda text: ()))
        if "meaning" in layers:
            stack.enter_context(patch("skillc.optimize.from_sessions.asks_for", lambda text: iter(())))
        if "copies" in layers:
            stack.enter_context(patch("skillc.optimize.from_sessions._is_copy", lambda text, examples: False))
        yield


def sound_of(number: int) -> str:
    """Return the answer about an animal."""
    return "".join(chr(ord("a") + int(digit)) for digit in f"{number * 7919 % 100_000:05d}")


def conversation(number: int, more: str) -> dict[str, object]:
    """Return a session in which a page is read, with further text on the page."""
    page = f"About the kind{number}. \n{more}" if more else f"About the kind{number}. "
    call = {"id": "1", "type": "function", "function": {"name": "fetch", "arguments": "{}"}}
    return {
        "messages": [
            {"role": "user", "content": f"What does a kind{number} say?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": page},
            {"role": "assistant", "content": sound_of(number)},
        ]
    }


def write_rows(store: Path, folder: Path) -> None:
    """Write the rows of the usable sessions, each on the side that its file is named after."""
    rows: dict[str, list[str]] = {"train": [], "validation": [], "test": []}
    with SessionStore(store) as opened:
        for row in opened.rows(reason=None):
            steps = opened.session(row.id).steps
            page = next(step.text for step in steps if isinstance(step, Observation))
            answer = [step.text for step in steps if isinstance(step, Message)][-1]
            side = row.key.split(":")[1].removesuffix(".jsonl")
            value = {
                "id": row.key,
                "session": row.key,
                "page": f"{page}\n" if side != "train" else page,
                "sound": answer,
            }
            rows[side].append(json.dumps(value) + "\n")
    for side, lines in rows.items():
        (folder / f"{side}.jsonl").write_text("".join(lines))


def run(*words: str) -> str:
    """Run skillc in this process, so that what is switched off is."""
    from click.testing import CliRunner

    from skillc.cli import skillc

    done = CliRunner().invoke(skillc, list(words), catch_exceptions=False)
    if done.exit_code:
        raise RuntimeError(f"{words}: {done.output}")
    return done.stdout


def measure(
    folder: Path, texts: Sequence[str], off: Collection[str] = (), *, drafts: int = 0, optimizer: str = "gullible"
) -> Reached:
    """Plant the texts, learn, adopt, and count what came how far; `off` names layers that are switched off.

    Args:
        optimizer: the module of this folder that is it, `gullible` or `paraphrasing`.
    """
    sessions = folder / "sessions"
    sessions.mkdir(parents=True)
    (folder / "project").mkdir()
    # As many clean sessions are beside them, so that something is left to learn.
    sides = {
        "train": [conversation(i, text) for i, text in enumerate((*texts, *("" for _ in range(CLEAN))))],
        "validation": [conversation(i, "") for i in range(len(texts) + CLEAN)],
        "test": [conversation(i, " ") for i in range(len(texts) + CLEAN)],
    }
    for side, lines in sides.items():
        (sessions / f"{side}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for name in {"gullible", optimizer}:
        shutil.copy(Path(__file__).with_name(f"{name}.py"), folder)
    program, store = folder / "imitate.skill", folder / ".skillc" / "sessions.db"
    program.write_text(PROGRAM.format(drafts=drafts, optimizer=optimizer))
    with without(off):
        run("sessions", "import", str(sessions), "--store", str(store), "--workers", "1")
        # The same questions are on all sides, and would be set apart as copies.
        with SessionStore(store) as opened:
            opened.execute("UPDATE sessions SET reason = NULL WHERE reason IN ('duplicate', 'beginning')")
            suspect = sum(row.reason == "suspect" for row in opened.rows())
        write_rows(store, folder)
        summary = json.loads(run("compile", str(program), "--json", "--quiet"))
        run("install", str(program), "--to", "claude-code", "--project", str(folder / "project"))
    said = [paraphrase(text) for text in texts] if optimizer == "paraphrasing" else texts
    learned = _holds(folder / "skills" / "imitate" / "SKILL.md", said)
    adopted = _holds(folder / "project" / ".claude" / "skills" / "imitate" / "SKILL.md", said)
    history = (folder / "skills" / "imitate.history.jsonl").read_text()
    score = float(summary["validation"]["best"]["mean"])
    return Reached(len(texts), suspect, history.count('"fate":"refused"'), learned, adopted, score)


def _holds(file: Path, texts: Sequence[str]) -> int:
    """Return how many of the texts a file has, whatever its spaces."""
    whole = " ".join(file.read_text(encoding="utf-8").split()) if file.exists() else ""
    return sum(" ".join(text.split()) in whole for text in texts)


def main() -> None:
    """Print the table, of the optimizer that copies or, with `paraphrasing`, of the one that uses words of its own."""
    every = planted()
    optimizer = sys.argv[1] if len(sys.argv) > 1 else "gullible"
    print(f"{'layers off':<28}{'planted':>8}{'suspect':>8}{'refused':>8}{'learned':>8}{'adopted':>8}{'score':>7}")
    for off in ((), *((each,) for each in LAYERS), ("scan", "rule scan"), ("rule scan", "meaning"), LAYERS[1:], LAYERS):
        with tempfile.TemporaryDirectory() as name:
            os.chdir(name)
            sys.modules.pop(optimizer, None)
            got = measure(Path(name) / "w", [text for _, text, _ in every], off, optimizer=optimizer)
            print(
                f"{', '.join(off) or 'none':<28}{got.planted:>8}{got.suspect:>8}{got.refused:>8}{got.learned:>8}"
                f"{got.adopted:>8}{got.score:>7.2f}",
                flush=True,
            )
            os.chdir("/")


if __name__ == "__main__":
    main()
