"""Harvest: turn new sessions into rows of a program. Each is added once and never changes its side of the split.

Rows are in `NAME.nights.jsonl` beside the program; the program's own data is never changed. A row has its night, its
session, its cluster of like requests and its side. A cluster keeps the side of its first row, including rows of the
program's own data, so no test row is ever trained on.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import Any, cast

from pydantic import JsonValue

from skillc.data.dataset import Dataset, load_rows
from skillc.data.split import SIDES, Side, rank
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.json_values import canonical_ascii, digest
from skillc.outcomes import Example
from skillc.plan.judges import compared_outputs
from skillc.plan.schema import Plan, SplitPlan
from skillc.publish.sessions import NIGHTS_SUFFIX
from skillc.sessions.examples import SessionExample, examples_of, request_of
from skillc.sessions.exercised import skill_of
from skillc.sessions.labels import add_labels, labels_of
from skillc.sessions.signals import signals_of
from skillc.sessions.starting import row_of
from skillc.sessions.store import SessionStore
from skillc.text import counted

RECURRING = 3
"""Sessions from which a cluster of like requests is a recurring task."""
_DEFAULT_SPLIT = SplitPlan()
_COLUMNS = frozenset(
    ("id", "session", "cluster", "request", "answer", "outcome", "certainty", "note", "project", "began", "ended")
) | {"cut", "night", "side"}


@dataclass(frozen=True, slots=True)
class NightRow:
    """A row that a night added.

    Attributes:
        values: the whole row, as in the file.
    """

    values: Mapping[str, JsonValue]

    @property
    def id(self) -> str:
        """The id of its example."""
        return str(self.values["id"])

    @property
    def night(self) -> int:
        """The night that added it."""
        return int(cast(int, self.values["night"]))

    @property
    def session(self) -> str:
        """The key of its session."""
        return str(self.values["session"])

    @property
    def cluster(self) -> str:
        """The cluster of like requests."""
        return str(self.values["cluster"])

    @property
    def side(self) -> Side:
        """Its side of the split."""
        return cast(Side, self.values["side"])

    @property
    def failed(self) -> bool:
        """Whether its session failed."""
        return self.values.get("outcome") == "failed"


@dataclass(frozen=True, slots=True)
class Harvest:
    """Result of one night's harvest.

    Attributes:
        rows: all rows of all nights, those of this night last.
        new: ids of the rows of this night.
        sizes: labelled sessions by cluster, including those without a row.
        left_out: sessions that gave no row, by reason.
        usable: sessions in the store that are usable.
        apart: sessions in the store that are set apart, by reason.
    """

    rows: tuple[NightRow, ...]
    new: tuple[str, ...]
    sizes: Mapping[str, int]
    left_out: Mapping[str, int]
    usable: int = 0
    apart: Mapping[str, int] = field(default_factory=dict)

    def recurring(self) -> set[str]:
        """Return the clusters that were seen often enough to be a recurring task."""
        return {cluster for cluster, size in self.sizes.items() if size >= RECURRING}


def rows_file(program: Path) -> Path:
    """Return the file with the rows of all nights of a program."""
    return program.with_name(f"{program.stem}{NIGHTS_SUFFIX}")


def read_rows(path: Path) -> tuple[NightRow, ...]:
    """Return the rows of all nights; none if there is no file.

    Raises:
        SkillcError: the file cannot be read, or a line is no row of a night.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as problem:
        raise SkillcError(f"`{path}` cannot be read: {problem}") from problem
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            row = NightRow(json.loads(line))
            _ = row.id, row.night, row.session, row.cluster
            if row.side not in SIDES:
                raise ValueError
        except (ValueError, KeyError, TypeError) as problem:
            raise SkillcError(
                f"line {number} of `{path}` is no row of a night",
                hint="restore the file from git: rows are never changed",
            ) from problem
        rows.append(row)
    return tuple(rows)


def harvest(program: Path, plan: Plan, own: Dataset, store: SessionStore, night: int) -> Harvest:
    """Add a row for each new labelled session to the file of the nights.

    The same call for the same night and store adds nothing more, so that a killed night can be repeated.

    Args:
        program: the program's file.
        plan: the program.
        own: the program's own examples.
        store: the sessions.
        night: the number of this night.

    Raises:
        SkillcError: the program's data has columns that sessions do not give, or a file cannot be read or written.
    """
    path = rows_file(program)
    known = read_rows(path)
    exact = not any(field.column == "assertions" for field in plan.data.fields)
    _check_columns(plan, exact=exact)
    found = examples_of(store, skill=_label_of(plan, store))
    left = Counter(found.left_out)
    sides = _Sides(plan, own, known)
    added = []
    for each in found.examples:
        why = sides.refuse(each, exact=exact)
        if why is not None:
            left[why] += 1
            continue
        added.append(NightRow(sides.add(each, {**row_of(each, exact=exact), "night": night})))
    if added:
        _write(path, (*known, *added))
    rows = (*known, *added)
    counts = store.counts()
    left.pop("known", None)
    return Harvest(
        rows=rows,
        new=tuple(row.id for row in rows if row.night == night),
        sizes=Counter(sides.cluster_of(each) for each in found.examples),
        left_out=dict(left),
        usable=counts[None],
        apart={str(reason): number for reason, number in counts.items() if reason is not None},
    )


def label_new(plan: Plan, store: SessionStore) -> int:
    """Label the usable sessions without a label that exercised the skill, by their signals; return how many.

    Raises:
        SkillcError: the store cannot be read or written.
    """
    labelled = {label.session for label in labels_of(store)}
    known = {plan.skill.name: plan.skill.about}
    added = 0
    for row in store.rows(reason=None):
        if row.key in labelled:
            continue
        session = store.session(row.id)
        if skill_of(session, request_of(session), known) == plan.skill.name:
            found = signals_of(session, plan.skill.name)
            add_labels(store, found)
            added += bool(found)
    return added


def _label_of(plan: Plan, store: SessionStore) -> str:
    """Return the name under which sessions are labelled for a skill; empty for labels that name none."""
    labelled = {label.skill for label in labels_of(store)}
    return next((name for name in (plan.skill.name, plan.skill.artifact) if name in labelled), "")


class _Sides:
    """Sides of all clusters, and the rows that exist already."""

    def __init__(self, plan: Plan, own: Dataset, known: Iterable[NightRow]) -> None:
        self._plan = plan
        self._inputs = {field.name: field.column for field in plan.task.inputs}
        self._ids = set[str]()
        self._contents = set[str]()
        self._side = dict[str, Side]()
        self._of_session = dict[str, str]()
        by_cluster = plan.data.group == "cluster"
        for side, examples in zip(SIDES, (own.train, own.validation, own.test), strict=True):
            for example in examples:
                self._ids.add(example.id)
                self._contents.add(canonical_ascii(dict(example.inputs)))
                if by_cluster:
                    self._side[example.group] = side
        for row in known:
            self._ids.add(row.id)
            self._contents.add(self._content(row.values))
            self._side[row.cluster] = row.side
            self._of_session[row.session] = row.cluster

    def _content(self, values: Mapping[str, Any]) -> str:
        return canonical_ascii({name: values.get(column) for name, column in self._inputs.items()})

    def cluster_of(self, each: SessionExample) -> str:
        """Return the cluster of a session: that of its row if it has one, else the current one."""
        return self._of_session.get(each.session, each.cluster)

    def refuse(self, each: SessionExample, *, exact: bool) -> str | None:
        """Return why a session gives no row; None if it does."""
        if each.id in self._ids:
            return "known"
        if exact and each.outcome != "worked":
            return "failed, and right answers are compared"
        if exact and not each.answer:
            return "without an answer"
        if self._content(row_of(each, exact=exact)) in self._contents:
            return "asked before in the same words"
        return None

    def add(self, each: SessionExample, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row with its side, and record both."""
        side = self._side.get(each.cluster) or self._drawn(each.cluster)
        self._side[each.cluster] = side
        self._ids.add(each.id)
        self._contents.add(self._content(values))
        return {**values, "side": side}

    def _drawn(self, cluster: str) -> Side:
        """Draw the side of a new cluster by its hash, in the shares of the program."""
        split = self._plan.data.split
        shares = split if split is not None and split.unit == "share" else _DEFAULT_SPLIT
        parts = [*shares.parts, Fraction(0), Fraction(0)][: len(SIDES)]
        place = Fraction(rank(self._plan.data.seed, cluster), 2**256) * sum(parts)
        return next(side for side, bound in zip(SIDES, accumulate(parts), strict=True) if place < bound)


def _check_columns(plan: Plan, *, exact: bool) -> None:
    """Refuse a program whose data has other columns than rows of sessions.

    Raises:
        SkillcError: some columns are missing there.
    """
    given = {*_COLUMNS, *(() if exact else ("assertions",))}
    compared = compared_outputs(plan)
    columns = [
        *(field.column for field in plan.task.inputs),
        *(field.column for field in plan.task.outputs if field.name in compared),
        *(field.column for field in plan.data.fields if not field.type.optional),
    ]
    missing = sorted(set(columns) - given)
    if missing:
        raise SkillcError(
            f"sessions give no {counted(len(missing), 'column')} " + ", ".join(f"`{name}`" for name in missing),
            hint="name the columns of sessions: `input request: text`, `output answer: text`; "
            "`skillc new --from-sessions` writes such a program",
        )


def _write(path: Path, rows: Sequence[NightRow]) -> None:
    try:
        write_atomically(path, (json.dumps(dict(row.values), ensure_ascii=False) + "\n" for row in rows))
    except OSError as problem:
        raise SkillcError(f"`{path}` cannot be written: {problem.strerror}") from problem


# ---- the data of a night ---------------------------------------------------------------------------


def usable_rows(rows: Iterable[NightRow], store: SessionStore) -> tuple[NightRow, ...]:
    """Return the rows whose session has not been set apart since it gave the row, by a scan or a person."""
    reasons = {row.key: row.reason for row in store.rows()}
    return tuple(row for row in rows if reasons.get(row.session) is None)


def examples_of_rows(plan: Plan, root: Path, rows: Sequence[NightRow], file: Path) -> Mapping[str, Example]:
    """Return the example of each row by its id.

    Args:
        plan: the program.
        root: its folder.
        rows: of nights.
        file: where to write the rows, below `root`.

    Raises:
        SkillcError: the file cannot be written, or a row does not fit the program.
    """
    if not rows:
        return {}
    _write(file, rows)
    data = plan.data.model_copy(update={"group": "cluster"})
    found, _ = load_rows(plan.model_copy(update={"data": data}), root, file.relative_to(root).as_posix())
    return {example.id: example for example in found}


def joined(own: Dataset, rows: Iterable[NightRow], examples: Mapping[str, Example], seed: int) -> Dataset:
    """Return the program's own examples and those of the nights, each on its side, in hash order, without a test split.

    The test rows of the nights are for challengers, and the program's own are used up by its compile.
    """
    added: dict[Side, list[Example]] = {side: [] for side in SIDES}
    for row in rows:
        added[row.side].append(examples[row.id])

    def side(name: Side, mine: Sequence[Example]) -> tuple[Example, ...]:
        return tuple(sorted((*mine, *added[name]), key=lambda each: (rank(seed, each.id), each.id)))

    train, validation = side("train", own.train), side("validation", own.validation)
    content = [
        [name, each.id, each.group, canonical_ascii([dict(each.inputs), dict(each.gold), dict(each.fields)])]
        for name, examples in (("train", train), ("validation", validation))
        for each in examples
    ]
    return replace(own, train=train, validation=validation, test=(), digest=digest([own.digest, content]))
