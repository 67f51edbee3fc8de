"""The skill `change-workbooks`; it reads change-workbooks/SKILL.md beside it.

Its rollouts are `environment`; `skillc.load("PROGRAM.skill")` runs one.
"""

from pathlib import Path

_FOLDER = "change-workbooks"


def _skill() -> str:
    """The text of SKILL.md below its frontmatter."""
    path = Path(__file__).parent / _FOLDER / "SKILL.md"
    text = path.read_text(encoding="utf-8-sig")
    _, mark, body = text.partition("\n---\n")
    return body.strip() if mark and text.startswith("---\n") else text.strip()


INSTRUCTIONS = _skill()
