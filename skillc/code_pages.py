"""A page for each diagnostic code, with the findings that its examples yield when they are checked.

`skillc explain` prints the pages; `docs/errors` contains them.
"""

from __future__ import annotations

import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from skillc.dataclass import dataclass
from skillc.diagnostics.codes import CODES, RETIRED, Code
from skillc.diagnostics.diagnostic import Diagnostic
from skillc.diagnostics.render import printable, text

FOLDER = "docs/errors"
"""The folder of the pages, from the root of the repository."""

_PROGRAM = "example.skill"
_EARLIER = "earlier.skill"
_LINES_SHOWN = 24
_FILE_LINES_SHOWN = 3
_LINE_LIMIT = 400
_TERMINAL_WIDTH = 100
_PAGE_WIDTH = 118


@dataclass(frozen=True, slots=True)
class ExampleFinding:
    """The finding that the failing example of a code yields: as a terminal prints it, its severity, and its fix."""

    text: str
    severity: str
    fix: Literal["safe", "unsafe"] | None


def format_examples(code: Code) -> Code:
    """Return the code with both examples formatted; unchanged if one of them has syntax errors."""
    from skillc.syntax.formatting import format_source
    from skillc.syntax.source import Source

    bad, good = (format_source(Source(_PROGRAM, each)).text for each in (code.bad, code.good))
    return replace(code, bad=bad, good=good) if bad is not None and good is not None else code


def findings(code: Code, *, fixed: bool = False) -> tuple[Diagnostic, ...]:
    """Return all findings in an example of a code, by the commands up to the one that reports the code.

    Raises:
        OSError: no temporary folder can be written.
        SkillcError: an example can't be checked at all, which is an error of its page.
    """
    with tempfile.TemporaryDirectory(prefix="skillc-example-") as folder:
        return _check(code, Path(folder), fixed=fixed)


def example_finding(code: Code) -> ExampleFinding | None:
    """Check the failing example; None if the code has none, or if no temporary file can be written."""
    if not code.bad:
        return None
    try:
        with tempfile.TemporaryDirectory(prefix="skillc-example-") as folder:
            found = next(each for each in _check(code, Path(folder)) if each.code == code.code)
            words = text(found).replace(f"{Path(folder)}/", "").replace(f"{Path(folder)}\\", "")
    except OSError:
        return None
    fix: Literal["safe", "unsafe"] | None = None if found.fix is None else "safe" if found.fix.safe else "unsafe"
    return ExampleFinding(words, found.severity.value, fix)


def _check(code: Code, folder: Path, *, fixed: bool = False) -> tuple[Diagnostic, ...]:
    from skillc.frontend import ProgramError, check_data, check_file, estimate, plan_file

    files = {**code.files, **(code.fixed_files if fixed else {}), _PROGRAM: code.good if fixed else code.bad}
    for path, content in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode())
    if code.stage == "versions":
        from skillc.versions.findings import compare_programs

        return tuple(
            each for found in compare_programs([folder / _PROGRAM], str(folder / _EARLIER)) for each in found.findings
        )
    if code.stage == "syntax" and not code.good.startswith("language 1\n"):
        from skillc.syntax.parser import parse
        from skillc.syntax.source import Source

        # A statement or two. `read_source` would reject a zipped skill before the parser does.
        return parse(Source(str(folder / _PROGRAM), files[_PROGRAM])).diagnostics
    checked = check_file(folder / _PROGRAM)
    if code.found_by == "check" or checked.failed:
        return checked.diagnostics
    if code.found_by == "data":
        return check_data(folder / _PROGRAM).kept
    try:
        planned = plan_file(folder / _PROGRAM, runnable=code.found_by == "compile")
        return (*planned.diagnostics, *estimate(planned).diagnostics)
    except ProgramError as error:
        return error.diagnostics


# ---- pages ----------------------------------------------------------------------------------------


def pages() -> dict[str, str]:
    """Return the text of each page and of their index, by path from the root of the repository."""
    found = {f"{FOLDER}/{code.code}.md": _markdown(code) for code in CODES.values()}
    for old, new in RETIRED.items():
        found[f"{FOLDER}/{old}.md"] = f"# {old}\n\nThis is now [{new}]({new}.md): {CODES[new].title}.\n"
    return {f"{FOLDER}/index.md": _index(), **dict(sorted(found.items()))}


def plain(code: Code, finding: ExampleFinding | None) -> str:
    """Return a page for a terminal."""
    parts = []
    for role, words in _page(code, finding):
        if role == "prose":
            parts.append(_filled(words, _TERMINAL_WIDTH))
        elif role in ("title", "caption"):
            parts.append(words)
        else:
            parts.append(f"{words}:" if role == "heading" else textwrap.indent(words, "    "))
    return "\n\n".join(parts)


def _markdown(code: Code) -> str:
    code = format_examples(code)
    parts = []
    for role, words in _page(code, example_finding(code)):
        if role == "prose":
            parts.append(_filled(words, _PAGE_WIDTH))
        elif role == "caption":
            parts.append(words)
        elif role in ("title", "heading"):
            parts.append(f"{'#' if role == 'title' else '##'} {words}")
        else:
            ticks = "````" if "```" in words else "```"
            parts.append(f"{ticks}{role}\n{words}\n{ticks}")
    return "\n\n".join(parts) + "\n"


def _page(code: Code, finding: ExampleFinding | None) -> Iterator[tuple[str, str]]:
    """Yield the parts of a page with their roles: title, prose, heading, caption, or the language of a block."""
    yield "title", f"{code.code}: {code.title}"
    for paragraph in code.explanation.split("\n\n"):
        yield "prose", paragraph
    if source := _describe_source(code, finding):
        yield "prose", f"{source[0].upper()}{source[1:]}."
    if not code.bad:
        return
    for path, content in code.files.items():
        yield from _file("With `{}` beside it:", path, content)
    yield "heading", "Triggers it"
    yield "skill", _cut(code.bad)
    if finding is not None:
        yield "text", finding.text
    yield "heading", "Fixed"
    for path, content in code.fixed_files.items():
        yield from _file("With this `{}`:", path, content)
    yield "skill", _cut(code.good)


def _file(caption: str, path: str, content: str) -> Iterator[tuple[str, str]]:
    language = {"skill": "skill", "jsonl": "json", "md": "markdown"}.get(path.rpartition(".")[2], "text")
    yield "caption", caption.format(path)
    yield language, _cut(content, _LINES_SHOWN if path == _EARLIER else _FILE_LINES_SHOWN)


def _describe_source(code: Code, finding: ExampleFinding | None) -> str:
    """Return the severity, the command that reports the code, and whether `--fix` repairs it, without a full stop."""
    command = {
        "check": "`skillc check`",
        "plan": "`skillc plan`",
        "data": "`skillc check --data`",
        "compile": "`skillc compile`",
    }[code.found_by]
    if code.stage == "versions" and code.bad:
        command = f"`skillc breaking {_PROGRAM} --against {_EARLIER}`"
    if finding is None:
        return f"reported by {command}" if code.found_by != "check" else ""
    article = "an" if finding.severity == "error" else "a"
    repair = {
        "safe": "; `skillc check --fix` repairs it",
        "unsafe": "; `skillc check --fix --unsafe-fixes` applies the suggested fix",
        None: "",
    }[finding.fix]
    return f"{article} {finding.severity}, reported by {command}{repair}"


def _index() -> str:
    lines = [
        "# Index of codes",
        "",
        "Each finding has a code whose meaning never changes. `skillc explain CODE` prints the same pages offline.",
    ]
    for stage, heading in _STAGES.items():
        codes = sorted((code for code in CODES.values() if code.stage == stage), key=lambda code: code.code)
        lines += ["", f"## {heading}", "", "| code | problem |", "|---|---|"]
        lines += [f"| [{code.code}]({code.code}.md) | {code.title.replace('|', chr(92) + '|')} |" for code in codes]
    return "\n".join(lines) + "\n"


_STAGES = {
    "syntax": "Text and syntax",
    "modules": "Modules",
    "names": "Names",
    "types": "Types, units and ranges",
    "data": "Task, skill, data and metrics",
    "gates": "Gates, budgets and the plan",
    "models": "Models",
    "versions": "Versions",
    "internal": "Bugs of skillc",
}


def _cut(text: str, most: int = _LINES_SHOWN) -> str:
    """Return the first lines of a text, shortened and printable."""
    lines = text.strip("\n").split("\n")
    kept = [printable(line[:_LINE_LIMIT]) + " …" * (len(line) > _LINE_LIMIT) for line in lines[:most]]
    if len(lines) > most:
        kept.append(f"… and {len(lines) - most} more lines")
    return "\n".join(kept)


def _filled(paragraph: str, width: int) -> str:
    return textwrap.fill(paragraph, width, break_long_words=False, break_on_hyphens=False)
