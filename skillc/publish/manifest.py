"""The manifest `skills.toml`: the skills of a project, where they are installed, and who adopts an update.

    [skills.route-tickets]
    from = "tickets.skill"
    project = ["claude-code", "codex"]
    user = ["hermes"]
    adopt = "person"
    version = "sha256:9f2c…"

It is read with `tomllib` and changed with `tomlkit`, which keeps comments and order.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from skillc.artifact_paths import ArtifactPaths
from skillc.artifacts.install import AGENTS
from skillc.artifacts.loading import SUFFIX, paths_of_program
from skillc.dataclass import dataclass
from skillc.document.skill_md import validate
from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.publish.git_address import check_address, check_folder, check_ref, is_commit, name_of
from skillc.publish.kept import HOME
from skillc.text import listed

MANIFEST = "skills.toml"
_PREFIX = "sha256:"
_KEYS = ("from", "git", "ref", "commit", "project", "user", "adopt", "version", "upstream")
_LIMITS = ("verdict", "gain", "change", "sessions", "support", "files")
_HEAD = "# The skills of this project: `skillc install` brings them to these versions.\n"

Who = Literal["person", "verdict", "never"]
Scope = Literal["project", "user"]


@dataclass(frozen=True, slots=True)
class Policy:
    """Who adopts an update, and what is adopted without a person.

    Attributes:
        who: `person` holds every update, `verdict` adopts those within the limits, `never` stages none.
        verdict: the least verdict of the compile: `improved`, or `any`.
        gain: the least gain on the test split, in points.
        change: the most tokens that an update deletes and inserts, in % of the present version's.
        sessions: `held` holds skills with rules from sessions, `cleared` adopts them if a scan or a person has cleared
            all of these sessions.
        files: whether files other than markdown may be new or changed.
        support: the fewest independent sessions that a rule from sessions cites.
    """

    who: Who = "person"
    verdict: Literal["improved", "any"] = "improved"
    gain: float | None = None
    change: float | None = None
    sessions: Literal["held", "cleared"] = "held"
    files: bool = False
    support: int = 2


@dataclass(frozen=True, slots=True)
class GitOrigin:
    """The repository that a skill is from.

    Attributes:
        url: its address; a path is from the manifest's folder.
        ref: the branch or tag to follow; None for the default branch.
        commit: of the adopted version.
    """

    url: str
    ref: str | None = None
    commit: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One skill of a manifest.

    Attributes:
        name: the skill's.
        source: a program, or the folder of a skill, from the manifest's folder or from the root of the repository.
        project: agents that read it in the project; keys of `AGENTS`.
        user: agents that read it in the user's folders.
        version: digest of the adopted version, None before the first adoption.
        upstream: digest of the compiled version, if the adopted one has edits by hand that every update keeps.
    """

    name: str
    source: str
    project: tuple[str, ...] = ()
    user: tuple[str, ...] = ()
    policy: Policy = Policy()
    version: str | None = None
    upstream: str | None = None
    git: GitOrigin | None = None

    @property
    def agents(self) -> tuple[tuple[Scope, str], ...]:
        """Its destinations, by scope and agent."""
        return (*(("project", each) for each in self.project), *(("user", each) for each in self.user))

    def origin(self, root: Path) -> ArtifactPaths:
        """Return the paths of the compiled skill, which need not exist; `root` is the manifest's folder."""
        if self.git is not None:
            return ArtifactPaths(root / HOME / "git" / "skills", self.name)
        place = root / self.source
        if place.suffix == SUFFIX:
            return ArtifactPaths.beside(place.parent, self.name)
        return ArtifactPaths(place.parent, place.name)

    def compiled(self, root: Path) -> ArtifactPaths:
        """Return the paths of the compiled skill.

        Raises:
            SkillcError: it is not compiled, or has another name now.
        """
        place = root / self.source
        if not place.exists():
            raise SkillcError(f"`{place}`, the source of `{self.name}`, does not exist", hint=f"fix `{MANIFEST}`")
        paths = paths_of_program(place) if place.suffix == SUFFIX else self.origin(root)
        if paths.name != self.name:
            hint = f"rename the entry in `{MANIFEST}`, or the skill"
            raise SkillcError(f"`{place}` has the skill `{paths.name}`, not `{self.name}`", hint=hint)
        if not paths.skill.is_file():
            raise SkillcError(f"`{place}` is not compiled: `{paths.skill}` is missing", hint="run `skillc compile`")
        return paths


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of a project, which may have no entry."""

    root: Path
    entries: Mapping[str, Entry]

    @property
    def path(self) -> Path:
        """The file."""
        return self.root / MANIFEST

    def entry(self, name: str) -> Entry:
        """Return an entry.

        Raises:
            SkillcError: there is none of this name.
        """
        if name in self.entries:
            return self.entries[name]
        if not self.entries:
            raise SkillcError(
                f"`{self.path}` has no skill", hint="add one: `skillc install tickets.skill --to claude-code`"
            )
        known = f"known skills: {listed(sorted(self.entries))}"
        raise SkillcError(f"`{self.path}` has no skill `{name}`", hint=known)


def read_manifest(root: Path) -> Manifest:
    """Return the manifest in a folder; one that does not exist is empty.

    Raises:
        SkillcError: it cannot be read, is not TOML, or has an unknown key or a wrong value.
    """
    path = root / MANIFEST
    try:
        value = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return Manifest(root, {})
    except (OSError, UnicodeDecodeError) as problem:
        raise SkillcError(f"`{path}` cannot be read: {problem}") from problem
    except tomllib.TOMLDecodeError as problem:
        said = str(problem)
        raise SkillcError(f"`{path}` is not TOML: {said[:1].lower()}{said[1:]}", hint="fix that line") from problem
    skills = value.get("skills", {})
    if not isinstance(skills, dict):
        raise SkillcError(f"`skills` in `{path}` is no table", hint="write `[skills.NAME]`")
    _check_keys(path, "", value, ("skills",))
    return Manifest(root, {name: _entry(path, name, each) for name, each in skills.items()})


def source_of(root: Path, path: Path) -> str:
    """Return how a manifest names a source: relative to its folder, with `/`.

    Raises:
        SkillcError: no relative path leads there.
    """
    try:
        # A program that is a link keeps its own name.
        return Path(os.path.relpath(path.parent.resolve() / path.name, root.resolve())).as_posix()
    except ValueError as problem:
        raise SkillcError(f"`{path}` is on another drive than `{root}`", hint="use `--no-manifest`") from problem


def write_entry(root: Path, entry: Entry) -> None:
    """Write one entry, and leave comments, order and other entries as they are. Keys of a policy are never changed.

    Raises:
        SkillcError: the manifest cannot be read or written.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    path = root / MANIFEST
    try:
        text = path.read_text(encoding="utf-8-sig") if path.exists() else _HEAD
        document = tomlkit.parse(text)
        skills: Any = document.setdefault("skills", tomlkit.table(is_super_table=True))
        if entry.name not in skills:
            skills[entry.name] = tomlkit.table()
        table = skills[entry.name]
        values: dict[str, object] = {
            "from": entry.source,
            "git": entry.git.url if entry.git else None,
            "ref": entry.git.ref if entry.git else None,
            "commit": entry.git.commit if entry.git else None,
            "project": list(entry.project),
            "user": list(entry.user),
            "version": _PREFIX + entry.version if entry.version else None,
            "upstream": _PREFIX + entry.upstream if entry.upstream else None,
        }
        values = {"from": values.pop("from"), "adopt": table.get("adopt", "person"), **values}
        for key, new in values.items():
            if not new:
                table.pop(key, None)
            elif table.get(key) != new:
                table[key] = new
        new_text = tomlkit.dumps(document)
        if new_text != text or not path.exists():
            write_atomically(path, new_text)
    except (TOMLKitError, UnicodeDecodeError) as problem:
        raise SkillcError(f"`{path}` is not TOML: {problem}") from problem
    except OSError as problem:
        raise SkillcError(f"`{path}` cannot be written: {problem.strerror}") from problem


def remove_entry(root: Path, name: str) -> None:
    """Remove one entry, and leave comments, order and other entries as they are; without it, nothing is changed.

    Raises:
        SkillcError: the manifest cannot be read or written.
    """
    import tomlkit

    read_manifest(root)
    path = root / MANIFEST
    try:
        document = tomlkit.parse(path.read_text(encoding="utf-8-sig")) if path.exists() else tomlkit.document()
        skills: Any = document.get("skills", {})
        if name in skills:
            del skills[name]
            if not skills:
                del document["skills"]
            write_atomically(path, tomlkit.dumps(document))
    except OSError as problem:
        raise SkillcError(f"`{path}` cannot be written: {problem.strerror}") from problem


# ---- one entry ------------------------------------------------------------------------------------


def _entry(path: Path, name: str, value: object) -> Entry:
    where = f"`skills.{name}` in `{path}`"
    if not isinstance(value, dict):
        raise SkillcError(f"{where} is no table", hint=f"write `[skills.{name}]`")
    problems = [each for each in validate(name, "about") if each]
    if problems:
        raise SkillcError(f"{where} is no name of a skill: {problems[0]}")
    _check_keys(path, f"skills.{name}.", value, _KEYS)
    source = value.get("from")
    if not isinstance(source, str) or not source.strip() or "\0" in source:
        raise SkillcError(f"{where} has no `from`", hint='name its program: `from = "tickets.skill"`')
    agents = {scope: _agents(where, scope, value.get(scope, [])) for scope in ("project", "user")}
    git = _git(where, name, source, value)
    return Entry(
        name,
        source,
        agents["project"],
        agents["user"],
        _policy(where, value.get("adopt", "person")),
        _digest(where, "version", value.get("version")),
        _digest(where, "upstream", value.get("upstream")),
        git,
    )


def _git(where: str, name: str, source: str, value: Mapping[str, object]) -> GitOrigin | None:
    given = {key: value[key] for key in ("git", "ref", "commit") if key in value}
    if not given:
        return None
    for key, each in given.items():
        if not isinstance(each, str):
            raise SkillcError(f"`{key}` of {where} is no text")
    url, ref, commit = (str(given[key]) if key in given else None for key in ("git", "ref", "commit"))
    if url is None:
        raise SkillcError(f"{where} has a `{next(iter(given))}` and no `git`", hint="name the repository")
    if commit is not None and not is_commit(commit):
        raise SkillcError(f"`commit` of {where} is no whole commit", hint="restore it from git")
    if name_of(check_folder(source)) != name:
        raise SkillcError(f"`from` of {where} is the folder of another skill", hint=f"name a folder `{name}`")
    return GitOrigin(check_address(url), check_ref(ref) if ref is not None else None, commit)


def _agents(where: str, scope: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise SkillcError(f"`{scope}` of {where} is no list of agents", hint=f'write `{scope} = ["claude-code"]`')
    for each in value:
        if each not in AGENTS:
            raise SkillcError(f"`{scope}` of {where} has no known agent `{each}`", hint=f"agents: {listed(AGENTS)}")
        if scope == "project" and AGENTS[each].project is None:
            raise SkillcError(
                f"{AGENTS[each].title} reads no skills of a project", hint=f'write `user = ["{each}"]` in {where}'
            )
    return tuple(dict.fromkeys(value))


def _digest(where: str, key: str, value: object) -> str | None:
    if value is None:
        return None
    digits = value.removeprefix(_PREFIX) if isinstance(value, str) else ""
    if len(digits) != 64 or set(digits) - set("0123456789abcdef"):
        raise SkillcError(
            f"`{key}` of {where} is no digest of a version", hint="restore it from git, or remove it and install again"
        )
    return digits


def _policy(where: str, value: object) -> Policy:
    if value in ("person", "verdict", "never"):
        return Policy(who=value)
    if not isinstance(value, dict):
        hint = 'write "person", "verdict", "never", or limits such as `{ gain = 2, change = 30 }`'
        raise SkillcError(f"`adopt` of {where} is no policy", hint=hint)
    for key in value:
        if key not in _LIMITS:
            raise SkillcError(f"`adopt` of {where} has no limit `{key}`", hint=f"valid limits: {listed(_LIMITS)}")
    verdict, sessions, files = (
        value.get("verdict", "improved"),
        value.get("sessions", "held"),
        value.get("files", False),
    )
    if verdict not in ("improved", "any"):
        raise SkillcError(f"`verdict` of {where} is neither `improved` nor `any`")
    if sessions not in ("held", "cleared"):
        raise SkillcError(f"`sessions` of {where} is neither `held` nor `cleared`")
    if not isinstance(files, bool):
        raise SkillcError(f"`files` of {where} is neither `true` nor `false`")
    gain, change = (_number(where, key, value.get(key)) for key in ("gain", "change"))
    support = value.get("support", 2)
    if isinstance(support, bool) or not isinstance(support, int) or support < 1:
        raise SkillcError(f"`support` of {where} is no whole number from 1")
    return Policy("verdict", verdict, gain, change, sessions, files, support)


def _number(where: str, key: str, value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0 or value == float("inf"):
        raise SkillcError(f"`{key}` of {where} is no number from 0")
    return float(value)


def _check_keys(path: Path, prefix: str, value: Mapping[str, object], known: Sequence[str]) -> None:
    for key in value:
        if key not in known:
            raise SkillcError(f"`{path}` has the unknown key `{prefix}{key}`", hint=f"valid keys: {listed(known)}")
