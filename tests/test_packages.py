"""Who may import whom, and what the first packages must never load."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# Everything may import the leaves, and what comes before it in the order.
LEAVES = {
    *(
        "artifact_paths",
        "bm25",
        "conflict",
        "dataclass",
        "errors",
        "fences",
        "files",
        "images",
        "json_values",
        "outcomes",
    ),
    *("processes", "redaction", "skill_files", "text", "tokens", "trajectories"),
}
ORDER = (
    *("syntax", "diagnostics", "document", "stats", "gates", "language", "user_code", "plan", "budget", "data"),
    *(
        "store",
        "sessions",
        "sandbox",
        "telemetry",
        "models",
        "metrics",
        "tools",
        "program",
        "tasks",
        "optimize",
        "lint",
        "frontend",
        "run",
        "items",
        "artifacts",
        "review",
        "provenance",
        "watch",
        "export",
    ),
    *(
        "teleprompter",
        "versions",
        "publish",
        "doctor",
        "pipeline",
        "evaluate",
        "training",
        "emit",
        "labels",
        "ablate",
        "evolve",
        "audit",
        "noise",
        "code_pages",
        "importer",
        "scripted",
    ),
    *("pygments_lexer", "lsp", "cli"),
)
# The parser reports what it finds, and a diagnostic points into a source.
TOGETHER = {"syntax": {"diagnostics"}}
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


def files_of(name):
    """The files of a package or a module of skillc."""
    folder = ROOT / "skillc" / name
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def test_every_package_and_module_has_its_place():
    names = {
        path.stem for path in (ROOT / "skillc").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert names - {"__init__", "__main__"} == LEAVES | set(ORDER)
    assert not LEAVES & set(ORDER)


@pytest.mark.parametrize("name", [*sorted(LEAVES), *ORDER])
def test_nothing_imports_what_comes_after_it(name):
    before = set() if name in LEAVES else set(ORDER[: ORDER.index(name)]) | TOGETHER.get(name, set())
    for path in files_of(name):
        stray = set(imports(path)) - before - LEAVES - {name, "__version__"}
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


def test_a_compile_needs_neither_dspy_nor_litellm_nor_numpy_before_its_first_call():
    code = (
        "import sys, skillc.cli.running, skillc.cli.runs, skillc.models.backends.openai, skillc.tasks.one_turn\n"
        "print([name for name in ('dspy', 'litellm', 'openai', 'numpy', 'scipy', 'requests') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
