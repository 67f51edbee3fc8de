"""skillc's own Python inside a container, whose image may have none, or one with another C library.

It is started by its own dynamic loader with its own libraries, all mounted read-only, so the image does not matter.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from skillc.sandbox.policy import Mount

_SECONDS = 20
# Prints the files that an interpreter with these modules has mapped as code: itself, its loader, its libraries.
_MAPPED = """
import signal, socket, threading
for line in open("/proc/self/maps"):
    fields = line.split(maxsplit=5)
    if "x" in fields[1] and fields[5:] and fields[5].startswith("/"):
        print(fields[5].strip())
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter that starts in any container of this machine.

    Attributes:
        mounts: what it consists of.
        command: the start of its command line.
    """

    mounts: tuple[Mount, ...]
    command: tuple[str, ...]


@cache
def interpreter_at(inside: str) -> Interpreter:
    """Return the interpreter with its files below a folder of a container.

    Raises:
        OSError: this system has no such files; only Linux has.
    """
    if sys.platform != "linux":
        raise OSError("it needs Linux")
    program = Path(sys.executable).resolve()
    command = [str(program), "-I", "-S", "-c", _MAPPED]
    done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=True, text=True)
    library = Path(os.__file__).resolve().parent
    mapped = [Path(line) for line in dict.fromkeys(done.stdout.splitlines())]
    libraries = [path for path in mapped if path != program and not path.is_relative_to(library)]
    loader = next((path for path in libraries if path.name.startswith("ld")), None)
    python = f"{inside}/python/bin/python3"
    home = f"{inside}/python/{sys.platlibdir}/python{sys.version_info.major}.{sys.version_info.minor}"
    named = [Mount(path, f"{inside}/{name}") for path in libraries for name in _names(path)]
    start = [f"{inside}/{loader.name}", "--library-path", inside] if loader is not None else []
    return Interpreter((Mount(program, python), Mount(library, home), *named), (*start, python, "-I", "-S"))


def _names(library: Path) -> list[str]:
    """Return the names of a library: that of its file, and of links beside it, by one of which programs look it up."""
    with os.scandir(library.parent) as entries:
        links = [Path(each.path) for each in entries if each.is_symlink()]
    return [library.name, *(link.name for link in links if link.readlink().name == library.name)]
