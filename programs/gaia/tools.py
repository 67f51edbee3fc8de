"""The tools of the agent: search documents, open one, read an attached file, run Python in the sandbox."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from skillc.data.attachments import BadFile, read_text
from skillc.tasks.scratch import Scratch
from skillc.tools.corpus import Corpus

DATA = Path(__file__).with_name("data")
FILES = DATA / "files"
DOCUMENTS = "documents"
_SCRATCH = Scratch(DATA.parent)


def search(query: str) -> str:
    """Search the documents, and return the passages that fit best, each after the title of its document.

    Args:
        query: words that the document has, such as a name and a subject
    """
    return _corpus().search(query)


def open_document(title: str) -> str:
    """Return the whole text of a document.

    Args:
        title: its title, as a search returned it
    """
    return _corpus().read(title)


def read_file(name: str) -> str:
    """Return the text of an attached file. Use `run_python` for a file that is no text.

    Args:
        name: the name of the file, as the question has it
    """
    path = _attached(name)
    try:
        return read_text(path)
    except BadFile:
        raise ValueError(f"`{name}` is not a text; open it with `run_python`") from None


async def run_python(code: str, file: str = "") -> str:
    """Run a Python program without network, and return what it prints.

    Args:
        code: the whole program; what it is to return it must print
        file: the name of an attached file, which is then beside the program under its last name
    """
    return await _SCRATCH.run(code, [_attached(file)] if file else [])


@cache
def _corpus() -> Corpus:
    folder = DATA / DOCUMENTS
    return Corpus.load(folder if folder.is_dir() else folder.with_suffix(".jsonl"))


def _attached(name: str) -> Path:
    path = (DATA / name).resolve()
    if not path.is_relative_to(FILES.resolve()) or not path.is_file():
        raise FileNotFoundError(f"no file `{name}` is attached")
    return path
