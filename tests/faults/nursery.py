"""Compiles in forked processes that are killed, or whose disk is full."""

import os
from pathlib import Path

from forked import Forked

_FULL_DISK = Path(__file__).parent / "full_disk.py"


class Nursery:
    """One compile at a time; what it prints is in `stdout.txt` and `stderr.txt` of its folder."""

    def start(self, folder, *arguments, **environment):
        """Start `skillc` with these arguments, and return its process id."""
        what, script = ("python", [_FULL_DISK]) if "DISK" in environment else ("skillc", [])
        streams = [os.open(os.devnull, os.O_RDONLY)]
        try:
            for name in ("stdout", "stderr"):
                streams.append(os.open(Path(folder) / f"{name}.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
            self._child = Forked(what, folder, {**os.environ, **environment}, [*script, *arguments], streams)
        finally:
            for stream in streams:
                os.close(stream)
        return self._child.pid

    def wait(self):
        """Its exit status; minus the signal that killed it."""
        return self._child.wait()

    def run(self, folder, *arguments, **environment):
        """Both."""
        self.start(folder, *arguments, **environment)
        return self.wait()
