"""Installed packages with `.skill` files, found by their entry points without importing them.

A distribution declares `acme = "acme_skills"` in the entry-point group `skillc.modules`. Then `use acme.gates` is the
file `gates.skill` in the folder of the Python package `acme_skills`, and `use acme.judging.strict` is
`judging/strict.skill`. Checking runs no third-party code, so the package must be top-level and a folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from importlib.metadata import Distribution, distributions
from importlib.util import find_spec
from pathlib import Path

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.text import joined, listed

GROUP = "skillc.modules"
STD = "std"

_IMPORTABLE = re.compile(r"[^\W\d]\w*")
_MOST_FILES = 1000
_DEEPEST = 4


class PackageError(SkillcError):
    """An unusable package; `code` is the diagnostic's."""

    def __init__(self, code: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.code = code


@dataclass(frozen=True, slots=True)
class PackageClaim:
    """One entry of the group: the name that a distribution declares, and its value."""

    name: str
    value: str
    distribution: Distribution

    @property
    def label(self) -> str:
        """The distribution in messages."""
        return f"`{_name(self.distribution)} {_version(self.distribution)}`"


@dataclass(frozen=True, slots=True)
class Package:
    """A package of `.skill` files.

    Attributes:
        name: in `use`.
        module: in Python.
        folder: of its files.
        distribution: the distribution's name and version.
    """

    name: str
    module: str
    folder: Path
    distribution: str

    def modules(self) -> tuple[str, ...]:
        """Return what `use` can name in the package, in order: `gates`, `judging.strict`."""
        return tuple(sorted(_modules(self.folder, "")))


def claims() -> Mapping[str, tuple[PackageClaim, ...]]:
    """Return the entries of all installed distributions by name; a damaged distribution has none."""
    found: dict[str, dict[str, PackageClaim]] = {}
    for distribution in _installed():
        for written, value in _entries(distribution):
            name = written.strip()
            # Python imports the first of two copies of a distribution on the path.
            found.setdefault(name, {}).setdefault(_name(distribution).lower(), PackageClaim(name, value, distribution))
    return {name: tuple(by_distribution.values()) for name, by_distribution in sorted(found.items())}


def locate(name: str, found: Mapping[str, tuple[PackageClaim, ...]]) -> Package:
    """Return the package of a name.

    Raises:
        PackageError: none is installed, several are, or its entry point leads to no folder.
    """
    claimed = found.get(name, ())
    if not claimed:
        hint = "install its distribution in this environment"
        raise PackageError("SK111", f"no package `{name}` is installed", hint=hint)
    if len(claimed) > 1:
        both = joined([each.label for each in claimed])
        raise PackageError(
            "SK114", f"several distributions declare a package `{name}`: {both}", hint="uninstall all but one"
        )
    claim = claimed[0]
    module = claim.value.strip()
    if not _IMPORTABLE.fullmatch(module):
        first = re.split(r"[^\w]", module)[0] or "its_package"
        hint = f'its maintainer declares `{claim.name} = "{first}"`, a top-level package with the files'
        message = f"the entry point of {claim.label} names no package: {_why(module)}"
        raise PackageError("SK117", message, hint=hint)
    return Package(name, module, _folder(claim, module), f"{_name(claim.distribution)} {_version(claim.distribution)}")


def importable_names(found: Mapping[str, tuple[PackageClaim, ...]]) -> list[str]:
    """Return the declared names that a `use` can contain."""
    return [name for name in found if name != STD and _IMPORTABLE.fullmatch(name)]


def package_of(module: str) -> Package | None:
    """Return the package with `.skill` files that a Python module belongs to."""
    found = claims()
    for name in importable_names(found):
        if any(claim.value.strip() == module.partition(".")[0] for claim in found[name]):
            try:
                return locate(name, found)
            except PackageError:
                return None
    return None


def _installed() -> list[Distribution]:
    try:
        return list(distributions())
    except Exception:  # Third-party finders may fail.
        return []


def _entries(distribution: Distribution) -> Iterator[tuple[str, str]]:
    """Yield the raw names and values of the group; `importlib.metadata` would refuse invalid ones."""
    parser = ConfigParser(delimiters=("=",), strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment]
    # A damaged distribution is skipped.
    try:
        text = distribution.read_text("entry_points.txt")
        if text is not None and GROUP in text:
            parser.read_string(text)
            yield from parser.items(GROUP)
    except Exception:
        return


def _name(distribution: Distribution) -> str:
    try:
        return str(distribution.metadata["Name"] or "a distribution without a name")
    except Exception:
        return "a distribution without a name"


def _version(distribution: Distribution) -> str:
    try:
        return str(distribution.version or "?")
    except Exception:
        return "?"


def _why(value: str) -> str:
    """Why the value of an entry point is no package."""
    if not value:
        return "it is empty"
    if ":" in value or "[" in value:
        return f"`{value}` is a part of one"
    if "." in value:
        return f"finding `{value}` would run `{value.partition('.')[0]}`"
    return f"`{value}`"


def _folder(claim: PackageClaim, module: str) -> Path:
    """Return the folder of the files: in the distribution, else where Python finds the package."""
    try:
        place = claim.distribution.locate_file(module)
        # A distribution in an archive has another type of path.
        if isinstance(place, Path) and place.is_dir():
            return place
    except Exception:
        pass
    try:
        spec = find_spec(module)
    except Exception:
        spec = None
    declares = f"{claim.label} declares `{claim.name}` as the package `{module}`"
    if spec is None:
        raise PackageError("SK116", f"{declares}, which is missing", hint="install it again")
    if spec.submodule_search_locations is None:
        hint = f"its maintainer turns it into a folder, `{module}/__init__.py`"
        raise PackageError("SK116", f"{declares}, which is a file, not a folder", hint=hint)
    folders = [Path(each) for each in spec.submodule_search_locations if _is_folder(Path(each))]
    if not folders:
        hint = "install it again with pip, which unpacks it"
        raise PackageError("SK116", f"{declares}, which is in an archive", hint=hint)
    if len(folders) > 1:
        found = listed(folders, "and")
        raise PackageError(
            "SK116", f"{declares}, which is in several folders: {found}", hint="its maintainer moves it to one folder"
        )
    return folders[0]


def _modules(folder: Path, prefix: str, depth: int = 0) -> Iterator[str]:
    try:
        entries = sorted(folder.iterdir())[:_MOST_FILES]
    except OSError:
        return
    for entry in entries:
        is_folder = _is_folder(entry)
        if entry.suffix == ".skill" and _IMPORTABLE.fullmatch(entry.stem) and not is_folder:
            yield prefix + entry.stem
        elif is_folder and _IMPORTABLE.fullmatch(entry.name) and depth < _DEEPEST and not entry.is_symlink():
            yield from _modules(entry, f"{prefix}{entry.name}.", depth + 1)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # No permission.
        return False
