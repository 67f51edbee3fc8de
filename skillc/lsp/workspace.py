"""The files of a workspace, which count as they are in the editor where they are open; and places in its units."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from lsprotocol import types
from pygls import uris

from skillc.document.skill_md import sections_of
from skillc.errors import SkillcError
from skillc.frontend import advised
from skillc.language.check import CheckState, analyse
from skillc.language.checked import Checked
from skillc.language.links import Link, links
from skillc.language.modules import Loader
from skillc.language.skill_packages import Package
from skillc.syntax.files import read_source
from skillc.syntax.source import Source, Span

# ---- places ---------------------------------------------------------------------------------------


_LINE_END = re.compile(r"\r\n|\n|\r")

Encoding = types.PositionEncodingKind

UTF_16 = Encoding.Utf16


def _utf8(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _utf16(text: str) -> int:
    return len(text) + sum(c > "\uffff" for c in text)


_UNITS: Mapping[Encoding, Callable[[str], int]] = {Encoding.Utf8: _utf8, Encoding.Utf16: _utf16, Encoding.Utf32: len}


class Positions:
    """The lines of one text, in the units that were agreed with the editor.

    A line ends at a line feed, a carriage return or both, and nowhere else: `str.splitlines` knows eight more ends,
    which an editor takes for characters.
    """

    def __init__(self, text: str, encoding: Encoding = UTF_16) -> None:
        self._text = text
        self._units = _UNITS[encoding]
        self._starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
        self._plain = text.isascii()

    def position(self, offset: int) -> types.Position:
        """The position of a character; one past the end is at the end."""
        offset = min(max(offset, 0), len(self._text))
        line = bisect_right(self._starts, offset) - 1
        start = self._starts[line]
        return types.Position(line, offset - start if self._plain else self._units(self._text[start:offset]))

    def range(self, span: Span) -> types.Range:
        """The range of a span."""
        return types.Range(self.position(span.start), self.position(span.end))

    def offset(self, position: types.Position) -> int:
        """The character at a position; one past the end of a line, or of the text, is at that end.

        A position between the two halves of a character is taken for its beginning.
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
        """The span of a range."""
        start = self.offset(range_.start)
        return Span(start, max(start, self.offset(range_.end)))

    def length(self, span: Span) -> int:
        """How many units a span has, of one line."""
        return span.end - span.start if self._plain else self._units(self._text[span.start : span.end])

    def lines(self, span: Span) -> list[Span]:
        """A span cut at line ends, which semantic tokens may not cross; empty pieces are left out."""
        pieces, start = [], span.start
        for match in _LINE_END.finditer(self._text, span.start, span.end):
            pieces.append(Span(start, match.start()))
            start = match.end()
        pieces.append(Span(start, span.end))
        return [piece for piece in pieces if piece.end > piece.start]


@lru_cache(maxsize=64)
def positions(text: str, encoding: Encoding = UTF_16) -> Positions:
    """The lines of a text; those of the last few texts are kept."""
    return Positions(text, encoding)


# ---- files ----------------------------------------------------------------------------------------


FILES_LIMIT = 5_000
"""Programs of a workspace that are looked through for uses of a name."""

LONG = 20_000
"""Characters of a program above which completion goes by the names of a moment ago."""

_KEPT = 64
_SKIPPED = frozenset({"node_modules", "__pycache__", "build", "dist", "venv"})
_BYTE_ORDER_MARK = "\ufeff"

Stamp = tuple[object, ...] | None


@dataclass(frozen=True, slots=True)
class Buffer:
    """A document that is open in the editor; `uri` is the editor's own spelling."""

    uri: str
    text: str
    version: int | None
    stamp: int


@dataclass(frozen=True, slots=True)
class Analysis:
    """The analysis of one file, read as the main file of a program.

    Attributes:
        read: the files that it was made from, each with the stamp of its version.
    """

    source: Source
    work: CheckState
    checked: Checked
    links: tuple[Link, ...]
    read: Mapping[str, Stamp]

    @property
    def readable(self) -> bool:
        """Whether the syntax has no mistake, so that no name is missing from the links."""
        return not self.work.unread


class Overlay(Loader):
    """Reads files below a folder, as they are in the editor where they are open."""

    def __init__(self, root: Path, project: Project) -> None:
        super().__init__(root, skill_sections=self._sections)
        self._project = project
        self.read: dict[str, Stamp] = {}

    def source(self, path: str, package: Package | None = None) -> Source:
        """The text of a file.

        Raises:
            SkillcError: it can't be read, or a link leads out of the root.
        """
        name = str(self.folder(package).inside(path))
        self.read[name] = self._project.stamp(name)
        buffer = self._project.buffer(name)
        return super().source(path, package) if buffer is None else Source(name, _without_mark(buffer.text))

    def sections(self, path: str, package: Package | None = None) -> Mapping[str, str]:
        """The sections of a markdown skill.

        Raises:
            SkillcError: it can't be read.
        """
        name = str(self.folder(package).inside(path))
        self.read[name] = self._project.stamp(name)
        buffer = self._project.buffer(name)
        return super().sections(path, package) if buffer is None else sections_of(_without_mark(buffer.text))

    def _sections(self, file: Path) -> Mapping[str, str]:
        return sections_of(file.read_text(encoding="utf-8"))


class Project:
    """Open documents, folders, and the analysis of each file, made on demand.

    A file goes by its name: the path of a file, or the address of a document that has none.
    """

    def __init__(self, encoding: Encoding = UTF_16) -> None:
        self.encoding = encoding
        self.folders: tuple[Path, ...] = ()
        self._buffers: dict[str, Buffer] = {}
        self._analyses: OrderedDict[str, Analysis] = OrderedDict()
        self._stamps = 0

    # ---- documents ----

    def open(self, uri: str, text: str, version: int | None) -> str:
        """Take in a document, or a change of it; its name."""
        name = name_of(uri)
        self._stamps += 1
        self._buffers[name] = Buffer(uri, text, version, self._stamps)
        return name

    def close(self, uri: str) -> str:
        """Close a document: from now on its file counts."""
        name = name_of(uri)
        self._buffers.pop(name, None)
        return name

    def buffer(self, name: str) -> Buffer | None:
        """The open document of a name."""
        return self._buffers.get(name)

    @property
    def opened(self) -> tuple[str, ...]:
        """The names of all open documents that hold programs."""
        return tuple(name for name in self._buffers if not name.lower().endswith(".md"))

    def uri(self, name: str) -> str:
        """The address of a file, as the editor spells it where it is open."""
        buffer = self._buffers.get(name)
        if buffer is not None:
            return buffer.uri
        return uris.from_fs_path(name) or name

    def stamp(self, name: str) -> Stamp:
        """The stamp of this version of a file; None if there is no file."""
        buffer = self._buffers.get(name)
        if buffer is not None:
            return ("open", buffer.stamp)
        try:
            state = os.stat(name)  # noqa: PTH116 -- a name may be no path at all
        except (OSError, ValueError):
            return None
        return (state.st_mtime_ns, state.st_size, state.st_ino)

    def source(self, name: str) -> Source:
        """The text of a file.

        Raises:
            SkillcError: it can't be read.
        """
        buffer = self._buffers.get(name)
        return read_source(Path(name)) if buffer is None else Source(name, _without_mark(buffer.text))

    def positions(self, source: Source) -> Positions:
        """The lines of a file, in the editor's units."""
        return positions(source.text, self.encoding)

    def location(self, source: Source, span: Span) -> types.Location:
        """A place as the editor wants it."""
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
        """Analyse a file; reuse an older analysis of a long one, which takes longer than typing.

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
            source, work, advised(work), links(work.module, work.program), {source.name: stamp, **loader.read}
        )

    def _root(self, name: str) -> Path:
        if Path(name).is_absolute():
            return Path(name).parent
        # A document that was never saved uses files of the first folder.
        return self.folders[0] if self.folders else Path.cwd()

    def with_texts(self, texts: Mapping[str, str]) -> Project:
        """The same workspace where some files have other texts."""
        other = Project(self.encoding)
        other.folders, other._buffers = self.folders, dict(self._buffers)
        for name, text in texts.items():
            other._stamps += 1
            other._buffers[name] = Buffer(self.uri(name), text, None, -other._stamps)
        return other

    # ---- all programs ----

    def programs(self) -> Iterator[str]:
        """The open programs, and those on the disk below the workspace's folders."""
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
        """Whether a file may be changed: it is open, or in a folder of the workspace."""
        return name in self._buffers or any(Path(name).is_relative_to(folder) for folder in self.folders)


def name_of(uri: str) -> str:
    """The name of the document at an address."""
    path = uris.to_fs_path(uri) if uri.startswith("file:") else None
    return os.path.normpath(path) if path else uri


def _without_mark(text: str) -> str:
    """The text with a blank in place of a byte-order mark, so that every offset stays."""
    return " " + text[1:] if text.startswith(_BYTE_ORDER_MARK) else text
