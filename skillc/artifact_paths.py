"""Paths of a compiled skill: the folder that agents load, and the files beside it.

- `skills/route-tickets/SKILL.md`: the only file that an agent reads
- `skills/route_tickets.py`: the importable module
- `skills/route-tickets.lock`: the inputs and results of the compile; written last
- `skills/route-tickets.history.jsonl`: every decision of every compile
- `skills/.gitattributes`: how git merges them, shared by all skills of the folder

A skill without the required verdict goes to `skills.candidate`, which has the same files.
"""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from skillc.dataclass import dataclass

OUTPUT = "skills"
SKILL_FILE = "SKILL.md"
NAME_CHARACTERS, ABOUT_CHARACTERS = 64, 1024
"""What agents load of a skill's name and of its description."""
SCRIPTS = "scripts/"
"""Where the scripts of a skill are in its folder."""
ATTRIBUTES_FILE = ".gitattributes"
LOCK_SUFFIX = ".lock"
CANDIDATE_SUFFIX = ".candidate"
_HISTORY_SUFFIX = ".history.jsonl"
# Modules outside the standard library that the emitted module imports.
_IMPORTED = frozenset({"dspy", "litellm", "skillc"})


def is_script(path: str | None) -> bool:
    """Return whether a path in a skill's folder is that of a script, whose text is code."""
    return path is not None and path.startswith(SCRIPTS) and not path.endswith(".md")


@dataclass(frozen=True, slots=True)
class ArtifactPaths:
    """Paths of one compiled skill.

    Attributes:
        base: the folder of compiled skills: `skills` beside the program, or that of `--output`.
        name: the skill's name by Agent Skills rules, `route-tickets`.
    """

    base: Path
    name: str

    @classmethod
    def beside(cls, root: Path, name: str) -> ArtifactPaths:
        """Return the default paths of a program in the folder `root`."""
        return cls(root / OUTPUT, name)

    @classmethod
    def of_folder(cls, folder: Path) -> ArtifactPaths:
        """Return the paths of the skill in a folder, whose name is the skill's."""
        whole = folder if folder.name not in ("", "..") else folder.resolve()
        return cls(whole.parent, whole.name)

    @classmethod
    def of_lock(cls, lock: Path) -> ArtifactPaths:
        """Return the paths of the skill that a lock file belongs to."""
        return cls(lock.parent, lock.name.removesuffix(LOCK_SUFFIX))

    @classmethod
    def of_skill_file(cls, file: Path) -> ArtifactPaths | None:
        """Return the paths of a SKILL.md; None for a file of another name, which has no lock."""
        return cls.of_folder(file.parent) if file.name == SKILL_FILE else None

    @property
    def candidate(self) -> ArtifactPaths:
        """Paths of a skill that was not delivered, outside `base`, which agents load."""
        return self.beside_base(CANDIDATE_SUFFIX)

    def beside_base(self, suffix: str) -> ArtifactPaths:
        """Return the paths of the skill in a folder beside `base`, whose name has a suffix."""
        whole = self.base.resolve() if self.base.name in ("", "..") else self.base
        return ArtifactPaths(whole.with_name(f"{whole.name}{suffix}"), self.name)

    @property
    def folder(self) -> Path:
        """The folder that an agent loads."""
        return self.base / self.name

    @property
    def skill(self) -> Path:
        """SKILL.md."""
        return self.folder / SKILL_FILE

    @property
    def module(self) -> Path:
        """The importable module."""
        return self.base / f"{module_name(self.name)}.py"

    @property
    def lock(self) -> Path:
        """The lock, which is written last."""
        return self.base / f"{self.name}{LOCK_SUFFIX}"

    @property
    def history(self) -> Path:
        """Every decision of every compile."""
        return self.base / f"{self.name}{_HISTORY_SUFFIX}"

    @property
    def attributes(self) -> Path:
        """Git's attributes, shared by all skills of the base folder."""
        return self.base / ATTRIBUTES_FILE

    @property
    def files(self) -> Mapping[str, Path]:
        """The files whose digests are in the lock, by their names there."""
        return {self.key(path): path for path in (self.skill, self.module)}

    @property
    def tracked(self) -> tuple[Path, ...]:
        """The files of this skill that belong into git."""
        return (self.skill, self.module, self.lock, self.history)

    def key(self, path: Path) -> str:
        """Return a path relative to the base folder, with `/`."""
        return path.relative_to(self.base).as_posix()


def module_name(skill: str) -> str:
    """Return the name of a skill's module, which is importable for every skill's name."""
    name = re.sub(r"[^0-9a-z_]+", "_", skill.lower()).strip("_") or "skill"
    if not name.isidentifier() or keyword.iskeyword(name) or name in sys.stdlib_module_names | _IMPORTED:
        name = f"skill_{name}"
    return name
