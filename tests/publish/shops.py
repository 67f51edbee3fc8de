"""Projects with a compiled skill, for the tests of publishing."""

import json
import os
from pathlib import Path

from skillc.artifact_paths import ArtifactPaths

PROGRAM = """language 1
task {
  input  ticket: text
  output team: "billing" | "shipping"
}
skill route_tickets {
  about = "Route a support ticket to the team that can resolve it."
  frozen section role = "You route tickets."
  trainable section rules { limit = 800 tokens }
}
model target    = "rulebook/v1"
model optimizer = "rulebook/v1"
data { source = "tickets.jsonl" }
goal correct = exact_match(team)
budget { epochs = 1 }
gate better = candidate.correct > incumbent.correct
"""
RULES = ('If the ticket mentions "parcel", answer shipping.', 'If the ticket mentions "invoice", answer billing.')
NAME = "route-tickets"


def skill_md(*rules: str, about: str = "Route a support ticket to the team that can resolve it.") -> str:
    head = f"---\nname: {NAME}\ndescription: {about}\n---\n\n# Route tickets\n\n"
    lines = "\n".join(f"- {rule}" for rule in rules)
    return f"{head}## Role\n\nYou route tickets.\n\n## Rules\n\n{lines}\n"


def lock_of(text: str, *, verdict: str = "improved", gain: float | None = 0.1) -> str:
    """A lock whose test is of this SKILL.md."""
    import hashlib

    digest = "0" * 64
    value = {
        "format_version": 1,
        "decision_version": "1",
        "run": digest,
        "program": {"file": "tickets.skill", "path": "../tickets.skill", "plan": digest},
        "data": {"digest": digest, "train": 5, "validation": 5, "test": 5},
        "skill": {"initial": digest, "best": digest},
        "files": {f"{NAME}/SKILL.md": hashlib.sha256(text.encode()).hexdigest()},
        "models": {},
        "verdict": verdict,
        "test": {"gain": gain, "interval": [0.02, 0.2], "n": 50, "alpha": 0.05} if gain is not None else {},
        "stopped": "finished",
    }
    return json.dumps(value)


def compile_as(project: Path, *rules: str, about: str | None = None, **lock) -> ArtifactPaths:
    """Write what a compile would: a SKILL.md with these rules, and its lock."""
    paths = ArtifactPaths(project / "skills", NAME)
    paths.folder.mkdir(parents=True, exist_ok=True)
    text = skill_md(*rules, **({"about": about} if about else {}))
    paths.skill.write_text(text)
    paths.lock.write_text(lock_of(text, **lock))
    return paths


def shop(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tickets.skill").write_text(PROGRAM)
    (folder / "tickets.jsonl").write_text("")
    compile_as(folder, *RULES)
    return folder


def held(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in sorted(folder.rglob("*")) if p.is_file()}


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))
