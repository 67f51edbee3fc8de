"""`skillc`, whose disk is full once the store of its run has `$DISK` bytes.

No file grows beyond a little more then: a write fails in its middle.
"""

import os
import resource
import threading
import time
from pathlib import Path

from skillc.cli import main


def fill_the_disk(size):
    while not any(path.stat().st_size > size for path in Path(".skillc").glob("runs/*/run.db*")):
        time.sleep(0.005)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 4_001, size + 4_001))


threading.Thread(target=fill_the_disk, args=(int(os.environ["DISK"]),), daemon=True).start()
main()
