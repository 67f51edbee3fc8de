"""Text of office files, by the ending of their names. `CONVERTERS` declares who reads what.

All but plain text need `pip install "skillc[documents]"`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from pathlib import Path


def from_text(path: Path) -> str:
    """Return a text file as it is."""
    return path.read_text(encoding="utf-8", errors="replace")


def from_pdf(path: Path) -> str:
    """Return the text of each page of a PDF."""
    from pypdf import PdfReader

    pages = (page.extract_text() for page in PdfReader(path).pages)
    return "\n".join(f"[page {number}]\n{text}" for number, text in enumerate(pages, 1))


def from_docx(path: Path) -> str:
    """Return paragraphs and tables of a Word file, in their order."""
    from docx import Document
    from docx.table import Table

    parts = []
    for block in Document(str(path)).iter_inner_content():
        if isinstance(block, Table):
            parts += [" | ".join(cell.text.strip() for cell in row.cells) for row in block.rows]
        elif block.text.strip():
            parts.append(block.text)
    return "\n".join(parts)


def from_pptx(path: Path) -> str:
    """Return the texts and tables of each slide."""
    from pptx import Presentation

    parts = []
    for number, slide in enumerate(Presentation(str(path)).slides, 1):
        parts.append(f"[slide {number}]")
        for shape in slide.shapes:
            if shape.has_text_frame and shape.text_frame.text.strip():
                parts.append(shape.text_frame.text)
            if getattr(shape, "has_table", False):
                parts += [" | ".join(cell.text.strip() for cell in row.cells) for row in shape.table.rows]
    return "\n".join(parts)


def from_xlsx(path: Path) -> str:
    """Return the values of each sheet of a workbook as CSV."""
    from openpyxl import load_workbook

    parts = []
    for sheet in load_workbook(path, data_only=True, read_only=True).worksheets:
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(sheet.iter_rows(values_only=True))
        parts.append(f"[sheet {sheet.title}]\n{out.getvalue()}")
    return "\n".join(parts)


CONVERTERS: Mapping[str, Callable[[Path], str]] = {
    ".pdf": from_pdf,
    ".docx": from_docx,
    ".pptx": from_pptx,
    ".xlsx": from_xlsx,
}


def text_of(path: Path) -> str:
    """Return the text of a file.

    Raises:
        ValueError: the library for this kind of file is missing, or cannot read it.
    """
    try:
        return CONVERTERS.get(path.suffix.lower(), from_text)(path)
    except ImportError:
        raise ValueError(f'`{path.name}` cannot be read here: `pip install "skillc[documents]"`') from None
    except Exception as problem:
        raise ValueError(f"`{path.name}` cannot be read: {type(problem).__name__}: {problem}"[:300]) from None
