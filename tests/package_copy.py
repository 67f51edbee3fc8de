"""A copy of the package that a test adds a part to, the way a contributor would."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def copy_package(folder: Path) -> None:
    """Copy the package and what makes its pages into a folder."""
    for name in ("skillc", "grammar", "stdlib", "docs/making"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))


def insert(path: Path, text: str, before: str) -> None:
    """Insert a text into a file, in front of another one that occurs there once."""
    source = path.read_text("utf-8")
    assert source.count(before) == 1
    path.write_text(source.replace(before, text + before), "utf-8")


def run_copy(folder: Path, code: str) -> Any:
    """Run code over the copy in a folder; return the JSON that it prints."""
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
