"""The invariant of DESIGN section 3: what `check` and `plan` import."""

import subprocess
import sys

MODULES = """
import importlib, pkgutil, sys
for name in ("skillc.language", "skillc.plan", "skillc.document"):
    package = importlib.import_module(name)
    for found in pkgutil.walk_packages(package.__path__, name + "."):
        importlib.import_module(found.name)
heavy = {"dspy", "litellm", "numpy", "httpx", "requests", "aiohttp", "urllib3", "http.client", "openai", "asyncio"}
print(*sorted(heavy & set(sys.modules)))
"""


def test_language_plan_and_document_import_neither_dspy_litellm_nor_anything_that_opens_a_socket():
    done = subprocess.run([sys.executable, "-c", MODULES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_the_plan_imports_only_language_and_document():
    import ast
    from pathlib import Path

    import skillc.plan

    allowed = (
        "skillc.plan",
        "skillc.gates",
        "skillc.language",
        "skillc.document",
        "skillc.errors",
        "skillc.conflict",
        "skillc.files",
        "skillc.tokens",
        "skillc.resources",
        "skillc.artifact_paths",
        "skillc.fences",
    )
    for path in Path(skillc.plan.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("skillc"):
                assert node.module.startswith(allowed), f"{path}: {node.module}"
