"""The parser, from tables that were saved before wherever that is possible.

Building the tables takes some 150 ms and reading them 5, so they are kept in the user's cache folder. They are kept as
JSON: a file of that folder, whoever wrote it, can hold no code. Whatever goes wrong with the file is passed over in
silence, for the tables can always be built.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import pickle
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import lark
from lark import Lark

from skillc import resources

_FORMAT = 1
_GIVEN_ON_LOADING = ("transformer", "postlex", "lexer_callbacks")


def build(grammar: str, **options: Any) -> Lark:
    """A parser built from the text of a grammar, without any cache."""
    return Lark(grammar, parser="lalr", lexer="contextual", keep_all_tokens=True, **options)


def load(transformer: object, postlex: object) -> Lark:
    """The parser of the language, calling `transformer` and filtering tokens through `postlex`."""
    grammar = (resources.folder("grammar") / "skill.lark").read_text("utf-8")
    place = _place(grammar)
    tables = _read(place) if place else None
    if tables is not None:
        with contextlib.suppress(Exception):
            # What lark's own generated parsers call; `Lark.load` takes pickles only.
            load_tables = cast("Callable[..., Lark]", Lark._load_from_dict)
            return load_tables(*tables, transformer=transformer, postlex=postlex)
    parser = build(grammar, transformer=transformer, postlex=postlex)
    if place:
        _write(place, parser)
    return parser


def cache_folder() -> Path | None:
    """The folder for what can be made again: `SKILLC_CACHE_DIR`, else the platform's own; None without a home."""
    named = os.environ.get("SKILLC_CACHE_DIR")
    if named:
        return Path(named)
    try:
        if sys.platform == "win32":
            return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "skillc" / "Cache"
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "skillc"
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "skillc"
    except RuntimeError:
        return None


def _place(grammar: str) -> Path | None:
    folder = cache_folder()
    versions = f"{_FORMAT} {lark.__version__} {sys.implementation.name} {sys.version_info[:3]}"
    digest = hashlib.sha256(f"{versions}\n{grammar}".encode()).hexdigest()
    return folder / f"grammar-{digest[:24]}.json" if folder else None


def _read(place: Path) -> tuple[Any, Any] | None:
    """Data and memo, None where the file is missing, damaged, or may have been written by somebody else."""
    try:
        with place.open("rb") as file:
            state = os.fstat(file.fileno())
            if not _is_ours(state):
                return None
            digest, _, body = file.read().partition(b"\n")
        if hashlib.sha256(body).hexdigest().encode() != digest:
            return None
        found = json.loads(body, object_hook=_with_numbers)
        return found["data"], found["memo"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _is_ours(state: os.stat_result) -> bool:
    if not stat.S_ISREG(state.st_mode):
        return False
    return not hasattr(os, "getuid") or (state.st_uid == os.getuid() and not state.st_mode & 0o022)


def _with_numbers(found: dict[str, Any]) -> dict[str | int, Any]:
    """JSON has text for every key; lark numbers states, tokens and rules."""
    return {int(key) if key.isdigit() else key: value for key, value in found.items()}


def _write(place: Path, parser: Lark) -> None:
    """Save the tables in one step, so that no reader ever sees half of them."""
    temporary: str | None = None
    try:
        pickled = io.BytesIO()
        parser.save(pickled, exclude_options=_GIVEN_ON_LOADING)
        # Unpickled from memory, a moment after it was made there: lark has no other public way to its tables.
        body = json.dumps(pickle.loads(pickled.getvalue()), separators=(",", ":")).encode()
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=place.parent, prefix=place.stem, suffix=".tmp")
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
        Path(temporary).replace(place)
    except (OSError, ValueError, TypeError):
        if temporary:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
