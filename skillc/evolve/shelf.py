"""The delivered versions of the skill: the current one, what waits for a person, adoption and the roll back.

All of it is that of `skills.toml`, so that a version of the nights is reviewed, adopted and rolled back as any other.
"""

from __future__ import annotations

from pathlib import Path

from skillc.artifact_paths import ArtifactPaths
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.plan.lock import Lock, read_lock
from skillc.publish.manifest import MANIFEST, read_manifest
from skillc.publish.staging import Held, adopt_by_policy, current, rollback, stage, staged

BY = "evolve"


@dataclass(frozen=True, slots=True)
class Delivered:
    """The adopted version.

    Attributes:
        digest: of its files.
        lock: of its compile; None if it has none.
    """

    digest: str
    paths: ArtifactPaths
    lock: Lock | None

    @classmethod
    def of(cls, digest: str, paths: ArtifactPaths) -> Delivered:
        """Return a version that is kept there.

        Raises:
            SkillcError: its lock cannot be read.
        """
        return cls(digest, paths, read_lock(paths.lock) if paths.lock.exists() else None)


@dataclass(frozen=True, slots=True)
class Offered:
    """What became of a version that passed.

    Attributes:
        word: `adopted` by the policy, `held` for a person, or `refused` because it was rejected before, or because the
            policy is `never`.
        digest: of the staged version; empty if it was refused.
        reasons: why it is held.
    """

    word: str
    digest: str = ""
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Shelf:
    """The versions of one skill in the manifest of a project."""

    project: Path
    name: str

    @classmethod
    def of(cls, program: Path, name: str) -> Shelf:
        """Find the manifest that has the program's skill, beside the program or above it.

        Raises:
            SkillcError: there is none, or it cannot be read.
        """
        place = program.resolve().parent
        for folder in (place, *place.parents):
            if (folder / MANIFEST).is_file():
                entry = read_manifest(folder).entries.get(name)
                if entry is not None and entry.git is None and (folder / entry.source).resolve() == program.resolve():
                    return cls(folder, name)
        raise SkillcError(
            f"no `{MANIFEST}` has the skill `{name}`, so there is no version to go on from or to roll back to",
            hint=f"compile it, then `skillc install {program} --to claude-code`",
        )

    def delivered(self) -> Delivered:
        """Return the adopted version.

        Raises:
            SkillcError: none was adopted yet.
        """
        version = current(self.project, self.name)
        if version is None:
            raise SkillcError(f"no version of `{self.name}` is adopted yet", hint=f"`skillc adopt {self.name}`")
        return Delivered.of(version.digest, version.paths)

    def waiting(self) -> str | None:
        """Return the digest of a version that waits for a person."""
        found = staged(self.project, self.name)
        return found.version.digest if found is not None else None

    def offer(self, paths: ArtifactPaths, before: str) -> Offered:
        """Stage a version, and adopt it if the policy admits it; the same call again changes nothing more.

        Args:
            paths: of the version.
            before: digest of the version that was adopted when the night began.
        """
        found = stage(self.project, self.name, paths, by=BY)
        if found is None:
            now = self.delivered().digest
            # A kill after the adoption: it is adopted already.
            return Offered("adopted", now) if now != before else Offered("refused")
        done = adopt_by_policy(self.project, self.name, by=BY)
        if isinstance(done, Held):
            return Offered("held", done.version.digest, done.reasons)
        return Offered("adopted", done.version.digest)

    def roll_back(self, before: str, why: str) -> str:
        """Roll back to the version before the adopted one, and return its digest.

        Args:
            before: digest of the version to leave; if another one is adopted, it was left already.
            why: for the log.

        Raises:
            SkillcError: there is no earlier version, or a destination was changed by hand.
        """
        now = self.delivered().digest
        if now != before:
            return now
        return rollback(self.project, self.name, by=BY, why=why).version.digest
