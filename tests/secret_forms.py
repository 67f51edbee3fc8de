"""The forms in which a secret may be met, and models that repeat one in all of them."""

from __future__ import annotations

import base64
import html
import json
import sqlite3
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from urllib.parse import quote, quote_plus


def _units(text: str) -> list[int]:
    """The numbers of a text in UTF-16."""
    raw = text.encode("utf-16-be")
    return [int.from_bytes(raw[i : i + 2]) for i in range(0, len(raw), 2)]


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "json": lambda text: json.dumps(text)[1:-1],
    "json in json": lambda text: json.dumps(json.dumps(text)[1:-1])[1:-1],
    "json in json in json": lambda text: json.dumps(json.dumps(json.dumps(text)[1:-1])[1:-1])[1:-1],
    "json of other libraries": lambda text: json.dumps(text, ensure_ascii=False)[1:-1].replace("/", "\\/"),
    "letters escaped": lambda text: "".join(f"\\u{unit:04X}" for unit in _units(text)),
    "bytes escaped": lambda text: "".join(f"\\x{byte:02x}" for byte in text.encode()),
    "python": lambda text: repr(text)[1:-1],
    "html": html.escape,
    "address": lambda text: quote(text, safe=""),
    "form": quote_plus,
    "address in address": lambda text: quote(quote(text, safe=""), safe=""),
    "letters of an address": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "hexadecimal": lambda text: text.encode().hex(),
    "HEXADECIMAL": lambda text: text.encode().hex().upper(),
    "base64": _base64,
    "base64 of addresses": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
}
# The same within other bytes.
WITHIN: dict[str, Callable[[str], str]] = {
    f"base64 behind {count} bytes": lambda text, count=count: _base64(f"{'user:'[:count]}{text}, more")  # type: ignore[misc]
    for count in (1, 2, 3)
}
# What is left of those when the characters that the surroundings influence are taken away.
_CORES = [lambda text, i=i: _base64("\0" * i + text).rstrip("=")[(0, 2, 3)[i] : -1] for i in range(3)]


def needles(secret: str) -> set[str]:
    """Texts of which no file and no message may contain any."""
    return {form(secret) for form in (*FORMS.values(), *_CORES)}


def repeating(text: str, secret: str) -> str:
    """A reply of the rulebook that repeats a secret: a target's behind the answer, an optimizer's within the edits."""
    written = [form(secret) for form in (*FORMS.values(), *WITHIN.values())]
    if text[:1] != "{":
        return "\n".join([text, *written])
    reply = json.loads(text)
    for edit, form in zip(reply.get("edits", []), cycle(written), strict=False):
        edit["text"] = edit["text"].replace('mentions "', f'mentions "{form}" or "')
        edit["rationale"] += f"; {form}"
    return json.dumps({**reply, "summary": " ".join([str(reply.get("summary")), *written])})


def texts_under(folder: Path) -> dict[str, str]:
    """The text of each file, and of databases also that of each row, since a file stores a long row in parts."""
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        found[str(path.relative_to(folder))] = path.read_bytes().decode("utf-8", "replace")
        if path.suffix == ".db":
            connection = sqlite3.connect(path)
            rows = (
                row
                for (name,) in connection.execute("select name from sqlite_master where type = 'table'").fetchall()
                for row in connection.execute(f'select * from "{name}"')
            )
            cells = (cell for row in rows for cell in row)
            found[f"{path.relative_to(folder)} rows"] = "\n".join(
                cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell) for cell in cells
            )
            connection.close()
    return found


def nowhere(texts: dict[str, str], *secrets: str) -> None:
    """No text contains a secret in any form."""
    assert texts
    for name, text in texts.items():
        for secret in secrets:
            for needle in needles(secret):
                assert needle not in text, (name, needle, text[max(0, text.index(needle) - 200) :][:400])
