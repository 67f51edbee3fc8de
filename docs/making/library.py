"""The standard library, from its files and their doc comments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skillc.resources import folder

_MEMBER = re.compile(
    r"(?P<doc>(?:^///[^\n]*\n)+)(?P<head>\w+ \w+[^\n]*?)(?: =|\{)(?P<body>.*?)(?=^///|\Z)", re.M | re.S
)


@dataclass(frozen=True, slots=True)
class Member:
    """What a module declares: how it is called, what it is for, and how it is written."""

    signature: str
    name: str
    about: str
    written: str


def data() -> Mapping[str, Any]:
    """What the page of the library is made of."""
    return {"modules": {path.stem: _members(path.read_text(encoding="utf-8")) for path in _files()}}


def _files() -> list[Any]:
    return sorted(folder("stdlib").glob("*.skill"))


def _members(text: str) -> list[Member]:
    return [
        Member(
            match["head"].split(" ", 1)[1].strip(),
            match["head"].split(" ", 1)[1].split("(")[0].strip(),
            " ".join(line.removeprefix("///").strip() for line in match["doc"].splitlines()),
            text[match.start("head") : match.end()].strip(),
        )
        for match in _MEMBER.finditer(text)
    ]
