"""Copies of what skillc wrote, in `.skillc/written`, so that an edit made by hand can be told and shown.

Before a skill is written, its texts are kept here under their digests and a note names the files about to be replaced.
The note goes once the lock is written. A kill in between leaves new files beside an old lock: the note tells them from
files that somebody edited.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from skillc.artifact_paths import ArtifactPaths
from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.plan.lock import has_digest
from skillc.run.folder import make_home


@dataclass(frozen=True, slots=True)
class WrittenCopies:
    """The copies in one `.skillc` folder.

    Attributes:
        home: the `.skillc` folder, which need not exist.
    """

    home: Path

    @property
    def folder(self) -> Path:
        """The folder of copies and notes."""
        return self.home / "written"

    def keep(self, content: bytes) -> Path:
        """Keep a content under its digest and return its place.

        Raises:
            SkillcError: it cannot be written.
        """
        place = self.folder / hashlib.sha256(content).hexdigest()
        if not place.exists():
            self._write(place, content)
        return place

    def content(self, digest: str) -> bytes | None:
        """Return the content of a digest, None if it is not kept here or the copy is damaged."""
        try:
            content = (self.folder / digest).read_bytes()
        except OSError:
            return None
        return content if has_digest(content, digest) else None

    def begin(self, paths: ArtifactPaths, texts: Mapping[Path, str]) -> dict[str, str]:
        """Keep the texts of a skill and note that they are about to be written.

        Returns:
            Their digests, by their paths from the lock.

        Raises:
            SkillcError: they cannot be kept.
        """
        digests = {paths.key(path): self.keep(text.encode()).name for path, text in texts.items()}
        self._write(self._note(paths), json.dumps(digests, indent=2, sort_keys=True).encode() + b"\n")
        return digests

    def unfinished(self, paths: ArtifactPaths) -> Mapping[str, str]:
        """Return the digests of files that a killed compile wrote or was about to write, by their paths."""
        try:
            noted = json.loads(self._note(paths).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return {str(name): str(digest) for name, digest in noted.items()} if isinstance(noted, dict) else {}

    def end(self, paths: ArtifactPaths) -> None:
        """Remove the note: the lock names the files now."""
        self._note(paths).unlink(missing_ok=True)

    def _note(self, paths: ArtifactPaths) -> Path:
        """The note of one skill; two `--output` folders have two, also after the project was moved."""
        place = os.path.relpath(paths.base.resolve(), self.home.resolve())
        return self.folder / f"{paths.name}-{hashlib.sha256(place.encode()).hexdigest()[:8]}.json"

    def _write(self, place: Path, content: bytes) -> None:
        try:
            make_home(self.home)
            self.folder.mkdir(exist_ok=True)
            write_atomically(place, content)
        except OSError as problem:
            raise SkillcError(f"`{place}` cannot be written: {problem.strerror}") from problem
