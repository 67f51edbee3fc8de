"""A page for each diagnostic code: what its examples yield when they are run, and how that is shown.

`skillc explain` prints the pages, `docs/errors` holds them.
"""

from __future__ import annotations

import tempfile
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from skillc.diagnostics.codes import CODES, RETIRED, Code
from skillc.diagnostics.diagnostic import Diagnostic
from skillc.diagnostics.render import printable, text

FOLDER = "docs/errors"
"""Where the pages lie, from the root of the repository."""

_PROGRAM = "example.skill"
_EARLIER = "earlier.skill"
_LINES_SHOWN = 24
_FILE_LINES_SHOWN = 3
_WIDTH = 100

Mend = Literal["safe", "unsafe"]


@dataclass(frozen=True, slots=True)
class Shown:
    """What the failing example of a code yields: the finding as a terminal shows it, how much it weighs, its fix."""

    text: str
    severity: str
    fix: Mend | None


def laid_out(code: Code) -> Code:
    """The code with both examples in the form of `skillc fmt`; as it is where one of them has none, for its syntax."""
    from skillc.syntax.formatting import format_source
    from skillc.syntax.source import Source

    bad, good = (format_source(Source(_PROGRAM, each)).text for each in (code.bad, code.good))
    return replace(code, bad=bad, good=good) if bad is not None and good is not None else code


def findings(code: Code, *, mended: bool = False) -> tuple[Diagnostic, ...]:
    """All that is found in an example of a code, by the verbs up to the one that finds it.

    Raises:
        OSError: no temporary folder can be written.
        SkillcError: an example can't be run at all; a fault of its page.
    """
    with tempfile.TemporaryDirectory(prefix="skillc-example-") as folder:
        return _run(code, Path(folder), mended=mended)


def shown(code: Code) -> Shown | None:
    """What the failing example yields; None for a code that no program shows, or where no file can be written."""
    if not code.bad:
        return None
    try:
        return _shown(code)
    except OSError:
        return None


def _shown(code: Code) -> Shown:
    with tempfile.TemporaryDirectory(prefix="skillc-example-") as folder:
        found = next(each for each in _run(code, Path(folder)) if each.code == code.code)
        fix: Mend | None = None if found.fix is None else "safe" if found.fix.safe else "unsafe"
        words = text(found).replace(str(Path(folder)) + "/", "").replace(str(Path(folder)) + "\\", "")
        return Shown(words, found.severity.value, fix)


def _run(code: Code, folder: Path, *, mended: bool = False) -> tuple[Diagnostic, ...]:
    from skillc.frontend import ProgramError, check_data, check_file, estimate, plan_file

    files = {**code.files, **(code.mended if mended else {}), _PROGRAM: code.good if mended else code.bad}
    for path, content in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode())
    if code.stage == "versions":
        from skillc.versions.findings import compare_programs

        return tuple(
            each for found in compare_programs([folder / _PROGRAM], str(folder / _EARLIER)) for each in found.findings
        )
    if code.stage == "syntax" and code.found_by == "check" and not _is_whole(code.good):
        return _parsed(folder / _PROGRAM)
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


def _is_whole(text: str) -> bool:
    """Whether an example is a whole program; those of syntax are a statement or two."""
    return text.startswith("language 1\n")


def _parsed(path: Path) -> tuple[Diagnostic, ...]:
    from skillc.syntax.parser import parse
    from skillc.syntax.source import Source

    # Not `read_source`, which refuses a zipped skill before the parser does.
    return parse(Source(str(path), path.read_bytes().decode())).diagnostics


# ---- pages ----------------------------------------------------------------------------------------


def pages() -> dict[str, str]:
    """The text of each page and of their index, by its path from the root of the repository."""
    found = {f"{FOLDER}/{code.code}.md": _page(code) for code in CODES.values()}
    for old, new in RETIRED.items():
        found[f"{FOLDER}/{old}.md"] = f"# {old}\n\nThis is now [{new}]({new}.md): {CODES[new].title}.\n"
    return {f"{FOLDER}/index.md": _index(), **dict(sorted(found.items()))}


def plain(code: Code, said: Shown | None) -> str:
    """A page for a terminal."""
    parts = [f"{code.code}: {code.title}", _wrapped(code.explanation)]
    if about := about_finding(code, said):
        parts.append(textwrap.fill(f"{about[0].upper()}{about[1:]}.", _WIDTH))
    if code.bad and code.good:
        for path, content in code.files.items():
            parts += [f"With `{path}` beside it:", _indented(_cut(content, _most_lines(path)))]
        parts += ["This shows it:", _indented(_cut(code.bad))]
        if said is not None:
            parts += ["skillc says:", _indented(said.text)]
        for path, content in code.mended.items():
            parts += [f"With this `{path}`:", _indented(_cut(content, _most_lines(path)))]
        parts += ["This does not:", _indented(_cut(code.good))]
    return "\n\n".join(parts)


def about_finding(code: Code, said: Shown | None) -> str:
    """Severity, who finds it, and whether it can be mended by `check --fix`, in one sentence without its stop."""
    finder = {
        "check": "`skillc check`",
        "plan": "`skillc plan`",
        "data": "`skillc check --data`",
        "compile": "`skillc compile`",
    }[code.found_by]
    if code.stage == "versions" and code.bad:
        finder = f"`skillc breaking {_PROGRAM} --against {_EARLIER}`"
    if said is None:
        return f"found by {finder}" if code.found_by != "check" else ""
    article = "an" if said.severity[0] in "aeiou" else "a"
    mended = {
        "safe": "; `skillc check --fix` mends it",
        "unsafe": "; `skillc check --fix --unsafe-fixes` mends it as the message proposes",
        None: "",
    }[said.fix]
    return f"{article} {said.severity}, found by {finder}{mended}"


def _page(code: Code) -> str:
    code = laid_out(code)
    said = shown(code)
    parts = [f"# {code.code}: {code.title}", "\n\n".join(_filled(p) for p in code.explanation.strip().split("\n\n"))]
    if about := about_finding(code, said):
        parts.append(f"{about[0].upper()}{about[1:]}.")
    if code.bad and code.good and said is not None:
        for path, content in code.files.items():
            parts += [f"With `{path}` beside it:", _fenced(_cut(content, _most_lines(path)), _language(path))]
        parts += ["## This shows it", _fenced(_cut(code.bad), "skill"), _fenced(said.text, "text")]
        parts.append("## This does not")
        for path, content in code.mended.items():
            parts += [f"With this `{path}`:", _fenced(_cut(content, _most_lines(path)), _language(path))]
        parts.append(_fenced(_cut(code.good), "skill"))
    return "\n\n".join(parts) + "\n"


def _index() -> str:
    lines = [
        "# Index of codes",
        "",
        "Each finding has a code, which never changes its meaning. `skillc explain CODE` shows the same pages offline.",
    ]
    for stage, codes in _by_stage(CODES):
        lines += ["", f"## {stage}", "", "| code | what it says |", "|---|---|"]
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
    "internal": "Mistakes of skillc itself",
}


def _by_stage(codes: Mapping[str, Code]) -> Iterable[tuple[str, list[Code]]]:
    for stage, words in _STAGES.items():
        found = sorted((code for code in codes.values() if code.stage == stage), key=lambda code: code.code)
        if found:
            yield words, found


def _language(path: str) -> str:
    return {"skill": "skill", "jsonl": "json", "md": "markdown"}.get(path.rpartition(".")[2], "text")


def _fenced(text: str, language: str) -> str:
    ticks = "````" if "```" in text else "```"
    return f"{ticks}{language}\n{text}\n{ticks}"


def _most_lines(path: str) -> int:
    return _LINES_SHOWN if path == _EARLIER else _FILE_LINES_SHOWN


def _cut(text: str, most: int = _LINES_SHOWN) -> str:
    """The first lines of a text, without what a page can't hold."""
    lines = text.strip("\n").split("\n")
    kept = [printable(line) if len(line) <= 400 else printable(line[:400]) + " …" for line in lines]
    if len(kept) <= most:
        return "\n".join(kept)
    return "\n".join([*kept[:most], f"… and {len(kept) - most} lines more"])


def _filled(paragraph: str) -> str:
    return textwrap.fill(paragraph, 118, break_long_words=False, break_on_hyphens=False)


def _wrapped(text: str) -> str:
    return "\n\n".join(
        textwrap.fill(paragraph, _WIDTH, break_long_words=False, break_on_hyphens=False)
        for paragraph in text.strip().split("\n\n")
    )


def _indented(text: str) -> str:
    return textwrap.indent(text, "    ")


def main() -> None:
    """Writes the pages into the repository whose root is the working folder; pages of no code go."""
    folder = Path(FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    expected = pages()
    for path in folder.glob("*.md"):
        if path.as_posix() not in expected:
            path.unlink()
    for name, page in expected.items():
        Path(name).write_bytes(page.encode())


if __name__ == "__main__":
    main()
