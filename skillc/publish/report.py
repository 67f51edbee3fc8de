"""Format the output of the publishing verbs: the skills of a manifest, and the changes of an update."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from skillc.artifacts.foreign import topmost, without_junk
from skillc.artifacts.install import InstallTarget
from skillc.dataclass import dataclass
from skillc.diagnostics.render import printable
from skillc.errors import SkillcError
from skillc.plan.lock import Lock
from skillc.publish.changes import Changes
from skillc.publish.destinations import Destination, destinations
from skillc.publish.installing import SkillInstalled
from skillc.publish.kept import ADOPTED, SHOWN, journal_path, read_log
from skillc.publish.manifest import Entry, read_manifest
from skillc.publish.merging import Conflict
from skillc.publish.staging import Adoption, Held, Prepared, changes_of, hold
from skillc.publish.transaction import check_not_quarantined
from skillc.publish.uninstalling import Uninstalled
from skillc.publish.waiting import Staged, pinned_version, staged
from skillc.text import counted, listed

_POINTS = 100
_MOST = 5

SkillState = Literal["up to date", "not adopted", "update staged", "interrupted", "damaged", "quarantined"]


@dataclass(frozen=True, slots=True)
class Listed:
    """One skill of a manifest with its destinations.

    Attributes:
        verdict: of the adopted version's lock, None without one.
        problem: why its versions cannot be read.
    """

    entry: Entry
    state: SkillState
    verdict: str | None
    found: Staged | None
    places: tuple[Destination, ...]
    problem: str = ""


def list_skills(root: Path, environment: Mapping[str, str]) -> list[Listed]:
    """Return the skills of a manifest, which must not be empty.

    Raises:
        SkillcError: the manifest cannot be read or has no skill.
    """
    manifest = read_manifest(root)
    if not manifest.entries:
        manifest.entry("")
    return [_listed(root, entry, environment) for entry in manifest.entries.values()]


def _listed(root: Path, entry: Entry, environment: Mapping[str, str]) -> Listed:
    places, found, verdict, problem = tuple[Destination, ...](), None, None, ""
    try:
        places = destinations(root, entry, environment)
        found = staged(root, entry.name)
        if entry.version is not None:
            version = pinned_version(root, entry)
            version.files()
            lock = version.lock()
            verdict = lock.verdict if lock is not None else None
    except SkillcError as trouble:
        problem = trouble.message
    quarantine = _quarantine(root, entry) if not problem else ""
    state: SkillState = "up to date"
    if journal_path(root, entry.name).exists():
        state = "interrupted"
    elif problem:
        state = "damaged"
    elif quarantine:
        state, problem = "quarantined", quarantine
    elif found is not None:
        state = "update staged"
    elif entry.version is None:
        state = "not adopted"
    return Listed(entry, state, verdict, found, places, problem)


def _quarantine(root: Path, entry: Entry) -> str:
    """Return why the adopted version must not be used any more; empty if it may."""
    try:
        check_not_quarantined(root, entry.name, (entry.version,))
    except SkillcError as problem:
        return problem.message
    return ""


def list_text(root: Path, skills: Sequence[Listed], *, versions: bool = False) -> str:
    """Return the skills as text: a line for each, and one for each destination."""
    lines = list[str]()
    for each in skills:
        version = each.entry.version[:SHOWN] if each.entry.version else "no version"
        kept = ", with kept edits" if each.entry.upstream else ""
        lines.append(f"{each.entry.name}  {version}  {each.verdict or 'unknown verdict'}{kept}   {each.state}")
        if each.problem:
            lines.append(f"  {each.problem}")
        if each.found is not None:
            lines.append(f"  staged {each.found.version.short} by {each.found.by}, {each.found.when}")
        width = max((len(place.agent) for place in each.places), default=0)
        lines += [
            f"  {place.agent:<{width}}  {with_tilde(place.folder)}   {place.problem or place.state}"
            for place in each.places
        ]
        if versions:
            lines += [f"  {line}" for line in _log_lines(root, each.entry.name)]
    return "\n".join(lines)


def _log_lines(root: Path, name: str) -> Iterator[str]:
    for each in read_log(root, name):
        version = str(each.get("version") or each.get("refused") or each.get("edits") or "")[:SHOWN]
        why = f": {printable(str(each['why']))}" if each.get("why") else ""
        yield f"{each.get('when', '')}  {version}  {each['event']} by {each.get('who', '')}{why}"


def list_json(root: Path, skills: Sequence[Listed]) -> dict[str, object]:
    """Return the object that `installed --json` prints."""
    return {
        "format_version": 1,
        "skills": [
            {
                "skill": each.entry.name,
                "source": each.entry.source,
                "version": each.entry.version,
                "upstream": each.entry.upstream,
                "policy": each.entry.policy.who,
                "verdict": each.verdict,
                "state": each.state,
                "problem": each.problem or None,
                "staged": each.found.version.digest if each.found is not None else None,
                "targets": [
                    {
                        "agent": place.agent,
                        "scope": place.scope,
                        "path": str(place.folder),
                        "state": place.state,
                        "version": place.digest,
                    }
                    for place in each.places
                ],
                "log": read_log(root, each.entry.name),
            }
            for each in skills
        ],
    }


# ---- an update ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Update:
    """What `update` found for one skill.

    Attributes:
        found: what is staged, None if there is nothing.
        reasons: why the policy holds it; empty if it adopts it.
        done: its adoption, if the policy adopted it.
    """

    skill: str
    found: Staged | None
    changes: Changes | None = None
    reasons: tuple[str, ...] = ()
    lock: Lock | None = None
    done: Adoption | None = None


def update_of(root: Path, entry: Entry, found: Staged | None, done: Adoption | Held | None = None) -> Update:
    """Return what is staged for a skill, compared with the adopted version.

    Raises:
        SkillcError: a version cannot be read.
    """
    if found is None:
        return Update(entry.name, None)
    if isinstance(done, Adoption):
        return Update(entry.name, found, None, (), done.version.lock(), done)
    reasons = done.reasons if done is not None else hold(root, entry, found)
    return Update(entry.name, found, changes_of(root, found), reasons, found.version.lock())


def update_text(root: Path, update: Update, *, diff: bool = True) -> str:
    """Return one skill's update as text."""
    found = update.found
    if found is None:
        return f"{update.skill}   nothing new"
    if update.done is not None:
        return adoption_text(update.done)
    lines = [f"{update.skill}   staged {found.version.short} by {found.by}"]
    if update.changes is not None:
        lines += changes_lines(update.changes, diff=diff)
    lines += [f"  {line}" for line in evidence_lines(update.lock)]
    if found.sessions:
        keys = ", ".join(map(printable, found.sessions[:_MOST]))
        more = f" and {len(found.sessions) - _MOST:,} more" if len(found.sessions) > _MOST else ""
        lines.append(f"  sessions   {len(found.sessions):,} in its data: {keys}{more}")
    lines += conflict_lines(found.conflicts)
    lines += [f"  held       {printable(reason)}" for reason in update.reasons]
    lines.append(f"  adopt it   skillc adopt {update.skill} --digest {found.version.short}")
    lines.append(f"  or not     skillc reject {update.skill} --why REASON")
    return "\n".join(lines)


def changes_lines(changes: Changes, *, diff: bool = True) -> Iterator[str]:
    """Yield the lines on what a version changes: what may run first, then rules, then the text."""
    for file in changes.files:
        if file.runs:
            yield f"! {file.what} file `{printable(file.path)}`: an agent may run it; read all of it"
    for line in changes.frontmatter:
        yield f"! frontmatter {printable(line)}"
    if changes.about is not None:
        yield f"! description {printable(changes.about[0])!r} -> {printable(changes.about[1])!r}"
    for rule in changes.rules:
        where = f"[{printable(rule.section)}] " if rule.section else ""
        if rule.before is not None:
            yield f"- {where}{_one_line(rule.before)}"
        if rule.after is not None:
            yield f"+ {where}{_one_line(rule.after)}"
    for file in changes.files:
        if not file.runs:
            yield f"{'-' if file.what == 'removed' else '+'} {file.what} file `{printable(file.path)}`"
    if diff and changes.diff:
        yield from map(printable, changes.diff.rstrip("\n").split("\n"))
    share = f", {changes.share:.0f} % of the text" if changes.share is not None else ""
    yield f"  tokens     {changes.tokens[0]:,} -> {changes.tokens[1]:,}{share}"


def evidence_lines(lock: Lock | None) -> Iterator[str]:
    """Yield what the compile measured, and on what."""
    if lock is None:
        yield "verdict    unknown: the skill has no lock"
        return
    test = lock.test
    gain = ""
    if test.gain is not None:
        gain = f", gain {float(test.gain) * _POINTS:+z.1f} points"
        if test.interval is not None:
            low, high = (float(end) * _POINTS for end in test.interval)
            level = f"{float(1 - test.alpha) * 100:.4g} % " if test.alpha is not None else ""
            gain += f", {level}interval {low:+z.1f} to {high:+z.1f}, {counted(test.n, 'pair')}"
    yield f"verdict    {lock.verdict}{gain}"
    data = lock.data
    models = ", ".join(f"{role} {model.model}" for role, model in lock.models.items())
    yield f"data       {data.train:,} train, {data.validation:,} validation, {data.test:,} test"
    if models:
        yield f"models     {printable(models)}"


def conflict_lines(conflicts: Iterable[Conflict]) -> Iterator[str]:
    """Yield the texts of both sides of each conflict."""
    for each in conflicts:
        yield f"conflict in `{printable(each.file)}`"
        for side, text in (("before", each.base), ("edits", each.ours), ("update", each.theirs)):
            yield f"  {side:<6} {_one_line(text) if text is not None else '(removed)'}"


def adoption_text(done: Adoption, word: str = "adopted") -> str:
    """Return the report on an adoption or a rollback."""
    before = f", before {done.before[:SHOWN]}" if done.before else ""
    lines = [f"{done.skill}   {word} {done.version.short}{before}"]
    lines += target_lines(done.targets)
    lines += [f"  the replaced edits are in {copy}" for copy in done.copies]
    return "\n".join(lines)


def prepared_text(ready: Prepared, *, diff: bool = True) -> str:
    """Return what an adoption would change, for the person who decides."""
    lines = [f"{ready.entry.name}   {ready.digest[:SHOWN]}", *changes_lines(ready.changes, diff=diff)]
    if ready.upstream is not None:
        lines.append("  edits by hand are kept in this and later versions; the test in the lock is without them")
    return "\n".join(lines)


def install_lines(done: SkillInstalled, *, dry_run: bool) -> Iterator[str]:
    """Yield the lines on one installed skill."""
    yield from (f"note: {note}" for note in done.notes)
    yield from (line.strip() for line in target_lines(done.targets, dry_run=dry_run))
    if done.staged is not None:
        yield f"note: a newer version is compiled; `skillc update {done.skill}` shows it"


def target_lines(targets: Sequence[InstallTarget], *, dry_run: bool = False) -> Iterator[str]:
    """Yield a line for each destination."""
    past = {"install": "installed", "update": "updated", "replace": "replaced"}
    would = "would be " if dry_run else ""
    width = max((len(each.agent) for each in targets), default=0)
    for each in targets:
        action = would + past[each.action] if each.action in past else "is up to date"
        yield f"  {each.agent:<{width}}  {with_tilde(each.folder)}   {action}"


def uninstalled_text(done: Uninstalled, *, dry_run: bool) -> str:
    """Return the report on a removal."""
    would = "would be " if dry_run else ""
    width = max((len(each.agent) for each in done.places), default=0)
    lines = [
        f"{each.agent:<{width}}  {with_tilde(each.folder)}   "
        + ("is not there" if each.digest is None else f"{would}removed{_except(each)}")
        for each in done.places
    ]
    lines += [f"a copy of what was changed by hand is in {copy}" for copy in done.copies]
    if done.left:
        lines.append(f"`{done.skill}` stays in the manifest with {counted(done.left, 'destination')}")
    else:
        lines.append(f"`{done.skill}` {would or 'is '}no longer in the manifest; its versions stay in `{ADOPTED}`")
    return "\n".join(lines)


def _except(place: Destination) -> str:
    kept = topmost(without_junk(place.foreign))
    return f" except for {listed(kept, 'and', most=_MOST)}, which skillc did not write" if kept else ""


def uninstalled_json(done: Uninstalled, *, dry_run: bool) -> dict[str, object]:
    """Return the object that `uninstall --json` prints."""
    targets = [
        {
            "agent": each.agent,
            "scope": each.scope,
            "path": str(each.folder),
            "state": each.state,
            "kept": list(topmost(without_junk(each.foreign))),
        }
        for each in done.places
    ]
    return {
        "format_version": 1,
        "skill": done.skill,
        "dry_run": dry_run,
        "targets": targets,
        "left": done.left,
        "copies": list(map(str, done.copies)),
    }


def update_json(update: Update) -> dict[str, object]:
    """Return the object of one skill that `update --json` prints."""
    found, changes = update.found, update.changes
    value: dict[str, object] = {"skill": update.skill, "staged": None, "adopted": None}
    if found is not None:
        value |= {"staged": found.version.digest, "by": found.by, "when": found.when}
        value |= {"sessions": list(found.sessions), "conflicts": [_conflict_json(each) for each in found.conflicts]}
        value |= {"held": list(update.reasons), "verdict": update.lock.verdict if update.lock is not None else None}
    if changes is not None:
        value["changes"] = changes_json(changes)
    if update.done is not None:
        value |= {"adopted": update.done.version.digest, "staged": None}
    return value


def changes_json(changes: Changes) -> dict[str, object]:
    """Return what a version changes as an object."""
    return {
        "rules": [{"section": each.section, "before": each.before, "after": each.after} for each in changes.rules],
        "about": list(changes.about) if changes.about is not None else None,
        "frontmatter": list(changes.frontmatter),
        "files": [{"path": each.path, "what": each.what, "runs": each.runs} for each in changes.files],
        "share": changes.share,
        "tokens": list(changes.tokens),
        "diff": changes.diff,
    }


def adoption_json(done: Adoption) -> dict[str, object]:
    """Return the object that `adopt --json` and `rollback --json` print."""
    return {
        "format_version": 1,
        "skill": done.skill,
        "version": done.version.digest,
        "before": done.before,
        "targets": _targets_json(done.targets),
        "copies": list(map(str, done.copies)),
    }


def installed_json(done: SkillInstalled, *, dry_run: bool) -> dict[str, object]:
    """Return the object of one skill that `install --json` prints."""
    return {
        "format_version": 1,
        "skill": done.skill,
        "source": done.source,
        "version": done.version,
        "verdict": done.verdict,
        "staged": done.staged,
        "dry_run": dry_run,
        "targets": _targets_json(done.targets),
        "notes": list(done.notes),
    }


def _targets_json(targets: Sequence[InstallTarget]) -> list[dict[str, str]]:
    return [{"agent": each.agent, "path": str(each.folder), "action": each.action} for each in targets]


def _conflict_json(each: Conflict) -> dict[str, object]:
    return {"file": each.file, "before": each.base, "edits": each.ours, "update": each.theirs}


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def with_tilde(folder: Path) -> str:
    """Return a path below the home folder with `~`."""
    try:
        return f"~/{folder.relative_to(Path.home()).as_posix()}"
    except (ValueError, RuntimeError):
        return str(folder)
