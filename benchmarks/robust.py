"""Hostile programs of n, 2n and 4n pieces: how many times longer a check takes, and how much memory the largest takes.

Linear is 2.0 for each doubling. Each figure is the best of two in a process of its own; the last column is the most
memory that the largest took, the bare interpreter included.
"""

import json
import subprocess
import sys
import time

from skillc.frontend import check
from skillc.syntax.source import Source

HEAD = "language 1\nmetric right = exact_match(team)\n"
SIZES = (4_000, 8_000, 16_000)
TEXTS = {
    "comments": ("# a\n", ""),
    "documentation": ("/// a\n", ""),
    "blank lines": (" \n", ""),
    "statements": ("metric a = f1(team)\n", ""),
    "mistakes": ("metric a = )\n", ""),
    "one line of a sum": ("1 + ", "metric a = "),
    "one string": ("a\\q", 'rubric r = "'),
    "one open text": ("a\n", 'rubric r = """'),
    "open strings": ('rubric r = "\n', ""),
    "open brackets": ("([{", "metric a = "),
    "brackets that close nothing": (")", "metric a = "),
    "blocks": ("a {\n", ""),
    "carriage returns": ("\r", ""),
    "hidden characters": ("\u202e", "# "),
}


def measured(name: str, count: int) -> tuple[float, float]:
    """Seconds of one check in this process, and the most memory in MB."""
    import resource

    piece, before = TEXTS[name]
    source = Source("robust.skill", HEAD + before + piece * count)
    check(Source("warm.skill", HEAD))
    times = []
    for _ in range(2):
        began = time.process_time()
        check(source)
        times.append(time.process_time() - began)
    return min(times), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Prints the figures."""
    print(f"{'':28} {'n = ' + format(SIZES[0], ','):>12} {'2n':>7} {'4n':>7} {'memory':>9}")
    for name in TEXTS:
        found = []
        for count in SIZES:
            command = [sys.executable, __file__, name, str(count)]
            found.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        (first, _), (second, _), (third, memory) = found
        ratios = [f"{a / b:5.1f} x" for a, b in ((second, first), (third, second))]
        print(f"{name:28} {first * 1000:9.0f} ms {ratios[0]} {ratios[1]} {memory:6.0f} MB", flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(measured(sys.argv[1], int(sys.argv[2]))))
    else:
        main()
