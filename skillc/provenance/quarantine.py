"""Rules from withdrawn sessions: which compiled skills hold them, and that such a skill is not adopted.

The lock has the sessions of each rule. `skillc sessions withdraw` looks for locks below the current folder and at the
places where compiles registered in the store, and writes `NAME.quarantine.json` beside the lock of each skill that
holds a rule from a withdrawn session. The file has keys of sessions only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from skillc.artifact_paths import LOCK_SUFFIX, ArtifactPaths
from skillc.data.withdrawn import (
    QUARANTINE,
    narrowed_in,
    narrowed_near,
    read_withdrawn,
    withdrawn_json,
    withdrawn_near,
)
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.plan.lock import Lock, read_lock, text_key
from skillc.provenance.rules import rules_in
from skillc.sessions.store import SessionStore
from skillc.text import counted, listed

_TABLE = "CREATE TABLE IF NOT EXISTS compiled (lock TEXT PRIMARY KEY)"


@dataclass(frozen=True, slots=True)
class Held:
    """A rule of a compiled skill that is from withdrawn sessions.

    Attributes:
        text: of the rule; empty if it was changed since the compile.
        sessions: the withdrawn ones.
        cited: those of them that the rule or one that it replaced cites, or all if it cites none; the author of the
            rule could only read the others.
    """

    text: str
    sessions: tuple[str, ...]
    cited: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A compiled skill with rules from withdrawn sessions.

    Attributes:
        rules: that are quarantined.
        spared: that may be affected and are not, because the withdrawal is narrowed to rules that cite the session.
    """

    paths: ArtifactPaths
    rules: tuple[Held, ...]
    spared: tuple[Held, ...] = ()


def quarantine_file(paths: ArtifactPaths) -> Path:
    """Return the file beside the lock that names the withdrawn sessions of a skill."""
    return paths.base / f"{paths.name}{QUARANTINE}"


def register(paths: ArtifactPaths, store: Path) -> None:
    """Note in the store of a project where a skill with rules from its sessions was compiled to."""
    if store.exists():
        with SessionStore(store) as opened:
            opened.execute(_TABLE)
            opened.execute("INSERT OR IGNORE INTO compiled VALUES (?)", (str(paths.lock.resolve()),))


def compiled_skills(folder: Path, store: SessionStore) -> Iterator[ArtifactPaths]:
    """Yield the compiled skills below a folder, and those that registered in the store, each once."""
    seen = set[Path]()
    store.execute(_TABLE)
    registered = [Path(row["lock"]) for row in store.execute("SELECT lock FROM compiled ORDER BY lock")]
    for lock in (*_locks(folder), *registered):
        if lock.is_file() and lock.resolve() not in seen:
            seen.add(lock.resolve())
            yield ArtifactPaths.of_lock(lock)


def _locks(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.is_symlink() and path.name not in ("node_modules", ".git", ".venv"):
            yield from _locks(path)
        elif path.suffix == LOCK_SUFFIX:
            yield path


def held_rules(paths: ArtifactPaths, lock: Lock, withdrawn: Collection[str]) -> tuple[Held, ...]:
    """Return the rules of a skill that are from withdrawn sessions."""
    texts = _texts(paths)
    found = []
    for key, rule in sorted(rules_in(lock).items()):
        gone = tuple(sorted(rule.read.intersection(withdrawn)))
        if gone:
            found.append(Held(texts.get(key, ""), gone, tuple(each for each in gone if each in rule.behind)))
    return tuple(found)


def _quarantined(rules: Iterable[Held], narrowed: Collection[str]) -> tuple[Held, ...]:
    """Return the rules that cite a withdrawn session, or whose author could read one that is not narrowed."""
    return tuple(rule for rule in rules if rule.cited or not set(rule.sessions) <= set(narrowed))


def _texts(paths: ArtifactPaths) -> dict[str, str]:
    """Return the rules and paragraphs in the files of a skill by their key."""
    found: dict[str, str] = {}
    for file in sorted(paths.folder.rglob("*.md")) if paths.folder.is_dir() else []:
        block: list[str] = []
        for line in [*file.read_text(encoding="utf-8", errors="replace").splitlines(), ""]:
            text = line.strip().removeprefix("- ").removeprefix("* ").strip()
            found.setdefault(text_key(text), text)
            if line.strip():
                block.append(text)
            elif block:
                whole = " ".join(block)
                found.setdefault(text_key(whole), whole)
                block = []
    return found


def mark_quarantined(
    skills: Iterable[ArtifactPaths],
    withdrawn: Collection[str],
    *,
    cleared: Collection[str] = (),
    narrowed: Collection[str] = (),
) -> tuple[Quarantined, ...]:
    """Write the withdrawn sessions beside each skill that holds a rule from them, and return these skills.

    The file stays when the skill is compiled without these rules, so that the rows are left out elsewhere as well; only
    a session that is `cleared` is taken out of it. Of `narrowed` ones only the rules that cite them are quarantined.

    Raises:
        SkillcError: a file cannot be read or written.
    """
    found = []
    for paths in skills:
        try:
            lock = read_lock(paths.lock)
        except SkillcError:
            continue  # Not a lock of skillc.
        file = quarantine_file(paths)
        before = set(read_withdrawn(file)) if file.exists() else set()
        narrow_before = narrowed_in([file]) if file.exists() else frozenset[str]()
        rules = held_rules(paths, lock, {*withdrawn, *before} - {*cleared})
        keys = sorted((before - {*cleared}).union(*(rule.sessions for rule in rules)))
        # What is withdrawn now decides; of the others, what the file has.
        narrow = {*narrowed} | (narrow_before - {*withdrawn})
        try:
            if keys and (keys != sorted(before) or narrow & {*keys} != narrow_before):
                write_atomically(file, withdrawn_json(keys, narrow))
            elif not keys:
                file.unlink(missing_ok=True)
        except OSError as problem:
            raise SkillcError(f"`{file}` cannot be written: {problem.strerror}") from problem
        if rules:
            held = _quarantined(rules, narrow)
            found.append(Quarantined(paths, held, tuple(rule for rule in rules if rule not in held)))
    return tuple(found)


def check_adoptable(paths: ArtifactPaths) -> None:
    """Refuse a compiled skill that holds a rule from a withdrawn session. One without a lock has no known sessions.

    Raises:
        SkillcError: it holds one, or the lock or the list of withdrawn sessions cannot be read.
    """
    if not paths.lock.exists():
        return
    lock = read_lock(paths.lock)
    if not lock.sessions:
        return
    file = quarantine_file(paths)
    withdrawn = {*withdrawn_near(paths.base), *(read_withdrawn(file) if file.exists() else ())}
    rules = _quarantined(held_rules(paths, lock, withdrawn), narrowed_near(paths.base))
    if rules:
        first = next((f": `{rule.text}`" for rule in rules if rule.text), "")
        keys = sorted({key for rule in rules for key in rule.sessions})
        raise SkillcError(
            f"`{paths.folder}` is quarantined: {counted(len(rules), 'rule')} from withdrawn "
            f"{'session' if len(keys) == 1 else 'sessions'} {listed(keys, most=3)}{first}",
            hint="compile it again: the rows of withdrawn sessions are left out",
        )
