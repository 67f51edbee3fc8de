"""`python -m docs.making`: writes the pages that are made from the grammar, the registries and the command line."""

from __future__ import annotations

import sys
from pathlib import Path

from docs.making.pages import all_pages

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Writes what has changed, and takes away pages that are made no more; says which."""
    made = all_pages()
    folders = {(ROOT / path).parent for path in made if "/errors/" in path}
    stale = [file for folder in folders if folder.is_dir() for file in folder.glob("*.md")]
    for file in stale:
        if str(file.relative_to(ROOT)) not in made:
            file.unlink()
            sys.stdout.write(f"removed {file.relative_to(ROOT)}\n")
    for path, text in made.items():
        file = ROOT / path
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            sys.stdout.write(f"wrote {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
