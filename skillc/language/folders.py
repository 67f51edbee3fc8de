"""Reading below one folder, and nowhere else."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from pathlib import Path

from skillc.diagnostics.suggest import meant
from skillc.errors import SkillcError
from skillc.language.files import read_source
from skillc.syntax.source import Source


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder out of which nothing can be read, whatever links lie in it.

    Attributes:
        place: where it is.
        what: what it is to the user, for messages.
    """

    place: Path
    what: str = "the program's folder"

    def source(self, path: str) -> Source:
        """The text of a file, its path relative to the folder.

        Raises:
            SkillcError: it can't be read, or a link leads out of the folder.
        """
        return read_source(self.file(path))

    def file(self, path: str) -> Path:
        """Where a file lies.

        Raises:
            SkillcError: it is not there under this very name, or a link leads out of the folder.
        """
        place = self.inside(path)
        try:
            missing = not place.exists()
        except (OSError, ValueError) as error:
            raise _unreadable(path, error) from None
        if missing:
            raise SkillcError(f"there is no file `{path}`", hint=self._near(place))
        self._must_be_called(path)
        return place

    def inside(self, path: str) -> Path:
        """Where a file would lie.

        Raises:
            SkillcError: a link leads out of the folder.
        """
        place = self.place / path
        try:
            outside = not place.resolve().is_relative_to(self.place.resolve())
        except RuntimeError:
            raise SkillcError(f"`{path}` can't be read: its links lead in a circle") from None
        except (OSError, ValueError) as error:
            raise _unreadable(path, error) from None
        if outside:
            raise SkillcError(f"`{path}` is a link that leads out of {self.what}", hint="copy the file in its place")
        return place

    def _must_be_called(self, path: str) -> None:
        """Where case makes no difference to the file system, it makes one to the next system."""
        place = self.place
        for part in path.split("/"):
            try:
                names = {unicodedata.normalize("NFC", each.name) for each in place.iterdir()}
            except OSError:
                return
            if part != ".." and unicodedata.normalize("NFC", part) not in names:
                right = next((name for name in sorted(names) if name.casefold() == part.casefold()), None)
                hint = f"write `{right}`, as it is called" if right else None
                raise SkillcError(f"there is no file `{path}`", hint=hint)
            place = place / part

    def _near(self, place: Path) -> str | None:
        try:
            names = sorted(each.name for each in place.parent.iterdir() if each.suffix in (".skill", ".md"))
        except OSError:
            return None
        return meant(place.name, names)


def _unreadable(path: str, error: Exception) -> SkillcError:
    reason = (getattr(error, "strerror", None) or str(error)).lower()
    return SkillcError(f"`{path}` can't be read: {reason}")
