"""The server over standard input and output, which belong to the protocol alone."""

from __future__ import annotations

import logging
import os
import sys
from typing import BinaryIO

from skillc.lsp.server import build


def serve() -> None:
    """Answer an editor until it says goodbye or hangs up.

    Whatever else is printed, by Python or by a library below it, goes to standard error: one stray byte on standard
    output would end the conversation.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(name)s: %(message)s")
    output = _claimed_output()
    try:
        build().start_io(sys.stdin.buffer, output)
    finally:
        # Threads that wait for input or reckon costs must not keep the process.
        sys.stderr.flush()


def _claimed_output() -> BinaryIO:
    sys.stdout.flush()
    claimed = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(claimed, "wb", buffering=0)
