"""Cold `skillc check`: a 60-line file as a whole process, and 1,000 and 10,000 lines in one.

Targets for 60 lines: at most 120 ms of CPU, and 12 times a bare interpreter. Bare and checking processes take turns and
their CPU is compared, so that neither a slow nor a busy machine changes the ratio much.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from skillc.frontend import check
from skillc.syntax.source import Source

RUNS = 21
# An installed package has its bytecode; a setting that forbids writing it would be measured instead of the check.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
EXAMPLE = Path(__file__).resolve().parents[1] / "examples/tickets/tickets.skill"


def cpu(*arguments: str) -> float:
    """CPU milliseconds of a whole process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=ENVIRONMENT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def compared(*arguments: str) -> tuple[float, float]:
    """Median CPU milliseconds of a bare interpreter and of a command, in turns."""
    cpu(*arguments)
    pairs = [(cpu("-c", "pass"), cpu(*arguments)) for _ in range(RUNS)]
    bare, other = zip(*pairs, strict=True)
    return statistics.median(bare), statistics.median(other)


def long_program(lines: int) -> str:
    """The example with metrics added until it has so many lines."""
    text = EXAMPLE.read_text(encoding="utf-8")
    missing = lines - len(text.splitlines())
    more = "".join(f"metric extra_{i} = clamp(tokens(team) / {i + 1} tokens, 0, 1)\n" for i in range(missing))
    return text + more


def main() -> None:
    """Prints the figures."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.skill"
        program.write_text(EXAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
        bare, cold = compared("-m", "skillc", "check", str(program))
    print(f"bare interpreter               {bare:7.1f} ms of CPU")
    print(f"check, 60 lines, cold process  {cold:7.1f} ms of CPU   {cold / bare:.1f} x   targets 120 ms, 12 x")
    for lines in (1_000, 10_000):
        source = Source("long.skill", long_program(lines))
        began = time.perf_counter()
        check(source)
        taken = (time.perf_counter() - began) * 1000
        print(f"check, {lines:>6,} lines            {taken:7.0f} ms")


if __name__ == "__main__":
    main()
