"""Modules of a benchmark's folder, and commands of its programs, for tests."""

import json
import shutil
import sys
from pathlib import Path

from click.testing import CliRunner

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "programs"
if str(ROOT) not in sys.path:
    # `python -m pytest` has the root of the repository on the path, `pytest` has not.
    sys.path.insert(0, str(ROOT))


def rows(name, split):
    path = PROGRAMS / name / "data" / f"{split}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def run(*arguments):
    """Run a verb; return its status and what it prints."""
    from skillc.cli import skillc as verbs

    done = CliRunner().invoke(verbs, [str(each) for each in arguments])
    return done.exit_code, done.stdout


def copied(name, folder):
    """Return a copy of a program, without what earlier runs left."""
    return Path(
        shutil.copytree(PROGRAMS / name, folder / name, ignore=shutil.ignore_patterns(".skillc", "__pycache__"))
    )


def split_of(folder, train, validation, test, name="items.json"):
    """Write a folder in SkillOpt's format."""
    for split, items in {"train": train, "val": validation, "test": test}.items():
        (folder / split).mkdir(parents=True)
        (folder / split / name).write_text(json.dumps(items))
    return folder
