"""A compile as an entry of a knowledge base: a folder of markdown that a plain search finds.

`entries/NAME-DIGEST-RUN.md` has what was learned and what it was worth, `references/NAME/DIGEST/` a copy of the skill,
`INDEX.md` a line for each entry. Each fact is on one line with the words that belong to it, so that `grep` shows it
whole. Entries are only added: one that is there stays as it is. The same compile with the same record gives the same
bytes: nothing in an entry depends on the time of the export, and the date is that of the run's record.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

from skillc.artifact_paths import ArtifactPaths
from skillc.conflict import check_merged
from skillc.dataclass import dataclass
from skillc.document.skill_md import to_yaml
from skillc.errors import SkillcError
from skillc.items.record import SplitName
from skillc.json_values import rounded
from skillc.models.roles import declared_secrets
from skillc.plan.lock import Lock, has_digest
from skillc.redaction import Redactor
from skillc.review.confidence import ARM_WORDS, SPLIT_WORDS, confidence_lines, ends, score
from skillc.review.curve import arm_estimate
from skillc.review.origins import Origin, lineage, skill_lines
from skillc.review.run_view import RunView, read_run
from skillc.review.stored import NO_SKILL
from skillc.run.folder import HOME, RunFolder
from skillc.run.recording import read_events
from skillc.skill_files import read_folder, write_file, write_folder
from skillc.text import cut

ENTRIES, REFERENCES, INDEX = "entries", "references", "INDEX.md"
SCORED: tuple[SplitName, ...] = ("validation", "test")
_SHORT = 12
_MOST = 300
_EXAMPLES = 5
_WAIT = 30.0
_HEAD = "# Compiled skills\n\nOne line for each entry, written by `skillc export kb`.\n\n"


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a knowledge base.

    Attributes:
        known: whether it was there before, and was left as it is.
        missing: what the entry lacks, a sentence each.
    """

    entry: Path
    reference: Path
    index: Path
    known: bool
    missing: tuple[str, ...] = ()


def export_entry(path: Path, base: Path, *, run: str | None = None, environ: Mapping[str, str] | None = None) -> Entry:
    """Add the last compile of a program or of a skill's folder to a knowledge base, without a call of a model.

    Args:
        path: the program, or the folder of its skill, delivered or not.
        base: the folder of the knowledge base; made if it does not exist.
        run: the beginning of the id of another run, whose skill is still there.
        environ: has the values of the secrets that are redacted.

    Raises:
        SkillcError: the program has no finished compile, its skill was edited since, or a file cannot be written.
    """
    view = read_run(path, run)
    lock, paths = view.lock, view.paths
    if lock is None or paths is None:
        raise SkillcError(f"`{view.program}` has no finished compile", hint=f"run `skillc compile {view.program}`")
    check_merged(paths)
    files = read_folder(paths.folder)
    _check_unchanged(paths, lock, files)
    hide = Redactor(declared_secrets(view.plan, os.environ if environ is None else environ))
    digest = _digest_of(files)[:_SHORT]
    entry = base / ENTRIES / f"{view.name}-{digest}-{view.run[:_SHORT]}.md"
    reference = base / REFERENCES / view.name / digest
    kept = {name: _hidden(content, hide) for name, content in files.items()}
    try:
        with _locked(base):
            known = entry.is_file()
            if not known:
                # The entry is last: one that is there has its reference.
                _write_reference(reference, kept)
                below = f"{REFERENCES}/{view.name}/{digest}/SKILL.md"
                text = hide("\n".join([*_front(view, lock, below), "", *_body(view, lock, below)]) + "\n")
                write_file(entry, text.encode())
            write_file(base / INDEX, _index(base).encode())
    except OSError as problem:
        raise SkillcError(f"`{problem.filename or base}` cannot be written: {problem.strerror}") from problem
    return Entry(entry, reference, base / INDEX, known, () if known else view.missing)


def _check_unchanged(paths: ArtifactPaths, lock: Lock, files: Mapping[str, bytes]) -> None:
    for name, digest in lock.files.items():
        head, _, below = name.partition("/")
        if head == paths.name and below and not (below in files and has_digest(files[below], digest)):
            raise SkillcError(
                f"`{paths.folder / below}` was edited since the compile, so its scores are those of another text",
                hint="restore it from git, or compile again",
            )


def _digest_of(files: Mapping[str, bytes]) -> str:
    """Return the hex sha256 of the contents of a folder with their paths, independent of line ends."""
    each = (f"{name}\0{_sha(content)}" for name, content in sorted(files.items()))
    return hashlib.sha256("\n".join(each).encode()).hexdigest()


def _sha(content: bytes) -> str:
    return hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()


def _hidden(content: bytes, hide: Redactor) -> bytes:
    """Return a file without secrets; one that is no text stays as it is."""
    try:
        return hide(content.decode()).encode()
    except UnicodeDecodeError:
        return content


def _write_reference(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the copy of the skill; one with other content is never overwritten.

    Raises:
        SkillcError: the copy that is there was changed.
    """
    for name, content in files.items():
        place = folder / name
        if place.is_file() and place.read_bytes() != content:
            raise SkillcError(f"`{place}` was changed and would be overwritten", hint="restore it, or move it away")
    write_folder(folder, files)


@contextmanager
def _locked(base: Path) -> Iterator[None]:
    """Hold the knowledge base while it is written.

    Raises:
        SkillcError: another process holds it.
    """
    from filelock import FileLock, Timeout

    base.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(base / ".lock", timeout=_WAIT):
            yield
    except Timeout as problem:
        raise SkillcError(f"another process is writing `{base}`", hint="wait for it, then try again") from problem


# ---- front matter ---------------------------------------------------------------------------------


def _front(view: RunView, lock: Lock, reference: str) -> Iterator[str]:
    """Yield the front matter: a key and its value on each line."""
    plan, test = view.plan, lock.test
    split: SplitName = "test" if test.best.mean is not None else "validation"
    arms = test if split == "test" else lock.validation
    estimate = None if arms.best.mean is None else arm_estimate(view, view.best, split, arms.best.mean, arms.best.n)
    interval = None if estimate is None else estimate.interval
    words = [view.name, *view.name.split("-"), plan.goal.name, plan.task.rollout.kind, lock.verdict.replace(" ", "-")]
    types = [field.type.item or field.type for field in plan.task.outputs]
    labels = [label for each in types for label in each.labels]
    accepted = sum(decision.accepted for decision in view.decisions)
    charged = lock.charged
    values: list[tuple[str, object]] = [
        ("title", f"{view.name}: {lock.verdict}"),
        ("skill", view.name),
        ("program", view.program.name),
        ("tags", list(dict.fromkeys(words))),
        ("labels", labels),
        ("verdict", lock.verdict),
        ("delivered", view.delivered),
        ("goal", plan.goal.name),
        ("split", split),
        ("examples", arms.best.n),
        ("initial", _number(arms.initial.mean)),
        ("score", _number(arms.best.mean)),
        ("interval", None if interval is None else [_number(end) for end in interval]),
        ("gain", _number(test.gain)),
        ("gain_interval", None if test.interval is None else [_number(end) for end in test.interval]),
        ("steps", len(view.decisions)),
        ("accepted", accepted),
        ("skill_tokens", _skill_tokens(view)),
        ("tokens", charged.prompt_tokens + charged.reply_tokens),
        ("calls", charged.calls),
        ("cost", f"{float(charged.cost):.4f}"),
        ("date", _date(view)),
        ("models", {role: model.model for role, model in sorted(lock.models.items())}),
        ("run", view.run),
        ("reference", reference),
    ]
    yield "---"
    for key, value in values:
        shown = to_yaml(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield f"{key}: {shown}"
    yield "---"


def _number(value: Fraction | None) -> object:
    return None if value is None else rounded(value)


def _skill_tokens(view: RunView) -> int | None:
    """Return the tokens of the skill as the history has them; None for the initial skill."""
    return next((each.tokens for each in reversed(view.decisions) if each.candidate == view.best), None)


def _date(view: RunView) -> str | None:
    """Return the day, in UTC, on which the run ended by its record; None without a record on this machine."""
    folder = RunFolder(view.program.parent / HOME, view.run).path
    times = [event["at"] for event in read_events(folder) if isinstance(event.get("at"), int | float)]
    if not times:
        return None
    return datetime.datetime.fromtimestamp(max(times), datetime.UTC).date().isoformat()


# ---- body -----------------------------------------------------------------------------------------


def _body(view: RunView, lock: Lock, reference: str) -> Iterator[str]:
    plan = view.plan
    best = view.skills.get(view.best)
    yield f"# {view.name}: {lock.verdict}"
    yield ""
    yield _one_line(best.about if best is not None else plan.skill.about)
    yield ""
    yield f"The skill: [{reference}](../{reference})"
    yield ""
    yield "## Score"
    yield ""
    digests = {"none": NO_SKILL, "initial": view.initial, "best": view.best}
    for split in SCORED:
        found = lock.test if split == "test" else lock.validation
        for name, label in ARM_WORDS.items():
            arm = getattr(found, name)
            if arm.mean is None:
                continue
            interval = ends(arm_estimate(view, digests[name], split, arm.mean, arm.n).interval, plan.goal)
            within = f", 95 % interval {interval}" if interval else ""
            mean = f"{score(arm.mean, plan.goal)} of {arm.n}"
            yield f"- {plan.goal.name} of {label} on {SPLIT_WORDS[split]}: {mean}{within}"
    yield from (f"- {line}" for line in confidence_lines(lock, plan.goal))
    yield f"- the run ended: {lock.stopped}"
    yield ""
    yield "## Rules learned"
    yield ""
    rules = list(_rules(view))
    yield from rules or ["None: no step changed the skill."]
    rejected = list(_rejected(view))
    if rejected:
        yield ""
        yield "## Tried and not kept"
        yield ""
        yield from rejected


def _rules(view: RunView) -> Iterator[str]:
    """Yield each text that a step of the run wrote, with what it cures, on one line."""
    best = view.skills.get(view.best)
    texts = {rule.id: rule.text for section in best.sections for rule in section.rules} if best is not None else {}
    seen = set[str]()
    for line in skill_lines(view, view.best):
        origin = line.origin
        if origin is None or not line.text.strip():
            continue
        key = origin.rule or line.text
        if key in seen:
            continue
        seen.add(key)
        yield f"- {_one_line(texts.get(origin.rule, line.text))}{_effect(origin)}"
    if not seen and best is None:
        for decision in lineage(view, view.best):
            yield from (f"- {_one_line(edit.words)} (decision {decision.number})" for edit in decision.edits)


def _effect(origin: Origin) -> str:
    """Return the step of a text, what its edits cured, and why it was written, in parentheses."""
    parts = [origin.decision.place]
    credits_ = [edit.credit for edit in origin.edits if edit.credit is not None]
    if credits_:
        cured, broke = sum(each.cured for each in credits_), sum(each.broke for each in credits_)
        ids = dict.fromkeys(name for each in credits_ for name in each.cured_ids)
        names = ", ".join(list(ids)[:_EXAMPLES])
        parts.append(f"cured {cured} and broke {broke} on validation" + (f": {names}" if names else ""))
    if origin.edit is not None and origin.edit.rationale:
        parts.append(cut(_one_line(origin.edit.rationale), _MOST))
    return f" ({'; '.join(parts)})"


def _rejected(view: RunView) -> Iterator[str]:
    """Yield each edit that was measured in a candidate and not accepted, with the reason on the same line."""
    for decision in view.decisions:
        if decision.accepted:
            continue
        why = _one_line(decision.brief or decision.reason)
        for edit in decision.edits:
            yield f"- {cut(_one_line(edit.words), _MOST)} ({decision.place}: {why})"


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


# ---- index ----------------------------------------------------------------------------------------


def _index(base: Path) -> str:
    """Return the index of the entries that are there, by skill, date and name."""
    rows = []
    for file in sorted((base / ENTRIES).glob("*.md")):
        front = _front_of(file)
        name, date = str(front.get("skill", file.stem)), str(front.get("date") or "")
        rows.append((name, date, file.name, _index_line(file, front)))
    return _HEAD + "".join(f"{line}\n" for *_, line in sorted(rows))


def _index_line(file: Path, front: Mapping[str, Any]) -> str:
    link = f"- [{file.stem}]({ENTRIES}/{file.name})"
    if not front:
        return link
    means = [front.get(each) for each in ("initial", "score")]
    shown = " → ".join("–" if each is None else f"{each:g}" for each in means)
    tags = front.get("tags")
    words = ", ".join(map(str, tags)) if isinstance(tags, Sequence) and not isinstance(tags, str) else ""
    return f"{link}: {front.get('verdict')}, {front.get('goal')} {shown} on {front.get('split')}; {words}"


def _front_of(file: Path) -> Mapping[str, Any]:
    """Return the front matter of an entry; empty where a person has made it unreadable."""
    import yaml

    try:
        _, front, _ = file.read_text(encoding="utf-8").split("---\n", 2)
        found = yaml.safe_load(front)
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    if not isinstance(found, dict) or not all(
        isinstance(found.get(k), int | float | None) for k in ("initial", "score")
    ):
        return {}
    return found
