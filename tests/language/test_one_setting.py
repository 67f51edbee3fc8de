"""Adding a setting of the loop is one entry in `skillc/language/loop.py`: all that knows settings follows."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENTRY = """    politeness: int = setting(
        3, "how polite edits are", count("rounds"), stages=("rewrite",), details="how often an edit says please"
    )

"""
LOOKS = """
import json
from pathlib import Path

from docs.making.pages import pages
from skillc.frontend import plan_file
from skillc.language.kinds import KINDS
from skillc.lsp.hover import setting_text

program = Path("ticket.skill")
changed = ["optimize.politeness=7 rounds"]
print(json.dumps({
    "default": plan_file(Path("plain.skill")).plan.optimize.politeness,
    "declared": plan_file(program).plan.optimize.politeness,
    "set": plan_file(program, settings=changed).plan.optimize.politeness,
    "hover": setting_text(KINDS["optimize"].setting("politeness"), "optimize"),
    "stages": KINDS["optimize"].setting("politeness").stages,
    "pages": [row for page in pages().values() for row in page.splitlines() if "`politeness`" in row],
}))
"""


def test_a_new_setting_is_one_entry(tmp_path: Path) -> None:
    for folder in ("skillc", "grammar", "stdlib", "docs/making"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    loop = tmp_path / "skillc/language/loop.py"
    text = loop.read_text("utf-8")
    assert text.count("    minibatch: int = ") == 1
    loop.write_text(text.replace("    minibatch: int = ", f"{ENTRY}    minibatch: int = "), "utf-8")

    program = (ROOT / "examples/tickets/tickets.skill").read_text("utf-8")
    assert "optimize {" in program
    (tmp_path / "plain.skill").write_text(program, "utf-8")
    (tmp_path / "ticket.skill").write_text(program.replace("optimize {", "optimize {\n  politeness = 5"), "utf-8")
    shutil.copy(ROOT / "examples/tickets/tickets.jsonl", tmp_path)

    done = subprocess.run(
        [sys.executable, "-c", LOOKS],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["default"], found["declared"], found["set"]) == (3, 5, 7)
    assert found["hover"].startswith("`politeness` of `optimize`: how polite edits are")
    assert found["hover"].endswith("`3` unless it is said")
    assert found["stages"] == ["rewrite"]
    assert found["pages"] == [
        "| `politeness` | `3` | how often an edit says please |",
        "| `politeness` | a number of rounds, at least 1 | `3` | how polite edits are |",
    ]
