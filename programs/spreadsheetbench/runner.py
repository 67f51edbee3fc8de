"""Inside the sandbox: run one solution on each case, in a process of its own.

`python runner.py SOLUTION INPUT OUTPUT [INPUT OUTPUT ...]` prints one JSON line for each case: whether the solution
ended, and the end of what it printed. The libraries are imported once, before the processes are forked.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
from pathlib import Path

_LONGEST = 4_000


def main() -> None:
    """Run all cases."""
    import openpyxl  # noqa: F401

    solution, *paths = sys.argv[1:]
    code = Path(solution).read_text(encoding="utf-8")
    for given, made in zip(paths[::2], paths[1::2], strict=True):
        with tempfile.TemporaryFile() as printed:
            sys.stdout.flush()
            child = os.fork()
            if not child:
                os.dup2(printed.fileno(), 1)
                os.dup2(printed.fileno(), 2)
                _run(code, given, made)
            _, status = os.waitpid(child, 0)
            size = printed.seek(0, os.SEEK_END)
            printed.seek(max(0, size - _LONGEST))
            text = printed.read().decode("utf-8", "replace")
        print(json.dumps({"ended": status == 0, "wrote": Path(made).is_file(), "printed": text}))  # noqa: T201


def _run(code: str, given: str, made: str) -> None:
    """Run a solution with `INPUT_PATH` and `OUTPUT_PATH`, and end the process."""
    status = 0
    try:
        exec(compile(code, "solution.py", "exec"), {"__name__": "__main__", "INPUT_PATH": given, "OUTPUT_PATH": made})
    except SystemExit as ended:
        status = 0 if not ended.code else 1
    except BaseException:
        lines = traceback.format_exc().splitlines()
        # The first frame is this file.
        sys.stderr.write("\n".join([lines[0], *lines[3:]]) + "\n")
        status = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
