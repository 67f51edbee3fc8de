"""The skill `work-in-shell`; it reads work-in-shell/SKILL.md beside it.

Its rollouts are `harbor`; `skillc.load("PROGRAM.skill")` runs one.
"""

from pathlib import Path

_FOLDER = "work-in-shell"


def _skill() -> str:
    """The text of SKILL.md below its frontmatter."""
    path = Path(__file__).parent / _FOLDER / "SKILL.md"
    text = path.read_text(encoding="utf-8-sig")
    _, mark, body = text.partition("\n---\n")
    return body.strip() if mark and text.startswith("---\n") else text.strip()


INSTRUCTIONS = _skill()
