"""Whether a redesign changed what skillc does: diagnostics, formatting, plans, decisions and skills before and after.

`python -m benchmarks.same record FILE` writes what the present code gives; `compare FILE` lists what differs from it,
and ends with status 1 if anything does. Words that only people read are left out, so wording may change. Everything
goes through the command line, which a redesign keeps. `--quick` compiles nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from skillc.cli import skillc
from skillc.diagnostics.codes import CODES

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("benchmarks", "examples", "programs", "stdlib", "tests")
# Their comments are messages, whose wording may change.
GOLDEN = Path("tests/language/golden")
MESSAGE = re.compile(r"^[ \t]*# [EWN] \d+: .*\n", re.MULTILINE)
COMPILED = ("examples/tickets/tickets.skill", "examples/unicode/unicode.skill")
# Damaged copies of each program: lines dropped, doubled and exchanged, characters lost.
DAMAGED = 12
# What only people read, and what names a run.
WORDING = frozenset(
    ("hint", "label", "message", "notes", "page", "rationale", "reason", "related", "report", "run", "why")
)

Found = dict[str, Any]


def run(*words: str, text: str | None = None) -> tuple[int, str]:
    """Exit status and standard output of a command."""
    done = CliRunner().invoke(skillc, words, input=text, standalone_mode=False)
    if done.exception is not None:
        return -1, type(done.exception).__name__
    return done.return_value or 0, done.stdout


def without_wording(value: Any) -> Any:
    """A JSON value without the keys that only hold words."""
    if isinstance(value, dict):
        return {key: without_wording(part) for key, part in value.items() if key not in WORDING}
    return [without_wording(part) for part in value] if isinstance(value, list) else value


def programs() -> list[Path]:
    """Every program of the repository, from its root, except those whose comments are the expected messages."""
    found = (path.relative_to(ROOT) for folder in FOLDERS for path in (ROOT / folder).rglob("*.skill"))
    return sorted(path for path in found if not path.is_relative_to(GOLDEN))


def texts() -> Iterator[tuple[str, str]]:
    """The examples of all diagnostic codes, and damaged copies of every program, by name."""
    for code, each in CODES.items():
        yield f"{code} triggers", each.bad
        yield f"{code} fixed", each.good
    golden = {
        f"{path.relative_to(ROOT)} without messages": MESSAGE.sub("", path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / GOLDEN).rglob("*.skill"))
    }
    yield from golden.items()
    others = {str(path): (ROOT / path).read_text(encoding="utf-8", errors="replace") for path in programs()}
    for name, text in {**others, **golden}.items():
        for i in range(DAMAGED):
            yield f"{name} damaged {i}", damaged(text.splitlines(keepends=True), random.Random(f"{name} {i}"))


def damaged(lines: list[str], chance: random.Random) -> str:
    """A copy of a program with one to three damages."""
    lines = list(lines)
    for _ in range(chance.randint(1, 3)):
        if not lines:
            break
        at = chance.randrange(len(lines))
        kind = chance.choice(("drop", "double", "exchange", "cut"))
        if kind == "drop":
            del lines[at]
        elif kind == "double":
            lines.insert(at, lines[at])
        elif kind == "exchange":
            other = chance.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        elif len(lines[at]) > 1:
            place = chance.randrange(len(lines[at]) - 1)
            lines[at] = lines[at][:place] + lines[at][place + 1 :]
    return "".join(lines)


def checked(name: str) -> Found:
    """What `check` finds in a file: codes, severities, places and fixes."""
    status, out = run("check", name, "--format", "json")
    return {"status": status, "found": without_wording(json.loads(out)["diagnostics"]) if out.startswith("{") else out}


def planned(name: str) -> Found:
    """The plan of a file with its bounds."""
    status, out = run("plan", name, "--json")
    return {"status": status, "plan": without_wording(json.loads(out)) if out.startswith("{") else ""}


def compiled(name: str) -> Found:
    """The decisions and the skill of an offline compile."""
    folder = Path(tempfile.mkdtemp())
    try:
        status, _ = run("compile", name, "--offline", "--quiet", "--output", str(folder), "--fresh")
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        found: Found = {"status": status}
        for path in files:
            text = path.read_text(encoding="utf-8")
            if path.suffix == ".md":
                found["skill"] = text
            elif path.name.endswith(".history.jsonl"):
                found["decisions"] = [without_wording(json.loads(line)) for line in text.splitlines()]
        return found
    finally:
        shutil.rmtree(folder)


def everything(*, quick: bool) -> Iterator[tuple[str, Found]]:
    """All that is compared, by name."""
    for path in programs():
        name = str(path)
        yield f"check {name}", checked(name)
        yield f"plan {name}", planned(name)
        yield f"fmt {name}", dict(zip(("status", "text"), run("fmt", "-", text=path.read_text("utf-8")), strict=True))
    file = Path("build/same/program.skill")
    file.parent.mkdir(parents=True, exist_ok=True)
    for name, text in texts():
        file.write_text(text, encoding="utf-8", errors="surrogatepass")
        yield f"check {name}", checked(str(file))
    for name in () if quick else COMPILED:
        yield f"compile {name}", compiled(name)


def differences(before: Any, after: Any, at: str = "") -> Iterator[str]:
    """Where two JSON values differ, one line each."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys([*before, *after]):
            yield from differences(before.get(key), after.get(key), f"{at}.{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for i, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from differences(old, new, f"{at}[{i}]")
    elif before != after:
        yield f"{at}: {json.dumps(before)[:100]} → {json.dumps(after)[:100]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    options.file = options.file.resolve()
    os.chdir(ROOT)
    found = dict(everything(quick=options.quick))
    if options.verb == "record":
        options.file.write_text(json.dumps(found, indent=1, sort_keys=True), encoding="utf-8")
        print(f"recorded {len(found):,} results")
        return 0
    before = without_wording(json.loads(options.file.read_text(encoding="utf-8")))
    after = json.loads(json.dumps(found))
    if options.quick:
        before = {name: each for name, each in before.items() if not name.startswith("compile ")}
    # Programs and the examples of codes come and go.
    names = [name for name in before if name in after]
    lines = [f"{name}{line}" for name in names for line in differences(before[name], after[name])]
    print("\n".join(lines[:200]))
    print(f"{len(names):,} results, {len(lines):,} differences; {len(before) - len(names)} removed,", end=" ")
    print(f"{len(after) - len(names)} new")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
