"""Cold `skillc check`: a 60-line file as a whole process, and 1,000 and 10,000 lines in one.

Targets: 60 lines under 150 ms. Figures are the median of several runs, each beside that of a bare interpreter, so that
a slow machine shows in both.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from skillc.frontend import check
from skillc.syntax.source import Source

RUNS = 9
# An installed package has its bytecode; a setting that forbids writing it would be measured instead of the check.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
EXAMPLE = Path(__file__).resolve().parents[1] / "examples/tickets/tickets.skill"


def process(*arguments: str) -> float:
    """Median milliseconds of a whole process."""
    times = []
    for _ in range(RUNS):
        began = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=ENVIRONMENT)
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def long_program(lines: int) -> str:
    """The example with metrics added until it has so many lines."""
    text = EXAMPLE.read_text(encoding="utf-8")
    missing = lines - len(text.splitlines())
    more = "".join(f"metric extra_{i} = clamp(tokens(team) / {i + 1} tokens, 0, 1)\n" for i in range(missing))
    return text + more


def main() -> None:
    """Prints the figures."""
    bare = process("-c", "pass")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.skill"
        program.write_text(EXAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
        process("-m", "skillc", "check", str(program))
        cold = process("-m", "skillc", "check", str(program))
    print(f"bare interpreter               {bare:7.0f} ms")
    print(f"check, 60 lines, cold process  {cold:7.0f} ms   {cold / bare:.1f} x   target 150 ms")
    for lines in (1_000, 10_000):
        source = Source("long.skill", long_program(lines))
        began = time.perf_counter()
        check(source)
        taken = (time.perf_counter() - began) * 1000
        print(f"check, {lines:>6,} lines            {taken:7.0f} ms")


if __name__ == "__main__":
    main()
