"""Import made sessions through the verb, and cluster their requests; print time and memory by the number of sessions.

`python -m benchmarks.sessions make FOLDER 77000` writes the sessions (14 KB each), `import FOLDER STORE` runs
`skillc sessions import` on them and reads its processor time and memory while it runs, and `likeness STORE 10000 77000`
clusters that many, each in a process of its own.
"""

from __future__ import annotations

import resource
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import click

from benchmarks.sessions.make import write_sessions

MARKS = (1_000, 10_000, 20_000, 40_000, 77_000)
_TICKS = 100
"""Of the processor's time in /proc, for each second."""
_CHUNK = 5_000


@click.group()
def main() -> None:
    """Measure the import of many sessions."""


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("number", type=int)
def make(folder: Path, number: int) -> None:
    """Write sessions."""
    for first in range(0, number, _CHUNK):
        write_sessions(folder, first, min(number, first + _CHUNK))


@main.command("import")
@click.argument("folder", type=click.Path(exists=True, path_type=Path))
@click.argument("store", type=click.Path(path_type=Path))
@click.option("--workers", type=int, default=2, show_default=True)
def import_(folder: Path, store: Path, workers: int) -> None:
    """Import the sessions of a folder, and print a line at each mark."""
    words = ["sessions", "import", str(folder), "--store", str(store), "--workers", str(workers)]
    begun, left = time.monotonic(), list(MARKS)
    print(f"{'sessions':>9}{'wall, min':>11}{'CPU, min':>10}{'peak of one, MB':>17}{'of all, MB':>12}{'store, MB':>11}")
    with subprocess.Popen([sys.executable, "-m", "skillc", *words], stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            time.sleep(1)
            stored = _stored(store)
            if left and stored >= left[0]:
                left.pop(0)
                _print(stored, begun, *_used(process.pid), store)
            last = (stored, _used(process.pid))
    stored, (_, peaks) = last
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    _print(_stored(store), begun, spent.ru_utime + spent.ru_stime, peaks, store)
    print(f"exit status {process.returncode}")


def _print(stored: int, begun: float, cpu: float, peaks: list[int], store: Path) -> None:
    size = sum(path.stat().st_size for path in store.parent.glob(f"{store.name}*")) // 10**6
    wall = (time.monotonic() - begun) / 60
    print(f"{stored:>9,}{wall:>11.1f}{cpu / 60:>10.1f}{max(peaks):>17,}{sum(peaks):>12,}{size:>11,}", flush=True)


def _stored(store: Path) -> int:
    try:
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as database:
            return int(database.execute("SELECT COALESCE(MAX(id), 0) FROM sessions").fetchone()[0])
    except sqlite3.Error:
        return 0


def _used(process: int) -> tuple[float, list[int]]:
    """Return the seconds that a process and its children computed, and the peak of each one's memory in MB."""
    seconds, peaks = 0.0, [0]
    for each in _tree(process):
        try:
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            status = Path(f"/proc/{each}/status").read_text()
        except OSError:
            continue
        seconds += sum(map(int, fields[11:13])) / _TICKS
        peaks += [int(line.split()[1]) // 1024 for line in status.splitlines() if line.startswith("VmHWM")]
    return seconds, peaks


def _tree(process: int) -> Iterator[int]:
    yield process
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return
    for child in children:
        yield from _tree(int(child))


@main.command()
@click.argument("store", type=click.Path(exists=True, path_type=Path))
@click.argument("numbers", type=int, nargs=-1)
def likeness(store: Path, numbers: tuple[int, ...]) -> None:
    """Cluster the requests of a store."""
    print(f"{'sessions':>9}{'clusters':>10}{'CPU, s':>9}{'memory before, MB':>19}{'peak, MB':>10}")
    for number in numbers:
        done = subprocess.run(
            [sys.executable, "-c", _LIKENESS, str(store), str(number)], check=True, capture_output=True
        )
        sys.stdout.write(done.stdout.decode())
        sys.stdout.flush()


_LIKENESS = """
import resource, sys, time
from itertools import islice
from pathlib import Path
from skillc.sessions.examples import request_of
from skillc.sessions.likeness import cluster
from skillc.sessions.store import SessionStore

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

cluster([("a", "Fix it."), ("b", "Fix it now.")])  # the libraries are loaded
with SessionStore(Path(sys.argv[1])) as store:
    rows = islice(store.rows(reason=None), int(sys.argv[2]))
    before, begun = peak(), time.process_time()
    found = cluster((row.key, request_of(store.session(row.id))) for row in rows)
    spent = time.process_time() - begun
    print(f"{len(found.of):>9,}{len(found.sizes):>10,}{spent:>9.1f}{before:>19,}{peak():>10,}")
"""

if __name__ == "__main__":
    main()
