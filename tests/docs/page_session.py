"""A shell that is typed into, and what it answers."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from forked import command

ROOT = Path(__file__).resolve().parents[2]
_MARK = "<<the command has ended>>"
_LIMIT = 600.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command printed, both streams as they came, and its exit status."""

    text: str
    status: int


class Session:
    """A bash in a folder of its own: a home with copies of the examples, no key, no network in use."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "work"
        self.folder.mkdir(parents=True)
        self.environment = _environment(home)
        self._bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, command: str) -> Answer:
        """Runs one command, as it would run after all before it."""
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        ended = f'__status=$?; printf \'\\n{_MARK} %s\\n\' "$__status"; (exit "$__status")'
        self._bash.stdin.write(f"eval {shlex.quote(command)} </dev/null; {ended}\n")
        self._bash.stdin.flush()
        limit = threading.Timer(_LIMIT, os.killpg, (self._bash.pid, signal.SIGKILL))
        limit.start()
        lines: list[str] = []
        try:
            for line in self._bash.stdout:
                if line.startswith(_MARK):
                    return Answer("".join(lines)[:-1], int(line.split()[-1]))
                lines.append(line)
        finally:
            limit.cancel()
        raise AssertionError(f"`{command}` ended the shell, or took more than {_LIMIT:.0f} s:\n{''.join(lines)}")

    def close(self) -> None:
        """Ends the shell."""
        self._bash.communicate("exit\n", timeout=600)


def _environment(home: Path) -> dict[str, str]:
    """What a reader's shell has: `skillc` and this Python on the path."""
    programs = home / "bin"
    programs.mkdir()
    for name in ("skillc", "python"):
        program = programs / name
        own = f'case "$1" in -*) exec {sys.executable} "$@";; esac\n' if name == "python" else ""
        program.write_text(f'#!/bin/sh\n{own}exec {shlex.join(command(name))} "$@"\n')
        program.chmod(0o755)
    path = [str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]
    return {
        "PATH": os.pathsep.join(path),
        "HOME": str(home),
        "TMPDIR": str(home),
        "LANG": "C.UTF-8",
        "COLUMNS": "80",
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUTF8": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Ada",
        "GIT_AUTHOR_EMAIL": "ada@example.org",
        "GIT_COMMITTER_NAME": "Ada",
        "GIT_COMMITTER_EMAIL": "ada@example.org",
        "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
        "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "init.defaultBranch",
        "GIT_CONFIG_VALUE_0": "main",
    }
