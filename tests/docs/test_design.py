"""The pages on the design name tests and files that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs/design").glob("*.md"))]
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
_PATH = re.compile(r"`((?:skillc|tests|docs|benchmarks|examples|editors|grammar|stdlib)/[\w/.]*)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_named_test_exists(page: Path) -> None:
    for file, name in _TEST.findall(page.read_text("utf-8")):
        functions = {
            node.name
            for node in ast.walk(ast.parse((ROOT / file).read_text("utf-8")))
            if isinstance(node, ast.FunctionDef)
        }
        assert name in functions, f"{page.name}: {file}::{name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_named_path_exists(page: Path) -> None:
    missing = [path for path in _PATH.findall(page.read_text("utf-8")) if not _exists(path)]
    assert not missing


def _exists(path: str) -> bool:
    return (ROOT / path).exists() or (ROOT / f"{path}.py").exists()
