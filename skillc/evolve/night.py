"""One night: harvest, measure, watch for drift, compile, challenge, stage. Each part is a step that a kill repeats."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from skillc.artifact_paths import ArtifactPaths
from skillc.data.dataset import Dataset, load_data
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.evolve.drift import DriftFound, judge_drift
from skillc.evolve.harvest import (
    NightRow,
    examples_of_rows,
    harvest,
    joined,
    label_new,
    read_rows,
    rows_file,
    usable_rows,
)
from skillc.evolve.ledger import Json, Ledger
from skillc.evolve.locks import changed_models, locked_rates, locked_score, write_verdict
from skillc.evolve.measure import NightBudget, Open, compile_from, declared_skill, measure, measured_skill
from skillc.evolve.shelf import Delivered, Shelf
from skillc.evolve.spending import judge_challenger, share
from skillc.frontend import Planned
from skillc.language.loop import EvolvePlan
from skillc.outcomes import MICRO
from skillc.plan.schema import Plan
from skillc.sessions.importing import import_sessions
from skillc.sessions.readers.registry import FORMATS, default_places
from skillc.sessions.store import DEFAULT, SessionStore
from skillc.text import counted

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class NightJob:
    """What a night works on.

    Attributes:
        store: the file with the sessions.
        shelf: the delivered versions.
    """

    planned: Planned
    settings: EvolvePlan
    store: Path
    shelf: Shelf
    ledger: Ledger

    @property
    def plan(self) -> Plan:
        """The program."""
        return self.planned.plan

    @property
    def home(self) -> Path:
        """The `.skillc` folder."""
        return self.planned.root / ".skillc"


def prepare_night(planned: Planned) -> NightJob:
    """Resolve what a night of a program works on.

    Raises:
        SkillcError: the program has no `evolve` block, or no manifest has its skill.
    """
    plan = planned.plan
    if plan.evolve is None:
        raise SkillcError(
            f"`{planned.path}` has no `evolve` block, so a night has no budget",
            hint=f"`skillc evolve {planned.path} --init` adds one",
        )
    shelf = Shelf.of(planned.path, plan.skill.artifact)
    ledger = Ledger.of(planned.root, plan.skill.artifact)
    return NightJob(planned, plan.evolve, planned.root / DEFAULT, shelf, ledger)


def run_night(job: NightJob, open_: Open, *, date: str, again: bool = False) -> Json:
    """Run a night, or finish the one that was left open, and return its record.

    Args:
        job: what it works on.
        open_: opens models under a cap.
        date: of today, as `2026-11-23`.
        again: whether a second night on the same date may run, with a budget of its own.

    Raises:
        NightRunningError: another one is running.
        NightStoppedError: it was interrupted, or a model is unreachable; the same call resumes it.
        SkillcError: a file, a model or the data cannot be used.
    """
    with job.ledger.locked():
        records = job.ledger.records()
        is_open = _is_open(job.ledger, records)
        # A clock that was put back must not give a date a second night.
        if not is_open and not again and any(each["date"] == date for each in records):
            return {**records[-1], "repeated": True}
        number, _ = job.ledger.open_night(date)
        night = _Night(job, open_, number, job.ledger.date_of(number), records)
        return job.ledger.close_night(number, night.run())


def _is_open(ledger: Ledger, records: Sequence[Json]) -> bool:
    began = [each["night"] for each in ledger.events() if each["event"] == "began"]
    return bool(began) and began[-1] > (records[-1]["night"] if records else 0)


class _Night:
    """The steps of one night over what the earlier ones have left."""

    def __init__(self, job: NightJob, open_: Open, number: int, date: str, records: Sequence[Json]) -> None:
        self._job, self._open, self._number, self._date = job, open_, number, date
        self._records = list(records)
        self._plan = job.plan
        self._budget = NightBudget(job.plan)

    def _step(self, name: str, work: Any) -> Json:
        return self._job.ledger.step(self._number, name, work)

    def run(self) -> Json:
        """Run all steps and return the record."""
        job = self._job
        began = self._step("began", self._begin)
        # The version that was delivered when the night began, also if this night has replaced it.
        paths = ArtifactPaths(job.planned.root / began["base"], self._plan.skill.artifact)
        before = Delivered.of(began["version"], paths)
        gathered = self._step("harvest", self._harvest)
        self._own = load_data(self._plan, job.planned.root)
        rows = self._usable()
        self._first = _first_nights(rows, self._own, self._plan)
        self._examples = examples_of_rows(
            self._plan, job.planned.root, rows, job.ledger.place(self._number) / "rows.jsonl"
        )
        record: Json = {
            "format_version": FORMAT_VERSION,
            "skill": self._plan.skill.artifact,
            "night": self._number,
            "date": self._date,
            "version": before.digest,
            **gathered,
            "scores": {},
            "replayed": {},
            "replayed_before": {},
            "compiled": None,
            "challenge": None,
            "offered": None,
            "rolled_back": None,
            "waiting": None,
            "clock": max((each["date"] for each in self._records if each["date"] > self._date), default=None),
            "notes": [],
        }
        pending = _pending(self._records, before.digest)
        record = self._measured(record, rows, before, gathered)
        drift, record = self._drifted(record, rows, before)
        if record["rolled_back"] and record["rolled_back"]["to"]:
            pending = None
        elif pending is None:
            pending, record = self._compiled(record, rows, before, drift)
        if pending is not None:
            record = self._challenged(record, rows, before, pending)
        error = float(self._job.settings.error)
        spent = [share(number, error) for number in self._challengers()]
        record["spent"] = self._budget.as_json()
        record["error"] = {
            "declared": error,
            "spent": sum(spent),
            "challengers": len(spent),
            "next": share(len(spent) + 1, error),
        }
        if not (record["notes"] or record["compiled"] or self._budget.spent.calls):
            record["notes"] = ["nothing new"]
        return record

    def _begin(self) -> Json:
        found = self._job.shelf.delivered()
        return {"version": found.digest, "base": _relative(found.paths.base, self._job.planned.root)}

    # ---- harvest ---------------------------------------------------------------------------------

    def _harvest(self) -> Json:
        job, root = self._job, self._job.planned.root
        with SessionStore(job.store, create=True) as store:
            places = session_places(job.settings.sessions, root)
            imported = import_sessions(places, store) if places else None
            labelled = label_new(self._plan, store)
            own = load_data(self._plan, root)
            found = harvest(job.planned.path, self._plan, own, store, self._number)
            new = [row for row in found.rows if row.night == self._number]
        recurring = found.recurring()
        return {
            "sessions": {
                "read": imported.sessions if imported else 0,
                "new": imported.new if imported else 0,
                "usable": found.usable,
                "labelled": labelled,
                "apart": dict(sorted(found.apart.items())),
            },
            "rows": {
                "added": len(new),
                **{side: sum(row.side == side for row in new) for side in ("train", "validation", "test")},
                "left_out": dict(sorted(found.left_out.items())),
            },
            "recurring": sorted(recurring & {row.cluster for row in found.rows}),
        }

    def _usable(self) -> tuple[NightRow, ...]:
        with SessionStore(self._job.store, create=True) as store:
            return usable_rows(read_rows(rows_file(self._job.planned.path)), store)

    # ---- measure and drift -----------------------------------------------------------------------

    def _measured(self, record: Json, rows: Sequence[NightRow], before: Delivered, gathered: Json) -> Json:
        """Measure the current skill on rows that no night has measured, and replay what another version got wrong.

        Recurring tasks and failed sessions come first; recurring tasks are replayed under each version once.
        """
        known = self._latest(record)
        recurring = set(gathered["recurring"])
        top = round(self._plan.goal.high * MICRO)
        todo = sorted(
            (row for row in rows if row.id not in known),
            key=lambda row: (row.cluster not in recurring and not row.failed, row.night, row.id),
        )
        again = [
            row
            for row in rows
            if row.id in known
            and known[row.id][1] != before.digest
            and (known[row.id][0] < top or row.cluster in recurring)
        ]
        if not todo and not again:
            return record
        found = self._step("measured", lambda: self._measure([*todo, *again], before))
        self._budget.add(found["spent"])
        notes = [f"the cap on {found['stopped']} ended the measurement"] if found["stopped"] else []
        new = {name: value for name, value in found["scores"].items() if name not in known}
        old = {name: value for name, value in found["scores"].items() if name in known}
        earlier = {name: known[name][0] for name in old}
        return {
            **record,
            "scores": new,
            "replayed": old,
            "replayed_before": earlier,
            "notes": [*record["notes"], *notes],
        }

    def _latest(self, record: Json) -> dict[str, tuple[int, str]]:
        """Return the last score of each measured row, and the version that had it."""
        return {
            name: (value, str(each["version"]))
            for each in (*self._records, record)
            for part in ("scores", "replayed")
            for name, value in each[part].items()
        }

    def _measure(self, todo: Sequence[NightRow], before: Delivered) -> Json:
        capped = self._budget.capped()
        if capped is None:
            return {"scores": {}, "spent": {}, "stopped": "budget"}
        skill = measured_skill(self._plan, before.paths)
        examples = [self._examples[row.id] for row in todo]
        found = measure(self._job.planned, capped, [skill], examples, self._open, "new rows")
        scores = {name: value for name, value in found.by_skill[0].items() if value is not None}
        return {"scores": scores, "spent": dict(found.spent), "stopped": found.stopped}

    def _drifted(self, record: Json, rows: Sequence[NightRow], before: Delivered) -> tuple[DriftFound, Json]:
        """Judge drift on all nights of the delivered version, and roll back once if it has fallen."""
        nights = self._fresh_scores([*_since(self._records, before.digest), record], rows)
        goal = self._plan.goal
        drift = judge_drift(
            nights,
            locked=locked_score(before.lock),
            limit=self._job.settings.drift,
            low=goal.low,
            high=goal.high,
            rates=goal.rates,
            locked_rates=locked_rates(before.lock),
        )
        changed = changed_models(self._plan, before.lock)
        record = {**record, "drift": {**asdict(drift), "fallen_by": drift.fallen_by, "changed_models": changed}}
        if drift.word != "fallen":
            return drift, record
        if any(each["rolled_back"] for each in self._records if _same_stay(self._records, each, before.digest)):
            note = "the skill is still below its lock's score; it was reported before"
            return drift, {**record, "notes": [*record["notes"], note]}
        why = f"fell by {_shown(drift.fallen_by, goal.unit)} below its lock's score on {drift.rows} new tasks"
        return drift, {**record, "rolled_back": self._step("rolled_back", lambda: self._roll_back(before, why))}

    def _roll_back(self, before: Delivered, why: str) -> Json:
        if any((each["rolled_back"] or {}).get("to") == before.digest for each in self._records):
            return {"from": before.digest, "to": None, "why": why, "problem": "it was itself rolled back to"}
        try:
            return {"from": before.digest, "to": self._job.shelf.roll_back(before.digest, why), "why": why}
        except SkillcError as problem:
            return {"from": before.digest, "to": None, "why": why, "problem": problem.message}

    def _fresh_scores(self, records: Iterable[Json], rows: Sequence[NightRow]) -> list[list[float]]:
        """Return for each night the mean goal by cluster, of clusters that it was the first to see."""
        by_id = {row.id: row for row in rows}
        found = []
        for each in records:
            clusters = defaultdict[str, list[int]](list)
            for name, value in each["scores"].items():
                row = by_id.get(name)
                if row is not None and self._first[row.cluster] == row.night:
                    clusters[row.cluster].append(value)
            found.append([sum(values) / len(values) / MICRO for _, values in sorted(clusters.items())])
        return found

    # ---- compile ---------------------------------------------------------------------------------

    def _compiled(
        self, record: Json, rows: Sequence[NightRow], before: Delivered, drift: DriftFound
    ) -> tuple[Json | None, Json]:
        """Compile from the current skill if there is something to learn; return the challenger that came out."""

        def noted(note: str) -> tuple[None, Json]:
            return None, {**record, "notes": [*record["notes"], note]}

        if (waiting := self._job.shelf.waiting()) is not None:
            record = {**record, "waiting": waiting}
            return noted(f"version {waiting[:12]} waits for a person; nothing is compiled until then")
        last = max((each["night"] for each in self._records if (each["compiled"] or {}).get("ran")), default=0)
        latest, top = self._latest(record), round(self._plan.goal.high * MICRO)
        learnable = [row for row in rows if row.side == "train" and (row.night > last or row.id in record["replayed"])]
        failing = [row for row in learnable if row.id in latest and latest[row.id][0] < top]
        if not failing and drift.word in ("no drift", "no reference"):
            seen = learnable and (record["scores"] or record["replayed"])
            return noted("the current skill is right on all new training rows") if seen else (None, record)
        found = self._step("compiled", lambda: self._compile(rows, before, len(failing)))
        self._budget.add(found["spent"])
        record = {**record, "compiled": found}
        if not found["changed"]:
            return None, record
        number = len(self._challengers()) + 1
        mine = {"event": "challenger", "night": self._number, "share": share(number, float(self._job.settings.error))}
        if self._number not in {each["night"] for each in self._events("challenger")}:
            self._job.ledger.append({**mine, "challenger": number})
        else:
            number = next(each["challenger"] for each in self._events("challenger") if each["night"] == self._number)
        return {"challenger": number, "from_night": self._number, "base": found["base"]}, record

    def _compile(self, rows: Sequence[NightRow], before: Delivered, failing: int) -> Json:
        job, output = self._job, self._job.ledger.place(self._number) / "skills"
        capped = self._budget.capped()
        base = _relative(output, job.planned.root)
        none: Json = {
            "changed": False,
            "tried": 0,
            "ran": False,
            "base": base,
            "failing": failing,
            "spent": {},
        }
        if capped is None:
            return {**none, "stopped": "budget"}
        dataset = joined(self._own, rows, self._examples, self._plan.data.seed)
        start = declared_skill(job.planned, before.paths)
        found = compile_from(job.planned, capped, dataset, start, output, job.home, self._open)
        return {
            **none,
            "changed": found.changed,
            "tried": found.tried,
            "unexplained": list(found.unexplained),
            "ran": found.lock is not None,
            "spent": dict(found.spent),
            "stopped": found.stopped,
            "left_out": list(found.left_out),
            "spared": found.spared,
        }

    def _events(self, name: str) -> list[Json]:
        return [each for each in self._job.ledger.events() if each["event"] == name]

    def _challengers(self) -> list[int]:
        return [int(each["challenger"]) for each in self._events("challenger")]

    # ---- challenge -------------------------------------------------------------------------------

    def _challenged(self, record: Json, rows: Sequence[NightRow], before: Delivered, pending: Json) -> Json:
        """Compare a challenger with the current skill on test rows that no night has looked at."""
        paths = ArtifactPaths(self._job.planned.root / pending["base"], self._plan.skill.artifact)
        looked = {name for each in self._records for name in (each["challenge"] or {}).get("differences", {})}
        fresh = [row for row in rows if row.side == "test" and row.cluster not in looked and self._first[row.cluster]]
        found = self._step("challenge", lambda: self._look(fresh, before, paths))
        self._budget.add(found["spent"])
        earlier = [
            each["challenge"]
            for each in self._records
            if each["challenge"] and each["challenge"]["challenger"] == pending["challenger"]
        ]
        nights = [*(each["differences"] for each in earlier), found["differences"]]
        goal, error = self._plan.goal, float(self._job.settings.error)
        width = float(goal.high - goal.low)
        values = [[value / MICRO for _, value in sorted(each.items())] for each in nights]
        judged = judge_challenger(values, number=pending["challenger"], error=error, width=width, rates=goal.rates)
        challenge = {**asdict(judged), **pending, **found}
        record = {**record, "challenge": challenge}
        if judged.word != "accepted":
            return record
        if (behind := self._withdrawn(pending, rows)) is not None:
            record["challenge"]["word"] = "dropped"
            return {**record, "notes": [*record["notes"], behind]}
        all_looks = [*earlier, found]
        write_verdict(paths, before.lock, judged, all_looks, [self._examples[r.id] for r in rows if r.side == "test"])
        offered = self._step("offered", lambda: asdict(self._job.shelf.offer(paths, before.digest)))
        return {**record, "offered": offered}

    def _withdrawn(self, pending: Json, rows: Sequence[NightRow]) -> str | None:
        """Return why a challenger must not be offered: a session that it was trained on was set apart since."""
        usable = {row.id for row in rows}
        behind = [
            row
            for row in read_rows(rows_file(self._job.planned.path))
            if row.night <= pending["from_night"] and row.side != "test" and row.id not in usable
        ]
        trained = _trained_ids(self._job.ledger.place(pending["from_night"]) / "rows.jsonl")
        lost = [row for row in behind if row.id in trained]
        if not lost:
            return None
        return f"the challenger is dropped: {counted(len(lost), 'session')} that it was trained on was set apart since"

    def _look(self, fresh: Sequence[NightRow], before: Delivered, paths: ArtifactPaths) -> Json:
        none: Json = {"differences": {}, "spent": {}, "stopped": None, "pairs": 0}
        capped = self._budget.capped()
        if not fresh or capped is None:
            return {**none, "stopped": None if fresh == [] else "budget"}
        skills = [measured_skill(self._plan, each) for each in (before.paths, paths)]
        examples = [self._examples[row.id] for row in sorted(fresh, key=lambda row: (row.night, row.cluster, row.id))]
        found = measure(self._job.planned, capped, skills, examples, self._open, "challenge")
        low, high = (round(end * MICRO) for end in (self._plan.goal.low, self._plan.goal.high))
        pairs = defaultdict[str, list[tuple[int | None, int | None]]](list)
        for row in fresh:
            pairs[row.cluster].append((found.by_skill[0][row.id], found.by_skill[1][row.id]))
        differences: dict[str, float] = {}
        sums = [0, 0]
        used = 0
        for cluster, each in sorted(pairs.items()):
            missing = any(None in pair for pair in each)
            if missing and (found.stopped or all(pair == (None, None) for pair in each)):
                # It stays for another night.
                continue
            # A row that failed under one skill only counts against the challenger.
            whole = [(high if a is None else a, low if b is None else b) for a, b in each]
            differences[cluster] = sum(b - a for a, b in whole) / len(whole)
            sums[0] += sum(a for a, _ in whole)
            sums[1] += sum(b for _, b in whole)
            used += len(whole)
        return {
            "differences": differences,
            "sums": sums,
            "pairs": used,
            "spent": dict(found.spent),
            "stopped": found.stopped,
        }


# ---- parts ----------------------------------------------------------------------------------------


def session_places(names: Sequence[str], root: Path) -> list[Path]:
    """Return the files and folders that `sessions` names: an agent's places, or paths beside the program.

    Raises:
        SkillcError: a path does not exist.
    """
    found: list[Path] = []
    for name in names:
        path = root / os.path.expandvars(Path(name).expanduser())
        if name in FORMATS and FORMATS[name].places and not path.exists():
            found += default_places(name)
        elif path.exists():
            found.append(path)
        else:
            agents = ", ".join(f"`{each}`" for each, form in FORMATS.items() if form.places)
            raise SkillcError(
                f"`sessions` names `{name}`, which is neither an agent nor a path", hint=f"agents: {agents}"
            )
    return found


def _relative(path: Path, root: Path) -> str:
    return Path(os.path.relpath(path.resolve(), root.resolve())).as_posix()


def _first_nights(rows: Iterable[NightRow], own: Dataset, plan: Plan) -> Mapping[str, int]:
    """Return the night that saw each cluster first; 0 for those of the program's own data."""
    first: dict[str, int] = {}
    for row in rows:
        first[row.cluster] = min(first.get(row.cluster, row.night), row.night)
    if plan.data.group == "cluster":
        for example in (*own.train, *own.validation, *own.test):
            if example.group in first:
                first[example.group] = 0
    return first


def _since(records: Sequence[Json], version: str) -> list[Json]:
    """Return the last nights in a row that had this version."""
    found: list[Json] = []
    for each in reversed(records):
        if each["version"] != version:
            break
        found.insert(0, each)
    return found


def _same_stay(records: Sequence[Json], record: Json, version: str) -> bool:
    return any(each is record for each in _since(records, version))


def _pending(records: Sequence[Json], version: str) -> Json | None:
    """Return the challenger of the present version that is still open."""
    for each in reversed(_since(records, version)):
        if each["challenge"]:
            last = each["challenge"]
            keys = ("challenger", "from_night", "base")
            return {key: last[key] for key in keys} if last["word"] == "open" else None
    return None


def _trained_ids(path: Path) -> set[str]:
    return {row.id for row in read_rows(path)}


def _shown(value: float | None, unit: str) -> str:
    if value is None:
        return "an unknown amount"
    return f"{value:.3g} {unit}" if unit else f"{100 * value:.1f} points"


def with_settings(planned: Planned, **changes: Any) -> Planned:
    """Return a program with other settings of its nights."""
    own = planned.plan.evolve or EvolvePlan()
    return replace(planned, plan=planned.plan.model_copy(update={"evolve": replace(own, **changes)}))
