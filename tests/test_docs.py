"""The documents name what is there."""

import re
from pathlib import Path

from skillc.cli import VERBS
from skillc.language.kinds import KINDS

ROOT = Path(__file__).resolve().parents[1]


def test_the_page_of_the_optimizer_lists_each_setting_with_its_default():
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", (ROOT / "docs/optimizer.md").read_text(), re.MULTILINE)
    told = {name: default.strip().replace("`", "") for name, default in rows}
    assert told == {setting.name: setting.default or "none" for setting in KINDS["optimize"].settings}


def test_the_code_map_names_every_package():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    packages = [path.parent.name for path in (ROOT / "skillc").glob("*/__init__.py")]
    assert [name for name in packages if f"skillc/{name}" not in text] == []


def test_the_readme_names_every_verb():
    text = (ROOT / "README.md").read_text()
    assert [verb for verb in VERBS if f"`skillc {verb}" not in text] == []
