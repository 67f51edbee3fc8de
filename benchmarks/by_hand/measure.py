"""Test a skill file by itself, for example one written by someone who knows the rules.

    python -m benchmarks.by_hand.measure PROGRAM SKILL.md RESULT.json [--ports TARGET OPTIMIZER]

`skillc eval --split test` counts looks at the test split in the lock, so it needs a compile first; this does not.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from benchmarks.by_hand.gepa import Bench


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("skill", type=Path)
    parser.add_argument("result", type=Path)
    parser.add_argument("--ports", type=int, nargs=2, help="default: those of the program")
    given = parser.parse_args()
    os.environ.setdefault("FAKE_KEY", "none")
    bench = Bench(given.program, given.ports)
    text = given.skill.read_text(encoding="utf-8")
    right = bench.tested(bench.module(_body(text)))
    result = {"skill": given.skill.name, "test": sum(right) / len(right), "right": right}
    given.result.write_text(json.dumps(result) + "\n", encoding="utf-8")
    print(f"test: {sum(right)} of {len(right)}, {100 * sum(right) / len(right):.1f} %")


def _body(text: str) -> str:
    """The skill without its frontmatter."""
    return text.split("\n---\n", 1)[1] if text.startswith("---\n") else text


if __name__ == "__main__":
    main()
