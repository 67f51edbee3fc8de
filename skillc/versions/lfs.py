"""Files that git keeps elsewhere (Git LFS): the small text that stands for one in a commit."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:[^\n]*\n)*?oid sha256:([0-9a-f]{64})\nsize \d+\n?"
)
_LONGEST = 1024


def pointed_at(content: bytes) -> str | None:
    """The sha256 of the content that a pointer stands for; None where it is no pointer."""
    match = _POINTER.fullmatch(content) if len(content) <= _LONGEST else None
    return match[1].decode() if match else None


def content_of(oid: str, root: Path, beside: bytes | None) -> bytes | None:
    """The content of a pointer, as far as it is on this machine.

    Args:
        oid: its sha256.
        root: the repository's working tree, whose store is looked in.
        beside: another version of the file, which may be the same.
    """
    if beside is not None and hashlib.sha256(beside).hexdigest() == oid:
        return beside
    stored = root / ".git" / "lfs" / "objects" / oid[:2] / oid[2:4] / oid
    return stored.read_bytes() if stored.is_file() else None
