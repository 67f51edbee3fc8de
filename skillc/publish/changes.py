"""Compare two versions of a skill by meaning: rules, frontmatter and files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Literal

from skillc.artifact_paths import SKILL_FILE, is_script
from skillc.dataclass import dataclass
from skillc.diagnostics.render import difference
from skillc.document.change import common_tokens
from skillc.document.folder import document_from
from skillc.document.markdown import blocks_of
from skillc.document.skill import Document, section_title
from skillc.plan.lock import Lock, has_digest
from skillc.skill_files import with_plain_ends
from skillc.tokens import count_tokens, split_tokens

_SAME = 0.5

Files = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class RuleChange:
    """A rule that is new (`before` is None), removed (`after` is None) or changed, with the section it is in."""

    section: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file of the folder that is new, changed or removed.

    Attributes:
        runs: whether an agent may run it, or it may contain anything: every file that is not markdown.
    """

    path: str
    what: Literal["new", "changed", "removed"]
    runs: bool


@dataclass(frozen=True, slots=True)
class Changes:
    """What an update changes.

    Attributes:
        about: the description before and after, None if unchanged. Agents decide by it when to open the skill.
        frontmatter: lines of other keys that are gone (`-`) or new (`+`).
        share: tokens deleted and inserted in all markdown, in % of the present ones; None without a present version.
        tokens: of the markdown before and after.
        diff: all text files as a unified diff.
    """

    rules: tuple[RuleChange, ...]
    about: tuple[str, str] | None
    frontmatter: tuple[str, ...]
    files: tuple[FileChange, ...]
    share: float | None
    tokens: tuple[int, int]
    diff: str


def changes_between(before: Files, after: Files) -> Changes:
    """Compare two versions by their files; `before` is empty for a first version.

    Raises:
        SkillcError: one of them is no skill.
    """
    old = document_from(before) if before else Document("", "", ())
    new = document_from(after)
    about = (old.about, new.about) if old.about != new.about else None
    gone, come = (Counter(each.frontmatter.splitlines()) for each in (old, new))
    lines = [*(f"- {line}" for line in gone - come), *(f"+ {line}" for line in come - gone)]
    texts = [split_tokens(_markdown(each)) for each in (before, after)]
    common = common_tokens(*texts)
    moved = len(texts[0]) + len(texts[1]) - 2 * common
    return Changes(
        tuple(_rules(old, new)),
        about,
        tuple(lines),
        tuple(_files(before, after)),
        100 * moved / len(texts[0]) if before else None,
        (count_tokens(_markdown(before)), count_tokens(_markdown(after))),
        text_diff(before, after),
    )


def text_diff(before: Files, after: Files, prefix: str = "") -> str:
    """Return the unified diff of all files; of one that is not text, a line."""
    return "".join(
        _file_diff(prefix + name, before.get(name, b""), after.get(name, b"")) for name in sorted({*before, *after})
    )


def is_tested(files: Files, name: str, lock: Lock) -> bool:
    """Return whether the test in a lock is of exactly these files."""
    own = {key.removeprefix(f"{name}/"): digest for key, digest in lock.files.items() if key.startswith(f"{name}/")}
    return SKILL_FILE in own and all(key in files and has_digest(files[key], own[key]) for key in own)


def _rules(old: Document, new: Document) -> list[RuleChange]:
    before, after = _by_section(old), _by_section(new)
    found = []
    for section in dict.fromkeys([*after, *before]):
        gone = list((Counter(before.get(section, ())) - Counter(after.get(section, ()))).elements())
        for text in (Counter(after.get(section, ())) - Counter(before.get(section, ()))).elements():
            alike = max(((SequenceMatcher(None, each, text, False).ratio(), each) for each in gone), default=(0.0, ""))
            if alike[0] >= _SAME:
                gone.remove(alike[1])
                found.append(RuleChange(section, alike[1], text))
            else:
                found.append(RuleChange(section, None, text))
        found += [RuleChange(section, text, None) for text in gone]
    return found


def _by_section(document: Document) -> dict[str, list[str]]:
    return {
        section_title(section) or "": [block.text for block in blocks_of(section.body)]
        for section in document.sections
        if not section.is_script
    }


def _files(before: Files, after: Files) -> list[FileChange]:
    found = []
    for name in sorted({*before, *after} - {SKILL_FILE}):
        old, new = before.get(name), after.get(name)
        if old is None or new is None or with_plain_ends(old) != with_plain_ends(new):
            what: Literal["new", "changed", "removed"] = (
                "new" if old is None else "removed" if new is None else "changed"
            )
            content = new if new is not None else b""
            runs = is_script(name) or not name.endswith(".md") or content.startswith(b"#!")
            found.append(FileChange(name, what, runs and what != "removed"))
    return found


def _markdown(files: Files) -> str:
    return "\n".join(
        content.decode(errors="replace") for name, content in sorted(files.items()) if name.endswith(".md")
    )


def _file_diff(name: str, before: bytes, after: bytes) -> str:
    if with_plain_ends(before) == with_plain_ends(after):
        return ""
    try:
        texts = [with_plain_ends(each).decode() for each in (before, after)]
    except UnicodeDecodeError:
        return f"{name} is no text and differs: {len(before):,} bytes before, {len(after):,} after\n"
    return difference(name, *texts)
