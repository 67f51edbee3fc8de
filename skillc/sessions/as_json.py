"""Sessions and their store as the objects that `skillc sessions --json` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skillc.sessions.importing import Imported
    from skillc.sessions.poison import Finding
    from skillc.sessions.store import Row, SessionStore


def row_json(row: Row) -> dict[str, Any]:
    """Return the object of one session."""
    return {
        "id": row.id,
        "key": row.key,
        "format": row.format,
        "agent": row.agent,
        "model": row.model,
        "project": row.project,
        "began": row.began,
        "turns": row.turns,
        "calls": row.calls,
        "tokens": {"sent": row.tokens.sent, "cached": row.tokens.cached, "received": row.tokens.received},
        "apart": row.reason,
        "copy_of": row.copy_of,
        "removed": dict(row.removed),
    }


def findings_json(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Return the objects of what was found in a session."""
    return [{"kind": each.kind, "step": each.step, "excerpt": each.excerpt} for each in findings]


def store_json(store: SessionStore) -> dict[str, Any]:
    """Return what `sessions report --json` prints of the store."""
    counts = store.counts()
    apart = {str(reason): number for reason, number in sorted(counts.items(), key=str) if reason is not None}
    return {"format_version": 1, "usable": counts[None], "apart": apart, "removed": dict(store.removed())}


def imported_json(found: Imported, store: SessionStore) -> dict[str, Any]:
    """Return the object that `sessions import --json` prints."""
    problems = [{"source": each.source, "line": each.line, "reason": each.reason} for each in found.problems]
    return {
        **store_json(store),
        "read": found.sessions,
        "new": found.new,
        "files": found.files,
        "unchanged_files": found.known,
        "formats": dict(found.formats),
        "unreadable": found.unreadable,
        "problems": problems,
    }
