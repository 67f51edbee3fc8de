"""Read a repository, Git LFS included, through the git command: no checkout, no shell, no writes."""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from skillc.dataclass import dataclass
from skillc.diagnostics.suggest import suggest
from skillc.errors import SkillcError
from skillc.text import listed

_LINK, _FILES = "120000", ("100644", "100755", "120000")
_MOST_LINKS = 5


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository with a working tree; paths are from its root, with `/`."""

    root: Path

    def commit(self, ref: str) -> str:
        """Return the commit of a branch, a tag or another revision.

        Raises:
            SkillcError: the revision does not exist.
        """
        if ref.startswith("-") or not ref.strip() or "\0" in ref:
            raise SkillcError(f"`{ref}` is not a revision", hint="name a branch, a tag or a commit: `--against main`")
        found = run_git(self.root, "rev-parse", "--verify", "--quiet", "--end-of-options", ref + "^{commit}")
        if found.returncode == 0:
            return found.stdout.decode().strip()
        raise SkillcError(f"git has no commit `{ref}`", hint=self._ref_hint(ref))

    def _ref_hint(self, ref: str) -> str | None:
        names = run_git(self.root, "for-each-ref", "--format=%(refname:short)").stdout.decode(errors="replace").split()
        near = next((name for name in names if name.partition("/")[2] == ref), None) or suggest(ref, names)
        if near:
            return f"did you mean `{near}`?"
        if run_git(self.root, "rev-parse", "--is-shallow-repository").stdout.strip() == b"true":
            return "the clone is shallow: `git fetch --unshallow`, or `fetch-depth: 0` for actions/checkout"
        return f"valid revisions: {listed(names[:8])}" if names else None

    def programs(self, commit: str | None, folder: str) -> tuple[str, ...]:
        """Return the `.skill` files below a folder: of a commit, or of the working tree without ignored files."""
        below = [folder] if folder else []
        if commit is None:
            every = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *below)
        else:
            every = ("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit, "--", *below)
        names = _checked(run_git(self.root, *every)).split(b"\0")
        found = {os.fsdecode(name) for name in names if name.endswith(b".skill")}
        return tuple(sorted(name for name in found if commit is not None or (self.root / name).is_file()))

    def read(self, commit: str, path: str) -> bytes | None:
        """Return the content of a file at a commit, None if it is missing; follow links within the repository."""
        for _ in range(_MOST_LINKS):
            path = posixpath.normpath(path)
            if path.startswith("../") or path in ("..", "."):
                return None
            mode, blob = self._entry(commit, path)
            if mode not in _FILES:
                return None
            content = self.blob(blob)
            if mode != _LINK:
                return content
            path = posixpath.join(posixpath.dirname(path), os.fsdecode(content))
        return None

    def _entry(self, commit: str, path: str) -> tuple[str, str]:
        """Return mode and id of the entry at a path, both empty if it is missing."""
        out = _checked(run_git(self.root, "ls-tree", "-z", "--full-tree", commit, "--", path)).split(b"\0")
        for line in out:
            head, _, name = line.partition(b"\t")
            if os.fsdecode(name) == path:
                mode, _, blob = head.decode().split()
                return mode, blob
        return "", ""

    def blob(self, name: str) -> bytes:
        """Return a content by its id."""
        return _checked(run_git(self.root, "cat-file", "blob", name))

    def unmerged(self, folder: str) -> dict[str, dict[int, str]]:
        """Return the unmerged files below a folder, with the ids of base (1), ours (2) and theirs (3)."""
        out = _checked(run_git(self.root, "--literal-pathspecs", "ls-files", "-u", "-z", "--", folder or "."))
        found: dict[str, dict[int, str]] = {}
        for line in out.split(b"\0"):
            head, _, name = line.partition(b"\t")
            if name:
                _, blob, stage = head.decode().split()
                found.setdefault(os.fsdecode(name), {})[int(stage)] = blob
        return found

    def in_index(self, path: str) -> bytes | None:
        """Return a file from the index, None if it is unmerged or missing."""
        out = _checked(run_git(self.root, "--literal-pathspecs", "ls-files", "-s", "-z", "--", path))
        for line in out.split(b"\0"):
            head, _, name = line.partition(b"\t")
            if name and os.fsdecode(name) == path and head.split()[2] == b"0":
                return self.blob(head.split()[1].decode())
        return None

    def heads(self) -> tuple[str, ...]:
        """Return the commits of an open merge, rebase or cherry-pick."""
        names = ("HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REBASE_HEAD", "REVERT_HEAD")
        found = (run_git(self.root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}") for name in names)
        return tuple(each.stdout.decode().strip() for each in found if each.returncode == 0)

    def last_change(self, path: str) -> str | None:
        """Return the short name of the last commit that changed a file."""
        found = run_git(self.root, "--literal-pathspecs", "log", "-1", "--no-show-signature", "--format=%h", "--", path)
        return found.stdout.decode().strip() or None if found.returncode == 0 else None

    def inside(self, place: Path) -> str:
        """Return the path of a file or folder from the root, without following a link.

        Raises:
            SkillcError: it is outside the repository.
        """
        whole = place.parent.resolve() / place.name if place.name not in ("", "..") else place.resolve()
        if not whole.is_relative_to(self.root):
            raise SkillcError(f"`{place}` is outside the repository `{self.root}`")
        path = whole.relative_to(self.root).as_posix()
        return "" if path == "." else path


def repository_of(folder: Path) -> Repository | None:
    """Return the repository of a folder, None if it is in none.

    Raises:
        SkillcError: git is not installed, or refuses to open the repository.
    """
    found = run_git(folder.resolve(), "rev-parse", "--show-toplevel")
    if found.returncode == 0:
        return Repository(Path(os.fsdecode(found.stdout.rstrip(b"\r\n"))).resolve())
    error = found.stderr.decode(errors="replace")
    if "not a git repository" in error or "must be run in a work tree" in error:
        return None
    raise SkillcError(f"git cannot open the repository of `{folder}`: {_first_line(error)}")


def run_git(
    folder: Path, *words: str, variables: Mapping[str, str] = MappingProxyType({}), seconds: float | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder and return what it printed; it asks nobody, and finds the repository from the folder alone.

    Args:
        folder: where it runs.
        words: its arguments.
        variables: more of the environment.
        seconds: after which it is ended.

    Raises:
        SkillcError: git is not installed, gets a name that it cannot read, or did not end in time.
    """
    # In a hook, keep only the index variable; git finds the rest from the folder.
    dropped = ("GIT_DIR", "GIT_WORK_TREE", "GIT_PREFIX", "GIT_COMMON_DIR")
    env = {name: value for name, value in os.environ.items() if name not in dropped}
    env |= {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", **variables}
    try:
        return subprocess.run(
            ["git", "--no-pager", "-C", str(folder), *words],
            capture_output=True,
            check=False,
            env=env,
            stdin=subprocess.DEVNULL,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        raise SkillcError(f"git did not end within {seconds:,.0f} s", hint="try again") from None
    except FileNotFoundError:
        raise SkillcError("the `git` command is missing", hint="install git") from None
    except ValueError as problem:
        raise SkillcError(f"git cannot read such a name: {problem}") from None


def _checked(done: subprocess.CompletedProcess[bytes]) -> bytes:
    if done.returncode != 0:
        raise SkillcError(f"git failed: {_first_line(done.stderr.decode(errors='replace'))}")
    return done.stdout


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0].removeprefix("fatal: ") if lines else "no reason given"


_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:[^\n]*\n)*?oid sha256:([0-9a-f]{64})\nsize \d+\n?"
)
_LONGEST_POINTER = 1024


def pointed_at(content: bytes) -> str | None:
    """Return the sha256 of a Git LFS pointer, None if the content is no pointer."""
    match = _POINTER.fullmatch(content) if len(content) <= _LONGEST_POINTER else None
    return match[1].decode() if match else None


def lfs_content(oid: str, root: Path, beside: bytes | None) -> bytes | None:
    """Return the content of a Git LFS pointer if it is on this machine.

    Args:
        oid: sha256 of the pointer.
        root: the working tree of the repository.
        beside: another version of the file, which may be the same.
    """
    if beside is not None and hashlib.sha256(beside).hexdigest() == oid:
        return beside
    stored = root / ".git" / "lfs" / "objects" / oid[:2] / oid[2:4] / oid
    return stored.read_bytes() if stored.is_file() else None
