"""Runs a command under Landlock and seccomp, by the library sandlock, where namespaces are refused.

    python confined.py POLICY COMMAND...

POLICY is JSON. This file is run as a script with the standard streams and the environment of the command, and ends
with its status.
"""

from __future__ import annotations

import json
import sys


def main() -> int:
    """Run the command and return its status."""
    from sandlock import Sandbox

    policy = json.loads(sys.argv[1])
    sandbox = Sandbox(
        fs_readable=policy["readable"],
        fs_writable=policy["writable"],
        cwd=policy["folder"],
        max_memory=policy["memory"],
        max_processes=policy["processes"],
        net_allow=policy["hosts"],
    )
    return int(sandbox.run_interactive(sys.argv[2:]))


if __name__ == "__main__":
    sys.exit(main())
