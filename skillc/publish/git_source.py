"""Fetch one commit of a git repository, and read a compiled skill from git's objects.

Nothing from the repository is run: without a checkout no filter or hook runs, and links and submodules are rejected.
`.skillc/publish/git` contains the fetched commits and, in `skills`, the last copy of each skill with its lock and its
list of withdrawn sessions. All other code treats that copy as the folder of a compiled skill.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from subprocess import CompletedProcess

from skillc.artifact_paths import SKILL_FILE, ArtifactPaths
from skillc.data.withdrawn import QUARANTINE
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.publish.git_address import TRANSPORTS, check_folder, is_commit, is_inside, located, name_of
from skillc.publish.kept import HOME, cannot_write
from skillc.publish.manifest import MANIFEST, Entry, GitOrigin
from skillc.run.folder import make_home
from skillc.skill_files import COUNT_LIMIT, FILE_LIMIT, FOLDER_LIMIT, SKIPPED, write_folder
from skillc.text import in_bytes, listed
from skillc.versions.git import pointed_at, run_git

_SECONDS = 600.0
_PLAIN = ("100644", "100755")
_WHAT = {"120000": "a link", "160000": "a submodule"}
_FETCHED = "refs/skillc/fetched"
_QUIET = ("-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "core.hooksPath=/dev/null")


@dataclass(frozen=True, slots=True)
class Fetched:
    """A skill that was fetched.

    Attributes:
        folder: of the skill in the repository.
        commit: that it is from.
        paths: of its copy.
    """

    folder: str
    commit: str
    paths: ArtifactPaths


def fetch(root: Path, origin: GitOrigin, folder: str | None, *, commit: str | None = None) -> Fetched:
    """Fetch a commit of a repository and copy a skill from it.

    Args:
        root: the folder of the manifest.
        origin: the repository, and the branch or tag to follow.
        folder: of the skill there; None if there is one only.
        commit: fetch this one instead of the head of the branch.

    Raises:
        SkillcError: the repository cannot be read, has no such commit or skill, or the skill has a link or a path that
            leaves its folder.
    """
    repository = _Repository(_home(root) / "repos" / _digest(origin.url), located(origin.url, root), origin.url)
    found = repository.fetch(commit or origin.ref or "HEAD", exact=commit is not None)
    tree = repository.tree(found)
    place = check_folder(folder) if folder is not None else _only_skill(tree, origin.url)
    name = name_of(place)
    files = {path.removeprefix(f"{place}/"): each for path, each in tree.items() if path.startswith(f"{place}/")}
    if SKILL_FILE not in files:
        known = listed(sorted(_skills(tree))[:8]) or "none"
        raise SkillcError(f"`{origin.url}` has no skill in `{place}` at `{found[:12]}`", hint=f"skills there: {known}")
    beside = place.rpartition("/")[0]
    extra = [f"{name}.lock", f"{name}{QUARANTINE}"]
    contents = dict(repository.contents(_of_skill(files), place))
    others = {each: tree[f"{beside}/{each}".lstrip("/")] for each in extra if f"{beside}/{each}".lstrip("/") in tree}
    paths = ArtifactPaths(copies(root), name)
    _write(paths, contents, dict(repository.contents(others, beside or ".")))
    return Fetched(place, found, paths)


def compiled_from(root: Path, entry: Entry) -> tuple[ArtifactPaths, str | None]:
    """Return the newest compiled skill of an entry, and its commit if it is from a repository.

    Raises:
        SkillcError: it is not compiled, or cannot be fetched.
    """
    if entry.git is None:
        return entry.compiled(root), None
    fetched = fetch(root, entry.git, entry.source)
    return fetched.paths, fetched.commit


def restore(root: Path, entry: Entry) -> None:
    """Fetch the pinned commit of an entry, so that its adopted version can be found.

    Raises:
        SkillcError: it cannot be fetched.
    """
    if entry.git is None or entry.git.commit is None:
        raise SkillcError(f"`{entry.name}` in `{MANIFEST}` has no `commit`", hint=f"`skillc update {entry.name}`")
    fetch(root, entry.git, entry.source, commit=entry.git.commit)


def copies(root: Path) -> Path:
    """Return the folder with the copies of skills from repositories."""
    return root / HOME / "git" / "skills"


# ---- git ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Entry:
    """A file of a tree."""

    mode: str
    blob: str
    size: int


@dataclass(frozen=True, slots=True)
class _Repository:
    """A bare repository with the fetched commits.

    Attributes:
        address: as git gets it.
        shown: as the manifest has it.
    """

    folder: Path
    address: str
    shown: str

    def fetch(self, wanted: str, *, exact: bool) -> str:
        """Fetch one commit without its history, and return it."""
        if not (self.folder / "HEAD").is_file():
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as problem:
                raise cannot_write(problem, self.folder) from problem
            self._git("init", "--bare", "--quiet", "--template=")
        if exact and self._has(wanted):
            return wanted
        done = self._fetch("--depth=1", f"+{wanted}:{_FETCHED}")
        if done and is_commit(wanted):
            # Some servers do not serve a single commit by its name.
            done = self._fetch("+refs/heads/*:refs/skillc/heads/*", "+refs/tags/*:refs/skillc/tags/*")
            if not done and not self._has(wanted):
                done = f"it has no commit {wanted[:12]} any more"
            if not done:
                return wanted
        if done:
            raise SkillcError(
                f"git cannot fetch `{wanted[:40]}` from `{self.shown}`: {done}",
                hint="check the address and your access to it with `git ls-remote`",
            )
        return self._git("rev-parse", "--verify", "--end-of-options", f"{_FETCHED}^{{commit}}").decode().strip()

    def tree(self, commit: str) -> Mapping[str, _Entry]:
        """Return all files of a commit by their path."""
        found: dict[str, _Entry] = {}
        for line in self._git("ls-tree", "-r", "-z", "-l", "--full-tree", "--end-of-options", commit).split(b"\0"):
            head, _, name = line.partition(b"\t")
            if name:
                mode, _, blob, size = head.decode().split()
                found[name.decode("utf-8", "backslashreplace")] = _Entry(mode, blob, int(size) if size != "-" else 0)
        return found

    def contents(self, files: Mapping[str, _Entry], where: str) -> Iterator[tuple[str, bytes]]:
        """Yield the files with their content.

        Raises:
            SkillcError: one is no plain file, leaves its folder, or is too large.
        """
        size = 0
        for name, each in files.items():
            if not is_inside(name):
                raise SkillcError(f"`{where}` in `{self.shown}` has the path `{name!r}`, which leaves its folder")
            if each.mode not in _PLAIN:
                raise SkillcError(
                    f"`{where}/{name}` in `{self.shown}` is {_WHAT.get(each.mode, 'no plain file')}",
                    hint="replace it there by a copy of the file",
                )
            size += each.size
            if each.size > FILE_LIMIT or size > FOLDER_LIMIT or len(files) > COUNT_LIMIT:
                raise SkillcError(
                    f"`{where}` in `{self.shown}` has more than a skill may have: {in_bytes(FOLDER_LIMIT)} in "
                    f"{COUNT_LIMIT:,} files, {in_bytes(FILE_LIMIT)} in one"
                )
            content = self._git("cat-file", "blob", each.blob)
            if pointed_at(content) is not None:
                raise SkillcError(
                    f"`{where}/{name}` in `{self.shown}` is in Git LFS, which is not fetched",
                    hint="keep the files of a skill in git itself",
                )
            yield name, content

    def _has(self, commit: str) -> bool:
        return self._run("cat-file", "-e", f"{commit}^{{commit}}").returncode == 0

    def _fetch(self, *words: str) -> str:
        """Fetch; return why it failed, or nothing."""
        options = [each for each in words if each.startswith("--")]
        refs = [each for each in words if not each.startswith("--")]
        quiet = ("--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--force")
        done = self._run("fetch", *quiet, *options, "--", self.address, *refs)
        if done.returncode == 0:
            return ""
        lines = [line.strip() for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
        return lines[0].removeprefix("fatal: ") if lines else "no reason given"

    def _git(self, *words: str) -> bytes:
        done = self._run(*words)
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip().partition("\n")[0]
            raise SkillcError(f"git failed on `{self.shown}`: {said.removeprefix('fatal: ')}")
        return done.stdout

    def _run(self, *words: str) -> CompletedProcess[bytes]:
        variables = {"GIT_ALLOW_PROTOCOL": ":".join(TRANSPORTS), "GIT_LFS_SKIP_SMUDGE": "1"}
        return run_git(self.folder, *_QUIET, "--git-dir=.", *words, variables=variables, seconds=_SECONDS)


# ---- the copy -------------------------------------------------------------------------------------


def _of_skill(files: Mapping[str, _Entry]) -> dict[str, _Entry]:
    """Return the files that belong to a skill: no hidden ones, no caches."""
    return {
        name: each
        for name, each in files.items()
        if not any((part.startswith(".") and part not in (".", "..")) or part in SKIPPED for part in name.split("/"))
    }


def _skills(tree: Mapping[str, _Entry]) -> list[str]:
    ending = f"/{SKILL_FILE}"
    return [path.removesuffix(ending) for path in tree if path.endswith(ending) and is_inside(path)]


def _only_skill(tree: Mapping[str, _Entry], shown: str) -> str:
    found = sorted(_skills(tree))
    if len(found) != 1:
        what = "no skill" if not found else "more than one skill"
        hint = f"name its folder: {listed(found[:8])}" if found else "a skill is a folder with a `SKILL.md`"
        raise SkillcError(f"`{shown}` has {what}", hint=hint)
    return found[0]


def _write(paths: ArtifactPaths, files: Mapping[str, bytes], beside: Mapping[str, bytes]) -> None:
    """Write the copy of a skill whole, in place of the one before."""
    new = paths.base.parent / f".{paths.name}.new"
    try:
        shutil.rmtree(new, ignore_errors=True)
        write_folder(new, files)
        for name in (paths.lock.name, f"{paths.name}{QUARANTINE}"):
            (paths.base / name).unlink(missing_ok=True)
        shutil.rmtree(paths.folder, ignore_errors=True)
        paths.base.mkdir(parents=True, exist_ok=True)
        new.rename(paths.folder)
        write_folder(paths.base, beside)
    except OSError as problem:
        raise cannot_write(problem, paths.folder) from problem
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _home(root: Path) -> Path:
    try:
        make_home(root / ".skillc")
    except OSError as problem:
        raise cannot_write(problem, root / ".skillc") from problem
    return root / HOME / "git"


def _digest(url: str) -> str:
    return hashlib.sha256(url.encode()).hexdigest()[:16] + ".git"
