"""Commands that the guard runs when skillc has ended: what removes a container that no signal reaches."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

CODE = """
    import os, signal, sys
    from pathlib import Path
    from skillc.processes.guard import GUARD

    folder, end = sys.argv[1:]
    GUARD.mark()
    for name in ("kept", "taken back"):
        GUARD.at_end(name, ["touch", f"{folder}/{name}"])
    GUARD.at_end("missing", ["no-such-program"])
    # A guard that is replaced knows them too.
    os.kill(GUARD._process.pid, signal.SIGKILL)
    GUARD._process.wait()
    GUARD.at_end("late", ["touch", f"{folder}/late"])
    GUARD.not_at_end("taken back")
    GUARD.not_at_end("unknown")
    if end == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("end", ["killed", "ended"])
def test_they_run_once_skillc_has_ended_however_it_did_but_for_those_taken_back(tmp_path, end):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(CODE), str(tmp_path), end], check=False)
    assert done.returncode == (-signal.SIGKILL if end == "killed" else 0)
    begun = time.monotonic()
    while len(os.listdir(tmp_path)) < 2:
        assert time.monotonic() - begun < 20
        time.sleep(0.02)
    assert sorted(os.listdir(tmp_path)) == ["kept", "late"]
