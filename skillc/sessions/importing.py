"""Import files into the store: read, audit, redact and store, a file at a time, on all cores."""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import field
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from skillc.dataclass import dataclass
from skillc.sessions.audit import reason_apart
from skillc.sessions.poison import scan
from skillc.sessions.privacy import Cleaner
from skillc.sessions.readers.records import Problem
from skillc.sessions.readers.registry import FORMATS, Source, find_sources
from skillc.sessions.session import Session
from skillc.sessions.store import Packed, SessionStore, pack
from skillc.sessions.verdicts import apply_verdicts

LARGE = 16 * 2**20
"""Bytes from which a file is read session by session, since its sessions may not fit into memory together."""

_AHEAD = 4
"""Files that each process prefetches."""


@dataclass(slots=True)
class Imported:
    """Result of an import.

    Attributes:
        files: that were read.
        known: files that had not changed since they were imported.
        sessions: that were read.
        new: sessions that the store did not have.
        problems: records that could not be read; the first hundred.
        unreadable: how many they are.
        formats: sessions by format.
        removed: values that were removed from them, by kind.
    """

    files: int = 0
    known: int = 0
    sessions: int = 0
    new: int = 0
    problems: list[Problem] = field(default_factory=list)
    unreadable: int = 0
    formats: Counter[str] = field(default_factory=Counter)
    removed: Counter[str] = field(default_factory=Counter)


class Prepared(NamedTuple):
    """A session ready to be stored, and how many values were removed from it by kind."""

    packed: Packed
    removed: Counter[str]


@dataclass(slots=True)
class _Read:
    """A file that is being read; its problems are complete when its sessions are used up."""

    source: Source
    size: int
    changed: int
    sessions: Iterable[Prepared] = ()
    problems: list[Problem] = field(default_factory=list)

    def of(self, records: Iterable[Session | Problem]) -> Iterator[Session]:
        """Yield the sessions among the records, and keep the problems."""
        for each in records:
            if isinstance(each, Problem):
                self.problems.append(each)
            else:
                yield each


def import_sessions(
    paths: Sequence[Path],
    store: SessionStore,
    *,
    format: str | None = None,  # noqa: A002 - the field's name
    workers: int | None = None,
    report: Callable[[Imported], None] = lambda found: None,
) -> Imported:
    """Read the sessions below the paths and store them without secrets and personal data.

    A file that has not changed since it was imported is skipped; a session that has grown is replaced. A kill loses at
    most the files that were being read.

    Args:
        paths: files and folders.
        store: to add them to.
        format: of all files; by default it is recognised.
        workers: processes; by default one a core.
        report: called after each session.

    Raises:
        SkillcError: a path does not exist, or the libraries that redact are missing.
    """
    _cleaner().text("https://a@b: 1")  # fails before anything is read
    found = Imported()

    def sources() -> Iterator[Source]:
        for source in find_sources(paths, format):
            if isinstance(source, Problem):
                _note(found, [source])
            elif store.is_known(source.path):
                found.known += 1
            else:
                yield source

    def counted(read: _Read) -> Iterator[Packed]:
        for packed, removed in read.sessions:
            found.sessions += 1
            found.formats[read.source.format] += 1
            found.removed.update(removed)
            report(found)
            yield packed

    for read in _read_all(sources(), workers or os.cpu_count() or 1):
        found.new += store.add_source(read.source.path, read.size, read.changed, counted(read))
        found.files += 1
        _note(found, read.problems)
    apply_verdicts(store)
    return found


def _note(found: Imported, problems: Sequence[Problem]) -> None:
    found.unreadable += len(problems)
    found.problems += problems[: 100 - len(found.problems)]


def _read_all(sources: Iterator[Source], workers: int) -> Iterator[_Read]:
    """Yield each file as it is read; few files, and few sessions of a large one, are in memory at a time."""
    first = list(islice(sources, 2))
    if workers == 1 or not first or (len(first) == 1 and not _is_large(first[0])):
        yield from map(_read, first)
        yield from map(_read, sources)
        return
    # A fork would copy the locks of other threads.
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        # In the order of the files, so that a store does not depend on how many processes there are.
        pending: deque[Future[_Read]] = deque()
        for source in chain(first, sources):
            if _is_large(source):
                yield from _results(pending)
                yield _streamed(source, pool, workers)
                continue
            if len(pending) >= _AHEAD * workers:
                yield pending.popleft().result()
            pending.append(pool.submit(_read, source))
        yield from _results(pending)


def _results(pending: deque[Future[_Read]]) -> Iterator[_Read]:
    while pending:
        yield pending.popleft().result()


def _is_large(source: Source) -> bool:
    return source.path.stat().st_size >= LARGE


def _read(source: Source) -> _Read:
    """Read one file, in a worker process."""
    found = _Read(source, *_state(source))
    found.sessions = [prepare(session, _cleaner()) for session in found.of(_records(source))]
    return found


def _streamed(source: Source, pool: ProcessPoolExecutor, workers: int) -> _Read:
    """Read a large file here, session by session, and prepare its sessions in the other processes."""
    found = _Read(source, *_state(source))

    def sessions() -> Iterator[Prepared]:
        pending: deque[Future[Prepared]] = deque()
        for session in found.of(_records(source)):
            pending.append(pool.submit(_prepared, session))
            if len(pending) >= 8 * workers:
                yield pending.popleft().result()
        yield from (each.result() for each in pending)

    found.sessions = sessions()
    return found


def _state(source: Source) -> tuple[int, int]:
    # Taken before reading, so that additions made meanwhile are read the next time.
    stat = source.path.stat()
    return stat.st_size, stat.st_mtime_ns


def _records(source: Source) -> Iterator[Session | Problem]:
    try:
        yield from FORMATS[source.format].read(source.path)
    except OSError as problem:
        yield Problem(str(source.path), 0, str(problem.strerror or problem).lower())


@cache
def _cleaner() -> Cleaner:
    """Return the cleaner of this process."""
    return Cleaner()


def _prepared(session: Session) -> Prepared:
    return prepare(session, _cleaner())


def prepare(session: Session, cleaner: Cleaner) -> Prepared:
    """Audit, scan and redact a session, and return its stored form with the number of values removed by kind."""
    # Before redaction, which takes addresses and encoded texts out.
    findings = scan(session)
    hide = cleaner.hider()
    reason = reason_apart(session) or ("suspect" if findings else None)
    clean, removed = cleaner.session(session)
    excerpts = tuple((each.kind, each.step, hide(each.excerpt)) for each in findings)
    return Prepared(pack(clean, reason, removed, excerpts), removed)
