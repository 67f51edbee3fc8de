"""Training files, each with a manifest of what its rows are made of, so that no test example is trained on unseen."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from skillc.data.split import input_marks, marks
from skillc.errors import SkillcError
from skillc.export.chat import Chats
from skillc.export.rollouts import Row
from skillc.files import write_atomically
from skillc.plan.digest import plan_digest
from skillc.review.run_view import RunView

FORMAT = 1
"""The version of manifests."""
LICENCE = "check the licence of each model: many forbid training other models on their outputs"
# Other ends of lines, at which some readers would split a row. They occur only within the texts of a JSON object.
_LINE_ENDS = {ord(sign): f"\\u{ord(sign):04x}" for sign in "\x85\u2028\u2029"}


def manifest_path(file: Path) -> Path:
    """Return the path of the manifest of a training file."""
    return file.with_name(f"{file.name}.manifest.json")


def write_chats(
    chats: Chats,
    file: Path,
    view: RunView | None = None,
    *,
    models: Sequence[str] = (),
    source: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Write rows as JSON lines and their manifest beside them, and return the manifest.

    The manifest is written first, and names the digest of the file: after a kill the two either agree or are refused.

    Raises:
        SkillcError: there is no row, or a file cannot be written.
    """
    if not chats.rows:
        reasons = "; ".join(f"{number} {reason}" for reason, number in chats.left_out.items())
        raise SkillcError(
            f"no {_NAMES[chats.kind]} to write: {reasons or 'there are no examples'}",
            hint=_EMPTY if view is not None else _NO_SESSION,
        )
    text = "".join(_lines(chats.rows))
    manifest = {
        "format_version": FORMAT,
        "kind": chats.kind,
        "file": file.name,
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        "rows": len(chats.rows),
        "source": source if source is not None else _source(view),
        "skill": chats.skill,
        "splits": dict(chats.splits),
        "left_out": dict(chats.left_out),
        "lengths": {name: round(value, 1) for name, value in chats.lengths.items()},
        "warnings": list(chats.warnings),
        "examples": [example.id for example in chats.examples],
        "used": marks(chats.examples),
        "used_inputs": input_marks(chats.examples),
        "sessions": list(chats.sessions),
        "models": list(models) or ([view.plan.models["target"].model] if view is not None else []),
        "licence": LICENCE,
    }
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(manifest_path(file), json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")
        write_atomically(file, text)
    except OSError as problem:
        raise SkillcError(f"`{file}` cannot be written: {problem.strerror or problem}") from problem
    return manifest


_NAMES = {"sft": "chat example", "dpo": "preference pair"}
_NO_SESSION = "label more sessions with `skillc sessions label`, or lower `--certainty`"
_EMPTY = "`skillc report` shows what the rollouts got; lower `--threshold` or `--margin`, or compile with more examples"


def read_manifest(file: Path) -> dict[str, Any] | None:
    """Return the manifest of a training file, None if it has none.

    Raises:
        SkillcError: it is damaged, of another version, or of another content of the file.
    """
    path = manifest_path(file)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as problem:
        raise SkillcError(f"the manifest `{path}` cannot be read: {problem}", hint="export the file again") from problem
    if not isinstance(found, Mapping) or found.get("format_version") != FORMAT:
        raise SkillcError(f"the manifest `{path}` is not of format {FORMAT}", hint="export the file again")
    if found.get("sha256") != digest:
        raise SkillcError(
            f"`{file}` is not the file that its manifest describes",
            hint=f"export it again; a file that was edited on purpose has no manifest: remove `{path}`",
        )
    return dict(found)


def _source(view: RunView | None) -> dict[str, Any] | None:
    if view is None:
        return None
    return {"program": view.program.name, "plan": plan_digest(view.plan), "run": view.run, "best": view.best}


def _lines(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        yield json.dumps(row, ensure_ascii=False, separators=(",", ":")).translate(_LINE_ENDS) + "\n"
