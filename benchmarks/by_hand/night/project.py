"""Make the project of the nights: the adopted first version, and the sessions of the first night, one withdrawn.

python -m benchmarks.by_hand.night.project FOLDER

`skills` has the first version: compiled from `marks.jsonl`, with `rehearse.py` for both models.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from benchmarks.by_hand.night.make import WITHDRAWN
from skillc.publish.installing import add
from skillc.sessions.importing import import_sessions
from skillc.sessions.store import DEFAULT, SessionStore
from skillc.sessions.verdicts import withdraw

TASK = Path(__file__).parent
NAME = "mark-entry"


def make_project(folder: Path) -> Path:
    """Write the project and return its program."""
    (folder / "transcripts").mkdir(parents=True)
    for name in ("marks.skill", "marks.jsonl"):
        shutil.copy(TASK / name, folder)
    shutil.copytree(TASK / "skills", folder / "skills")
    shutil.copy(TASK / "night1.jsonl", folder / "transcripts")
    add(folder, folder / "marks.skill", ["claude-code"], "project", by="ida")
    with SessionStore(folder / DEFAULT, create=True) as store:
        import_sessions([folder / "transcripts"], store, workers=1)
        keys = [row.key for row in store.rows(reason=None) if WITHDRAWN in str(store.session(row.id))]
        withdraw(store, keys, person="ida", why="the entry was confidential")
    return folder / "marks.skill"


if __name__ == "__main__":
    print(make_project(Path(sys.argv[1])))
