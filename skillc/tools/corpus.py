"""Search in a local collection of documents, for tools of agents.

```python
CORPUS = Corpus.load(Path(__file__).with_name("corpus"))

def search(query: str) -> str:
    ...
    return CORPUS.search(query)
```
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from skillc.bm25 import index_of, scores_of, words_of
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.text import shown

PASSAGE = 1_500
"""Characters of a passage, which is what a search finds; a longer paragraph is one passage."""
NOTHING = "nothing found"
_TEXTS = (".md", ".txt")


@dataclass(frozen=True, slots=True)
class Document:
    """A document with a unique title."""

    title: str
    text: str


class Corpus:
    """Documents that are searched by the words of their passages. The index is built at the first search."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._documents = {document.title: document for document in documents}
        self._passages = [
            (document.title, passage) for document in self._documents.values() for passage in _passages(document.text)
        ]

    @classmethod
    def load(cls, path: Path) -> Corpus:
        """Read a JSONL file with the columns `title` and `text`, or all `.md` and `.txt` files below a folder.

        Raises:
            SkillcError: there is no such file or folder, or a line is no document.
        """
        if path.is_dir():
            files = sorted(file for file in path.rglob("*") if file.suffix in _TEXTS and file.is_file())
            return cls(_of_file(file, path) for file in files)
        if not path.is_file():
            raise SkillcError(f"the corpus {shown(path.name)} does not exist", hint=f"create `{path}`")
        lines = path.read_text(encoding="utf-8").splitlines()
        return cls(_of_line(path, number, line) for number, line in enumerate(lines, 1) if line.strip())

    def __len__(self) -> int:
        return len(self._documents)

    def search(self, query: str, most: int = 3) -> str:
        """Return the passages that fit a query best, the best first, each after the title of its document."""
        found = self._best(words_of(query), most)
        return "\n\n".join(f"{title}\n{passage}" for title, passage in found) or NOTHING

    def read(self, title: str) -> str:
        """Return the whole text of a document.

        Raises:
            KeyError: no document has this title.
        """
        wanted = " ".join(title.split()).casefold()
        for document in self._documents.values():
            if " ".join(document.title.split()).casefold() == wanted:
                return document.text
        raise KeyError(f"no document is titled `{title}`; search for it first")

    def _best(self, words: Sequence[str], most: int) -> list[tuple[str, str]]:
        scores = scores_of(self._index, words, len(self._passages))
        # Ties are in the order of the documents, so that every machine finds the same.
        order = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
        return [self._passages[place] for place in order[:most] if scores[place] > 0]

    @cached_property
    def _index(self) -> Any:
        return index_of([words_of(f"{title}\n{passage}") for title, passage in self._passages])


def _passages(text: str) -> Iterator[str]:
    """Yield paragraphs, short neighbours together."""
    held = ""
    for paragraph in (part.strip() for part in text.split("\n\n")):
        if held and len(held) + len(paragraph) > PASSAGE:
            yield held
            held = ""
        held = f"{held}\n\n{paragraph}".strip()
    if held:
        yield held


def _of_file(file: Path, folder: Path) -> Document:
    try:
        return Document(file.relative_to(folder).with_suffix("").as_posix(), file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as problem:
        raise SkillcError(
            f"the document {shown(file.name)} cannot be read: {problem}", hint="save it as UTF-8"
        ) from None


def _of_line(path: Path, number: int, line: str) -> Document:
    try:
        row = json.loads(line)
        return Document(str(row["title"]), str(row["text"]))
    except (ValueError, KeyError, TypeError):
        message = f"line {number} of the corpus {shown(path.name)} is no JSON object with `title` and `text`"
        raise SkillcError(message, hint="write one document on each line") from None
