"""The documents name what is there."""

from pathlib import Path

from skillc.cli import VERBS

ROOT = Path(__file__).resolve().parents[1]


def test_the_code_map_names_every_package():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    packages = [path.parent.name for path in (ROOT / "skillc").glob("*/__init__.py")]
    assert [name for name in packages if f"skillc/{name}" not in text] == []


def test_the_readme_names_every_verb():
    text = (ROOT / "README.md").read_text()
    assert [verb for verb in VERBS if f"`skillc {verb}" not in text] == []
