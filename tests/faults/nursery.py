"""Compiles in forked processes, so that the libraries are imported once for a hundred of them.

As a program it reads one JSON list a line from standard input, `[folder, environment, arguments]`, forks, runs
`skillc` with the arguments in the folder, and prints the child's process id, then its exit status.
"""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from forked import import_libraries, run_skillc


class Nursery:
    """The other end of that program."""

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        assert self._process.stdout.readline() == "ready\n"

    def start(self, folder, *arguments, **environment):
        """The process id of `skillc` with these arguments, under way."""
        print(json.dumps([str(folder), environment, list(arguments)]), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def wait(self):
        """Its exit status; minus the signal that killed it."""
        return int(self._process.stdout.readline())

    def run(self, folder, *arguments, **environment):
        """Both."""
        self.start(folder, *arguments, **environment)
        return self.wait()

    def close(self):
        """Ends the program."""
        self._process.stdin.close()
        self._process.wait(timeout=600)


def serve():
    import_libraries()
    print("ready", flush=True)
    for line in sys.stdin:
        folder, environment, arguments = json.loads(line)
        child = os.fork()
        if child == 0:
            _be_skillc(folder, environment, arguments)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _be_skillc(folder, environment, arguments):
    os.chdir(folder)
    os.environ.update(environment)
    if "DISK" in environment:
        threading.Thread(target=_fill_the_disk, args=(int(environment["DISK"]),), daemon=True).start()
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(Path(folder) / f"{name}.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    run_skillc(arguments)


def _fill_the_disk(size):
    """Once the run's store reaches a size, no file grows beyond a little more: a write fails in its middle."""
    import resource

    while not any(path.stat().st_size > size for path in Path(".skillc").glob("runs/*/run.db*")):
        time.sleep(0.005)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 4_001, size + 4_001))


if __name__ == "__main__":
    serve()
