"""`skillc fmt`: 10,000 lines in one process, and the tickets example as a whole one.

Target: 10,000 lines under 2 s, with the proof that the result is the same program and its own canonical form. The
lines are those of the programs that show the language, over and over, in the layout of a hurried author. Each figure is
the median of several runs, beside what parsing alone takes in the same run.
"""

import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from check import ENVIRONMENT, process

from skillc.syntax.formatting import format_source
from skillc.syntax.parser import parse
from skillc.syntax.source import Source

RUNS = 7
LINES = 10_000
ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = [*sorted((ROOT / "tests/language/programs").glob("*.skill")), ROOT / "examples/tickets/tickets.skill"]


def long_program() -> str:
    """The programs one after the other until there are so many lines."""
    found: list[str] = []
    while len(found) < LINES:
        for path in PROGRAMS:
            found += path.read_text(encoding="utf-8").splitlines()
    return "\n".join(found) + "\n"


def hurried(text: str) -> str:
    """The program with other blanks in every line that holds no text."""
    chance, inside, lines = random.Random(7), False, []
    for line in text.splitlines():
        if '"""' in line or inside or "#" in line:
            inside ^= line.count('"""') % 2 == 1
            lines.append(line)
        else:
            lines.append(" " * chance.randint(0, 3) + line.replace(" = ", chance.choice(["=", " =  "])) + " ")
    return "\n".join(lines) + "\n"


def median(work: Callable[[], object]) -> float:
    """Median milliseconds of some work."""
    times = []
    for _ in range(RUNS):
        began = time.perf_counter()
        work()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def main() -> None:
    """Prints the figures."""
    source = Source("long.skill", hurried(long_program()))
    formatted = Source("long.skill", format_source(source).text or "")
    assert formatted.text not in ("", source.text)
    parsing = median(lambda: parse(source))
    changed = median(lambda: format_source(source))
    unchanged = median(lambda: format_source(formatted))
    lines = len(source.text.splitlines())
    print(f"parse, {lines:,} lines                  {parsing:7.0f} ms")
    print(f"fmt,   {lines:,} lines, all new         {changed:7.0f} ms   {changed / parsing:.1f} x   target 2000 ms")
    print(f"fmt,   {lines:,} lines, already formatted {unchanged:5.0f} ms   {unchanged / parsing:.1f} x")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.skill"
        program.write_text(PROGRAMS[-1].read_text(encoding="utf-8"), encoding="utf-8")
        subprocess.run([sys.executable, "-m", "skillc", "fmt", str(program)], check=True, capture_output=True)
        bare = process("-c", "pass")
        cold = process("-m", "skillc", "fmt", "--check", str(program))
        print(f"fmt, 60 lines, cold process            {cold:7.0f} ms   {cold / bare:.1f} x a bare interpreter")
        big = Path(folder) / "long.skill"
        big.write_text(source.text, encoding="utf-8")
        subprocess.run(
            [sys.executable, "-m", "skillc", "fmt", str(big)], check=True, capture_output=True, env=ENVIRONMENT
        )
        assert big.read_text(encoding="utf-8") == formatted.text


if __name__ == "__main__":
    main()
