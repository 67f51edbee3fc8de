"""Adding a setting of the loop is one entry in `skillc/language/loop.py`: all that knows settings follows."""

from __future__ import annotations

import shutil
from pathlib import Path

from package_copy import ROOT, copy_package, insert, run_copy

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
    copy_package(tmp_path)
    insert(tmp_path / "skillc/language/loop.py", ENTRY, "    minibatch: int = ")

    program = (ROOT / "examples/tickets/tickets.skill").read_text("utf-8")
    assert "optimize {" in program
    (tmp_path / "plain.skill").write_text(program, "utf-8")
    (tmp_path / "ticket.skill").write_text(program.replace("optimize {", "optimize {\n  politeness = 5"), "utf-8")
    shutil.copy(ROOT / "examples/tickets/tickets.jsonl", tmp_path)

    found = run_copy(tmp_path, LOOKS)
    assert (found["default"], found["declared"], found["set"]) == (3, 5, 7)
    assert found["hover"].startswith("`politeness` of `optimize`: how polite edits are")
    assert found["hover"].endswith("default: `3`")
    assert found["stages"] == ["rewrite"]
    assert found["pages"] == [
        "| `politeness` | `3` | how often an edit says please |",
        "| `politeness` | a number of rounds, at least 1 | `3` | how polite edits are |",
    ]
