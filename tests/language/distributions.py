"""Distributions as an installer leaves them, in a folder of the test's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def install(
    site: Path,
    files: Mapping[str, str],
    *,
    name: str = "acme-skills",
    version: str = "1.2",
    entry: str = "acme = acme_skills",
) -> Path:
    """Lays files and metadata out in a folder; whoever wants them found puts it on `sys.path`."""
    for path, text in files.items():
        place = site / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(f"[skillc.modules]\n{entry}\n")
    (info / "RECORD").write_text("")
    return site
