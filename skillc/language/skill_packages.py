"""Installed packages that carry `.skill` files: found by their entry point, without importing any of them.

A distribution declares `acme = "acme_skills"` in the entry-point group `skillc.modules`: `use acme.gates` is then the
file `gates.skill` in the folder of the Python package `acme_skills`, and `use acme.judging.strict` the file
`judging/strict.skill`. Checking runs no third-party code, so the package must be one that can be found without its
parent: a top-level one, laid out as a folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from importlib.util import find_spec
from pathlib import Path

from skillc.errors import SkillcError
from skillc.text import joined, listed

GROUP = "skillc.modules"
STD = "std"

_IMPORTABLE = re.compile(r"[^\W\d]\w*")
_MOST_FILES = 1000
_DEEPEST = 4


class PackageError(SkillcError):
    """A package that nothing can be used of; `code` is the diagnostic's."""

    def __init__(self, code: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.code = code


@dataclass(frozen=True, slots=True)
class PackageClaim:
    """One entry of the group: the name that a distribution claims, and what it says stands behind it."""

    name: str
    value: str
    distribution: Distribution

    @property
    def shown(self) -> str:
        """The distribution, as a message says it."""
        return f"`{_name(self.distribution)} {_version(self.distribution)}`"


@dataclass(frozen=True, slots=True)
class Package:
    """A package of `.skill` files.

    Attributes:
        name: as `use` says it.
        module: as Python imports it.
        folder: where its files lie.
        distribution: the distribution's name and version.
    """

    name: str
    module: str
    folder: Path
    distribution: str

    def modules(self) -> tuple[str, ...]:
        """What `use` can say behind the name: `gates`, `judging.strict`; in order."""
        return tuple(sorted(_modules(self.folder, "")))


def claims() -> Mapping[str, tuple[PackageClaim, ...]]:
    """All that installed distributions declare, by the name that they claim. A damaged one declares nothing."""
    found: dict[str, dict[str, PackageClaim]] = {}
    for distribution in _installed():
        for written, value in _entries(distribution):
            name = written.strip()
            # A distribution that stands on the path twice is found twice, and the first is the one that is imported.
            found.setdefault(name, {}).setdefault(_name(distribution).lower(), PackageClaim(name, value, distribution))
    return {name: tuple(by_distribution.values()) for name, by_distribution in sorted(found.items())}


def locate(name: str, found: Mapping[str, tuple[PackageClaim, ...]]) -> Package:
    """The package of a name.

    Raises:
        PackageError: none is installed, several are, or its entry point leads to no folder.
    """
    claimed = found.get(name, ())
    if not claimed:
        hint = "install the distribution that brings it, in this environment"
        raise PackageError("SK111", f"no package `{name}` is installed", hint=hint)
    if len(claimed) > 1:
        both = joined([each.shown for each in claimed])
        raise PackageError(
            "SK114", f"more than one distribution brings a package `{name}`: {both}", hint="uninstall all but one"
        )
    claim = claimed[0]
    module = claim.value.strip()
    if not _IMPORTABLE.fullmatch(module):
        message = f"the entry point of {claim.shown} names no package: {_why(claim)}"
        raise PackageError("SK117", message, hint=_fix(claim))
    return Package(name, module, _folder(claim, module), f"{_name(claim.distribution)} {_version(claim.distribution)}")


def importable_names(found: Mapping[str, tuple[PackageClaim, ...]]) -> list[str]:
    """The claimed names that a `use` can say."""
    return [name for name in found if name != STD and _IMPORTABLE.fullmatch(name)]


def package_of(module: str) -> Package | None:
    """The package whose Python code a module is part of, for one that carries `.skill` files."""
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
    except Exception:  # a finder that somebody has put on the path
        return []


def _entries(distribution: Distribution) -> Iterator[tuple[str, str]]:
    """Names and values of the group, as they are written: the `importlib_metadata` of others refuses wrong ones."""
    parser = ConfigParser(delimiters=("=",), strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment]
    # Somebody else's damaged installation is no reason to fail.
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


def _why(claim: PackageClaim) -> str:
    value = claim.value.strip()
    if not value:
        return "it is empty"
    if ":" in value or "[" in value:
        return f"`{value}` is a part of one"
    if "." in value:
        return f"finding `{value}` would run `{value.partition('.')[0]}`"
    return f"`{value}`"


def _fix(claim: PackageClaim) -> str:
    first = re.split(r"[^\w]", claim.value.strip())[0] or "its_package"
    return f'its maintainer writes `{claim.name} = "{first}"`, a top-level package with the files in it'


def _folder(claim: PackageClaim, module: str) -> Path:
    """Where the files lie: in the distribution's own folder, else where Python would find the package."""
    try:
        place = claim.distribution.locate_file(module)
        # The path of a distribution in an archive is no path of the file system.
        if isinstance(place, Path) and place.is_dir():
            return place
    except Exception:
        pass
    try:
        spec = find_spec(module)
    except Exception:
        spec = None
    brings = f"{claim.shown} brings `{claim.name}` as the package `{module}`"
    if spec is None:
        raise PackageError("SK116", f"{brings}, which is not there", hint="install it again")
    if spec.submodule_search_locations is None:
        hint = f"its maintainer makes it a folder, `{module}/__init__.py`"
        raise PackageError("SK116", f"{brings}, which is one file and no folder", hint=hint)
    folders = [Path(each) for each in spec.submodule_search_locations if _is_folder(Path(each))]
    if not folders:
        hint = "install it again with pip, which unpacks it"
        raise PackageError("SK116", f"{brings}, which lies in an archive", hint=hint)
    if len(folders) > 1:
        found = listed(folders, "and")
        raise PackageError(
            "SK116", f"{brings}, which lies in several folders: {found}", hint="its maintainer gives it a folder alone"
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
    except OSError:  # it may not be looked at
        return False
