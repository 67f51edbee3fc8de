"""What fuzzing starts from: every program of the repository, the examples of all codes, and the language's words.

`python tests/fuzzing/seeds.py build/fuzz/corpus` writes a file for each of the former, and the words as a dictionary.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from skillc.diagnostics.codes import CODES  # noqa: E402
from skillc.gates.functions import NAMES  # noqa: E402
from skillc.gates.units import UNITS  # noqa: E402
from skillc.language.functions import PARAMETER_TYPES  # noqa: E402
from skillc.language.kinds import TYPES  # noqa: E402
from skillc.language.vocabulary import vocabulary  # noqa: E402

_SIGNS = re.compile(r'"([^"\\\w\s]{1,3})"')
_NASTY = (
    *('"""', '\\"""', "///", "#", "\n\n", "\r\n", "; ", "language 1\n", "none", "on", "off", "candidate."),
    *("\u00a0", "\u200b", "\u202e", "\ufeff", "\u2028", "\x85", "“", "’", "€3", "$3", "5%", "2k", "1e-3", "≥", "&&"),
)


SIZE_LIMIT = 4096
"""Bytes of a seed; larger ones make every run slow."""


def main() -> None:
    """Writes the corpus and, beside it, `dictionary`."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    programs = [path for path in sorted(ROOT.rglob("*.skill")) if "build" not in path.relative_to(ROOT).parts]
    texts = [path.read_bytes() for path in programs]
    texts += [text.encode("utf-8", "surrogatepass") for code in CODES.values() for text in (code.bad, code.good)]
    for i, text in enumerate(texts):
        if 0 < len(text) <= SIZE_LIMIT:
            (folder / f"seed-{i:03}").write_bytes(text)
    signs = _SIGNS.findall((ROOT / "grammar" / "skill.lark").read_text("utf-8"))
    known = vocabulary()
    every = {*known.kinds, *known.modifiers, *known.settings, *known.values, "language", "use", "as"}
    every |= {*NAMES, *TYPES, *PARAMETER_TYPES, *UNITS, *signs, *_NASTY}
    lines = ("".join(f"\\x{byte:02x}" for byte in word.encode()) for word in sorted(every))
    folder.with_name("dictionary").write_text("".join(f'"{line}"\n' for line in lines), encoding="ascii")


if __name__ == "__main__":
    main()
