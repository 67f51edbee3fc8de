"""The files of a workspace, open ones with the editor's text; and positions in the editor's units."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from lsprotocol import types
from pygls import uris

from skillc.dataclass import dataclass
from skillc.document.skill_md import sections_of
from skillc.errors import SkillcError
from skillc.frontend import add_advice, read_sections
from skillc.language.check import CheckState, analyse
from skillc.language.checked import Checked
from skillc.language.links import Link, links
from skillc.language.modules import Loader
from skillc.language.skill_packages import Package
from skillc.syntax.files import read_source
from skillc.syntax.source import Source, Span

_LINE_END = re.compile(r"\r\n|\n|\r")
Encoding = types.PositionEncodingKind
UTF_16 = Encoding.Utf16
_UNITS: Mapping[Encoding, Callable[[str], int]] = {
    Encoding.Utf8: lambda text: len(text.encode("utf-8", "surrogatepass")),
    Encoding.Utf16: lambda text: len(text) + sum(c > "\uffff" for c in text),
    Encoding.Utf32: len,
}


class Positions:
    """Converts offsets of one text to positions in the negotiated units and back.

    A line ends at a line feed, a carriage return or both. `str.splitlines` would also split at eight other characters.
    """

    def __init__(self, text: str, encoding: Encoding = UTF_16) -> None:
        self._text = text
        self._units = _UNITS[encoding]
        self._starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
        self._plain = text.isascii()

    def position(self, offset: int) -> types.Position:
        """Return the position of an offset, clamped to the text."""
        offset = min(max(offset, 0), len(self._text))
        line = bisect_right(self._starts, offset) - 1
        start = self._starts[line]
        return types.Position(line, offset - start if self._plain else self._units(self._text[start:offset]))

    def range(self, span: Span) -> types.Range:
        """Return the range of a span."""
        return types.Range(self.position(span.start), self.position(span.end))

    def offset(self, position: types.Position) -> int:
        """Return the offset of a position, clamped to its line and the text.

        A position inside a character is its beginning.
        """
        if position.line >= len(self._starts):
            return len(self._text)
        start = self._starts[position.line]
        end = self._starts[position.line + 1] if position.line + 1 < len(self._starts) else len(self._text)
        line = self._text[start:end].rstrip("\r\n")
        if self._plain:
            return start + min(position.character, len(line))
        counted = 0
        for index, character in enumerate(line):
            counted += self._units(character)
            if counted > position.character:
                return start + index
        return start + len(line)

    def span(self, range_: types.Range) -> Span:
        """Return the span of a range."""
        start = self.offset(range_.start)
        return Span(start, max(start, self.offset(range_.end)))

    def length(self, span: Span) -> int:
        """Return the units of a span within a line."""
        return span.end - span.start if self._plain else self._units(self._text[span.start : span.end])

    def lines(self, span: Span) -> list[Span]:
        """Split a span at line ends, which semantic tokens may not cross; leave out empty pieces."""
        pieces, start = [], span.start
        for match in _LINE_END.finditer(self._text, span.start, span.end):
            pieces.append(Span(start, match.start()))
            start = match.end()
        pieces.append(Span(start, span.end))
        return [piece for piece in pieces if piece.end > piece.start]


@lru_cache(maxsize=64)
def positions(text: str, encoding: Encoding = UTF_16) -> Positions:
    """Return the converter of a text, cached."""
    return Positions(text, encoding)


# ---- files ----------------------------------------------------------------------------------------


FILES_LIMIT = 5_000
"""Programs of a workspace that are searched for uses of a name."""

LONG = 20_000
"""Characters of a program above which completion uses the previous analysis."""

_KEPT = 64
_SKIPPED = frozenset({"node_modules", "__pycache__", "build", "dist", "venv"})
_BYTE_ORDER_MARK = "\ufeff"

Stamp = tuple[object, ...] | None


@dataclass(frozen=True, slots=True)
class Buffer:
    """A document that is open in the editor; `uri` is the editor's own spelling, `text` has no byte-order mark."""

    uri: str
    text: str
    version: int | None
    stamp: int


@dataclass(frozen=True, slots=True)
class Analysis:
    """The analysis of one file as the main file of a program.

    Attributes:
        read: the files that it depends on, each with the stamp of its version.
    """

    source: Source
    work: CheckState
    checked: Checked
    links: tuple[Link, ...]
    read: Mapping[str, Stamp]

    @property
    def readable(self) -> bool:
        """Whether there is no syntax error, so that the links contain every name."""
        return not self.work.unread


class Overlay(Loader):
    """Reads files below a folder, open ones with the editor's text."""

    def __init__(self, root: Path, project: Project) -> None:
        super().__init__(root, skill_sections=read_sections)
        self._project = project
        self.read: dict[str, Stamp] = {}

    def source(self, path: str, package: Package | None = None) -> Source:
        """Return the text of a file, as the editor shows it."""
        name, text = self._opened(path, package)
        return super().source(path, package) if text is None else Source(name, text)

    def sections(self, path: str, package: Package | None = None) -> Mapping[str, str]:
        """Return the sections of a markdown skill, as the editor shows it."""
        _, text = self._opened(path, package)
        return super().sections(path, package) if text is None else sections_of(text)

    def _opened(self, path: str, package: Package | None) -> tuple[str, str | None]:
        """Record that a file is read; return its name, and its text if it is open."""
        name = str(self.folder(package).inside(path))
        self.read[name] = self._project.stamp(name)
        buffer = self._project.buffer(name)
        return name, None if buffer is None else buffer.text


class Project:
    """Open documents, folders, and the analysis of each file, on demand.

    The name of a file is its path, or the URI of a document without a path.
    """

    def __init__(self, encoding: Encoding = UTF_16) -> None:
        self.encoding = encoding
        self.folders: tuple[Path, ...] = ()
        self._buffers: dict[str, Buffer] = {}
        self._analyses: OrderedDict[str, Analysis] = OrderedDict()
        self._stamps = 0

    # ---- documents ----

    def open(self, uri: str, text: str, version: int | None) -> str:
        """Open or change a document; return its name."""
        name = name_of(uri)
        self._stamps += 1
        self._buffers[name] = Buffer(uri, _without_mark(text), version, self._stamps)
        return name

    def close(self, uri: str) -> str:
        """Close a document, so that the file on disk is used again; return its name."""
        name = name_of(uri)
        self._buffers.pop(name, None)
        return name

    def buffer(self, name: str) -> Buffer | None:
        """Return the open document with a name."""
        return self._buffers.get(name)

    @property
    def opened(self) -> tuple[str, ...]:
        """The names of all open programs."""
        return tuple(name for name in self._buffers if not name.lower().endswith(".md"))

    def uri(self, name: str) -> str:
        """Return the URI of a file, in the editor's spelling if it is open."""
        buffer = self._buffers.get(name)
        if buffer is not None:
            return buffer.uri
        return uris.from_fs_path(name) or name

    def stamp(self, name: str) -> Stamp:
        """Return the stamp of the current version of a file; None if it does not exist."""
        buffer = self._buffers.get(name)
        if buffer is not None:
            return ("open", buffer.stamp)
        return stamp_of(name)

    def source(self, name: str) -> Source:
        """Return the text of a file.

        Raises:
            SkillcError: it can't be read.
        """
        buffer = self._buffers.get(name)
        return read_source(Path(name)) if buffer is None else Source(name, buffer.text)

    def positions(self, source: Source) -> Positions:
        """Return the converter between offsets and positions of a file."""
        return positions(source.text, self.encoding)

    def location(self, source: Source, span: Span) -> types.Location:
        """Return the location of a span."""
        return types.Location(self.uri(source.name), self.positions(source).range(span))

    # ---- analyses ----

    def analysis(self, name: str) -> Analysis:
        """Analyse a file, unless neither it nor a file that it uses has changed.

        Raises:
            SkillcError: it can't be read.
        """
        known = self._analyses.get(name)
        if known is not None and all(self.stamp(each) == stamp for each, stamp in known.read.items()):
            self._analyses.move_to_end(name)
            return known
        stamp = self.stamp(name)
        found = self.analyse(self.source(name), stamp)
        self._analyses[name] = found
        while len(self._analyses) > _KEPT + len(self._buffers):
            self._analyses.popitem(last=False)
        return found

    def names(self, name: str) -> Analysis:
        """Analyse a file; for a long one, whose analysis would delay typing, reuse the previous one.

        Raises:
            SkillcError: it can't be read.
        """
        known = self._analyses.get(name)
        return known if known is not None and len(known.source.text) > LONG else self.analysis(name)

    def analyse(self, source: Source, stamp: Stamp = None) -> Analysis:
        """Analyse a text."""
        loader = Overlay(self._root(source.name), self)
        work = analyse(source, loader)
        return Analysis(
            source, work, add_advice(work), links(work.module, work.program), {source.name: stamp, **loader.read}
        )

    def _root(self, name: str) -> Path:
        if Path(name).is_absolute():
            return Path(name).parent
        # An unsaved document uses files of the first folder.
        return self.folders[0] if self.folders else Path.cwd()

    def with_texts(self, texts: Mapping[str, str]) -> Project:
        """Return a copy of the workspace with other texts for some files."""
        other = Project(self.encoding)
        other.folders, other._buffers = self.folders, dict(self._buffers)
        for name, text in texts.items():
            other._stamps += 1
            other._buffers[name] = Buffer(self.uri(name), text, None, -other._stamps)
        return other

    # ---- all programs ----

    def programs(self) -> Iterator[str]:
        """Yield the open programs, and those on disk below the workspace's folders."""
        seen = set(self.opened)
        yield from self.opened
        for folder in self.folders:
            for place, folders, files in os.walk(folder):
                folders[:] = sorted(each for each in folders if not each.startswith(".") and each not in _SKIPPED)
                for file in sorted(files):
                    name = str(Path(place, file))
                    if file.endswith(".skill") and name not in seen:
                        seen.add(name)
                        yield name
                    if len(seen) >= FILES_LIMIT:
                        return

    def mentioning(self, word: str) -> Iterator[Analysis]:
        """Analyse every program whose text contains a word."""
        for name in list(self.programs()):
            try:
                if word in self.source(name).text:
                    yield self.analysis(name)
            except SkillcError:
                continue

    def inside(self, name: str) -> bool:
        """Return whether a file is open or in a folder of the workspace, so that it may be changed."""
        return name in self._buffers or any(Path(name).is_relative_to(folder) for folder in self.folders)


def stamp_of(path: str | Path) -> tuple[int, int, int] | None:
    """Return time, size in bytes and number of a file; None if it does not exist."""
    try:
        state = os.stat(path)  # noqa: PTH116 -- the name may be no path at all
    except (OSError, ValueError):
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino


def name_of(uri: str) -> str:
    """Return the name of the document with a URI."""
    path = uris.to_fs_path(uri) if uri.startswith("file:") else None
    return os.path.normpath(path) if path else uri


def _without_mark(text: str) -> str:
    """Replace a byte-order mark with a space, which keeps all offsets."""
    return " " + text[1:] if text.startswith(_BYTE_ORDER_MARK) else text
