"""Write ``names.jsonl``: the general category of a character, to be derived from its Unicode name alone.

Everything comes from ``unicodedata.ucd_3_2_0``, the database that Python keeps frozen at Unicode 3.2, and rows are
drawn by a hash of the code point. So every Python on every machine writes the same bytes:

    python examples/unicode/make_data.py
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from unicodedata import ucd_3_2_0 as ucd

#: Most rows that a category may have. Lo (above 90,000 letters) and So would drown the rest otherwise.
CAPS = {
    "Lu": 430,
    "Ll": 430,
    "Lo": 430,
    "Mn": 300,
    "So": 350,
    "Sm": 280,
    "Nd": 230,
    "No": 200,
    "Po": 170,
    "Mc": 130,
    "Ps": 70,
    "Pe": 70,
    "Sk": 70,
    "Lm": 70,
    "Nl": 60,
    "Sc": 50,
}
#: Most rows of one large, monotonous family; the names of a family differ by a number or a syllable only.
FAMILY_CAP = 25
FAMILIES = (
    "CJK UNIFIED IDEOGRAPH",
    "CJK COMPATIBILITY IDEOGRAPH",
    "HANGUL SYLLABLE",
    "YI SYLLABLE",
    "ETHIOPIC SYLLABLE",
    "CANADIAN SYLLABICS",
    "BRAILLE PATTERN",
    "KANGXI RADICAL",
    "MATHEMATICAL",
    "BYZANTINE MUSICAL SYMBOL",
)
#: A first word that opens fewer names than this is no script of its own: its rows carry ``OTHER``.
SCRIPT_MIN = 25

Row = dict[str, str]


def characters() -> Iterator[tuple[int, str, str]]:
    """Yield (code point, name, category) of each named character, in an order drawn by hash."""
    points = sorted(range(sys.maxunicode + 1), key=lambda point: hashlib.sha256(b"%06x" % point).digest())
    for point in points:
        name = ucd.name(chr(point), "")
        if name:
            yield point, name, ucd.category(chr(point))


def family(name: str, category: str) -> str:
    """Return the capped family of a name, per category, or ``""`` if it belongs to none."""
    return next((f"{head} {category}" for head in FAMILIES if name.startswith(head)), "")


def rows() -> list[Row]:
    """Draw the rows within all caps, in code-point order."""
    taken: list[tuple[int, str, str]] = []
    in_category: Counter[str] = Counter()
    in_family: Counter[str] = Counter()
    for point, name, category in characters():
        kin = family(name, category)
        if in_category[category] >= CAPS.get(category, 0) or (kin and in_family[kin] >= FAMILY_CAP):
            continue
        in_category[category] += 1
        in_family[kin] += 1
        taken.append((point, name, category))
    first_words = Counter(name.split()[0] for _, name, _ in taken)
    return [
        {
            "id": f"U+{point:04X}",
            "name": name,
            "category": category,
            "script": first if first_words[first := name.split()[0]] >= SCRIPT_MIN else "OTHER",
        }
        for point, name, category in sorted(taken)
    ]


def main() -> None:
    """Write the file beside this script and print a summary."""
    table = rows()
    target = Path(__file__).with_name("names.jsonl")
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in table)
    target.write_text(text, encoding="utf-8", newline="\n")
    print(f"{target.name}: {len(table)} names")
    for column in ("category", "script"):
        counts = Counter(row[column] for row in table)
        print(f"  {column}: " + ", ".join(f"{word} {count}" for word, count in counts.most_common()))


if __name__ == "__main__":
    main()
