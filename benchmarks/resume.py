"""A hundred runs, each killed with SIGKILL at a random moment and run again: bytes, and calls made twice.

    python benchmarks/resume.py [--kills 100] [--seed 1]

Against a server on the loopback that answers as the rulebook does. The moment is drawn evenly from the requests of a
whole run, with some milliseconds on top.
"""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "faults"))

from loopback import Loopback
from nursery import Nursery
from test_resume import IN_FLIGHT, compiled, finish, killed, shop


def main() -> int:
    """Runs the kills and prints the table; status 1 where a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    nursery, dice = Nursery(), random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as home:
        with Loopback(latency=0.002) as server:
            whole = shop(Path(home) / "whole")
            finish(nursery, server, whole)
            expected, once = compiled(whole), server.total
        print(f"a whole run: {once} requests")
        differing, again, dead, began = 0, [], 0, time.monotonic()
        for i in range(arguments.kills):
            folder = shop(Path(home) / str(i))
            with Loopback(latency=0.002) as server:
                dead += killed(nursery, server, folder, dice, most=once) < 0
                finish(nursery, server, folder)
                again.append(server.total - once)
            differing += compiled(folder) != expected
    print(f"{arguments.kills} runs in {time.monotonic() - began:.0f} s, {dead} of them killed before their end")
    print(f"runs that ended with other bytes: {differing}")
    print(f"requests sent again: at most {max(again)}, {sum(again) / len(again):.1f} on average; in flight {IN_FLIGHT}")
    return int(differing > 0 or max(again) > IN_FLIGHT)


if __name__ == "__main__":
    sys.exit(main())
