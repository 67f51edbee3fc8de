"""Validate how a manifest names a skill in a git repository: address, revision, commit and folder.

These values are untrusted, as in the manifest of a cloned project. Reject whatever git would read as an option, as a
transport that runs a command, or as a path outside the repository.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from skillc.errors import SkillcError

TRANSPORTS = ("file", "git", "http", "https", "ssh")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_HELPER = re.compile(r"[A-Za-z0-9+.-]+::")
_HOST = re.compile(r"(?:[^@/:]*@)?([^/:\\]+):(?!\\)")
_REF = re.compile(r"[A-Za-z0-9_](?:[\w./+-]*[\w+-])?")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def check_address(address: str) -> str:
    """Return the address of a repository: a URL, `host:path` of ssh, or a path.

    Raises:
        SkillcError: git might read it as an option or as a command.
    """
    problem = ""
    if not address.strip() or address != address.strip() or re.search(r"[\x00-\x1f\x7f]", address):
        problem = "is empty or has signs that no address has"
    elif address.startswith("-"):
        problem = "begins with `-`, which git reads as an option"
    elif _HELPER.match(address):
        problem = "names a helper program"
    elif (url := _URL.fullmatch(address)) is not None:
        host = re.split(r"[/:]", url[2].rpartition("@")[2] if "@" in url[2].partition("/")[0] else url[2])[0]
        if url[1].lower() not in TRANSPORTS:
            problem = f"has the transport `{url[1]}`, and only {', '.join(f'`{each}`' for each in TRANSPORTS)} are used"
        elif host.startswith("-") or url[2].startswith("-"):
            problem = "has a host that begins with `-`, which ssh reads as an option"
    elif (host_of := _HOST.match(address)) is not None and host_of[1].startswith("-"):
        problem = "has a host that begins with `-`, which ssh reads as an option"
    if problem:
        raise SkillcError(f"the repository `{_shown(address)}` {problem}", hint="write a URL or a path")
    return address


def check_ref(ref: str) -> str:
    """Return a branch, a tag or a commit.

    Raises:
        SkillcError: it is none.
    """
    if not _REF.fullmatch(ref) or ".." in ref or "//" in ref or ref.endswith(".lock"):
        raise SkillcError(f"`{_shown(ref)}` is no branch, tag or commit", hint="write a name such as `main` or `v1.2`")
    return ref


def is_commit(text: str) -> bool:
    """Return whether a text is a whole commit."""
    return _COMMIT.fullmatch(text) is not None


def check_folder(path: str) -> str:
    """Return the path of a skill's folder in a repository, with `/`.

    Raises:
        SkillcError: it leaves the repository or names no folder.
    """
    clean = path.replace("\\", "/").rstrip("/").removeprefix("./")
    if not is_inside(clean):
        raise SkillcError(
            f"`{_shown(path)}` is no folder in a repository", hint="name the skill's folder: `skills/route-tickets`"
        )
    return clean


def is_inside(path: str) -> bool:
    """Return whether a path of a repository leads to a file below its root on every system."""
    if not path or path.startswith("/") or re.search(r"[\x00-\x1f\x7f\\:]", path):
        return False
    return not any(part in ("", ".", "..") or part.casefold() == ".git" for part in path.split("/"))


def located(address: str, root: Path) -> str:
    """Return an address as git gets it: a path is absolute, from the manifest's folder."""
    if _URL.fullmatch(address) or _HOST.match(address):
        return address
    return str((root / Path(address).expanduser()).resolve())


def name_of(folder: str) -> str:
    """Return the name of the skill in a folder."""
    return PurePosixPath(folder).name


def _shown(text: str) -> str:
    return repr(text)[1:-1][:120]
