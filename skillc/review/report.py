"""`skillc report`: a run as one HTML page that needs no network, or as a short markdown summary."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from skillc.review.packing import Compared, compared, pack
from skillc.review.page import page_of
from skillc.review.run_view import RunView
from skillc.review.stored import NO_SKILL

LARGEST = 3_000_000
"""Characters of a page."""
_MOST_PACKED = 2_000_000
_LEAST_PACKED = 200_000
_TEMPLATES = Path(__file__).parent / "templates"
_SHORT = 8


def html_report(view: RunView) -> str:
    """Return the page. Everything that is from data or a model is escaped, and only the page's own script may run."""
    found = compared(view)
    page = page_of(view, found)
    values = {
        "page": page,
        "index": _index(view, found),
        "style": Markup(_text("report.css")),  # a file of skillc
        "style_hash": _hash(_text("report.css")),
        "script": Markup(_text("report.js")),  # a file of skillc
        "script_hash": _hash(_text("report.js")),
    }
    template = _environment().get_template("report.html.j2")
    page["compared_note"] = ""
    without = template.render(**values, rollouts="")
    most = max(_LEAST_PACKED, min(_MOST_PACKED, LARGEST - 20_000 - len(without.encode())))
    packed = pack(view, found, most)
    note = f"{packed.kept:,} rollouts, the first of each example under each skill."
    if packed.kept < packed.of:
        left = packed.of - packed.kept
        note += f" {left:,} more are left out to keep this page small."
    page["compared_note"] = f"{note} Steps that differ have a mark at their side."
    return template.render(**values, rollouts=packed.text)


def _index(view: RunView, found: Compared) -> dict[str, Any]:
    """Return the names that the page's script offers."""
    results = {each.candidate: each.result for each in view.decisions if each.candidate}
    names = []
    for skill in found.skills:
        if skill == NO_SKILL:
            names.append("no skill")
            continue
        words = [view.place(skill), results.get(skill, ""), skill[:_SHORT]]
        words += ["initial skill"] if skill == view.initial else []
        words += ["compiled skill"] if skill == view.best else []
        names.append(" · ".join(word for word in words if word))
    labels = [f"{view.examples[name].split} {name}" for name in found.examples]

    def place(skill: str) -> int:
        return found.skills.index(skill) if skill in found.skills else 0

    return {
        "skills": [{"name": name} for name in names],
        "examples": [{"name": label} for label in labels],
        "first": _first(view, found),
        "left": place(view.initial),
        "right": place(view.best),
    }


def _first(view: RunView, found: Compared) -> int:
    """Return the first example whose score differs between the initial and the compiled skill."""
    for i, name in enumerate(found.examples):
        initial, best = view.outcome(view.initial, name), view.outcome(view.best, name)
        if initial is not None and best is not None and initial.cells != best.cells:
            return i
    return 0


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _text(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return the hash by which a content security policy names an inline text."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
