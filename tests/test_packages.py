"""Who may import whom, and what the first packages must never load."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LEAVES = {
    *(
        "tokens",
        "errors",
        "resources",
        "files",
        "fences",
        "user_code",
        "conflict",
        "skill_packages",
        "diagnostics",
    ),
    *("artifact_paths", "fences", "text", "json_values"),
}
MAY_IMPORT = {
    "stats": {"metrics"},
    "gates": {"stats", "data", "metrics"},
    "diagnostics": {"syntax"},
    "syntax": set(),
    "language": {"gates", "syntax"},
    "document": set(),
    "plan": {"gates", "syntax", "language", "document"},
    "budget": {"stats", "gates", "language", "document", "plan"},
    "data": {"gates", "syntax", "plan", "budget", "language"},
    "store": set(),
    "models": {"gates", "language", "plan", "budget", "store"},
    "metrics": {"gates", "syntax", "plan", "models", "data", "language"},
    "program": {"gates", "syntax", "plan", "budget", "document", "data", "models", "metrics", "language"},
    "optimize": {
        "stats",
        "gates",
        "syntax",
        "plan",
        "budget",
        "document",
        "data",
        "models",
        "metrics",
        "program",
        "language",
    },
    "lint": {"stats", "gates", "syntax", "language", "plan", "budget", "data", "optimize"},
    "run": {"language", "plan", "budget", "document", "store", "models", "optimize"},
    "evaluate": {
        *(
            "stats",
            "gates",
            "syntax",
            "language",
            "document",
            "plan",
            "budget",
            "data",
            "models",
            "metrics",
            "program",
            "optimize",
            "run",
        ),
        *("frontend", "locking", "owner", "report", "session"),
    },
    "lsp": {"gates", "syntax", "language", "document", "plan", "budget", "data", "frontend"},
    "versions": {
        *("gates", "syntax", "language", "document", "plan", "budget", "data", "program", "run"),
        *("frontend", "checking", "locking", "loading", "owner"),
    },
    "doctor": {
        "gates",
        "syntax",
        "language",
        "document",
        "plan",
        "budget",
        "data",
        "models",
        "metrics",
        "program",
        "optimize",
        "run",
        "frontend",
    },
}
HEAVY = ("dspy", "litellm", "openai", "httpx", "requests", "aiohttp", "numpy")


def imports(path):
    """Packages of skillc that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "skillc" and len(parts) > 1:
                yield parts[1]


@pytest.mark.parametrize("package", sorted(MAY_IMPORT))
def test_a_package_imports_only_what_stands_before_it(package):
    allowed = MAY_IMPORT[package] | LEAVES | {package}
    for path in sorted((ROOT / "skillc" / package).rglob("*.py")):
        stray = set(imports(path)) - allowed
        assert not stray, f"{path.relative_to(ROOT)} imports {sorted(stray)}"


def test_language_plan_budget_and_document_import_neither_dspy_nor_litellm_nor_anything_that_opens_a_socket():
    code = (
        "import pkgutil, importlib, sys, skillc\n"
        "for name in ('diagnostics', 'syntax', 'language', 'document', 'plan', 'budget'):\n"
        "    package = importlib.import_module(f'skillc.{name}')\n"
        "    for module in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        importlib.import_module(module.name)\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_check_loads_no_model_code():
    code = (
        "import sys\n"
        f"sys.argv = ['skillc', 'check', {str(ROOT / 'examples/tickets/tickets.skill')!r}]\n"
        "from skillc.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "print([name for name in ('dspy', 'litellm', 'pydantic', 'rich', 'numpy', 'jinja2') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip().splitlines()[-1] == "[]", done.stdout + done.stderr
