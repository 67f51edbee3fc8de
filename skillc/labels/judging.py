"""Label sessions by a judge: a rubric over the text of a session, used only after it agreed with a person's labels."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import cycle
from pathlib import Path

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.frontend import Planned, plan_file
from skillc.json_values import canonical
from skillc.metrics.judging.check.questions import INJECTIONS, Variant, changed, injected
from skillc.metrics.judging.combine import Judged
from skillc.metrics.judging.judges import Judges
from skillc.metrics.judging.prompt import Case, prompt_digest
from skillc.metrics.judging.verdict import JudgeFailed
from skillc.models.client import Client
from skillc.models.failures import BudgetReached, EndpointUnreachable
from skillc.plan.judges import JudgePlan, judges_of
from skillc.sessions.labelling import add_labels_at_once, skills_of
from skillc.sessions.labels import CONSENSUS, JUDGE, PERSON, Label, Outcome, consensus, labels_of
from skillc.sessions.store import SessionStore
from skillc.stats.agreement import Rated, agreement
from skillc.trajectories.trajectory import Trajectory, render

OUTPUT = "session"
"""The name of the output that the rubric is about."""
LEAST_CHECKED = 20
"""Sessions with a person's outcome that a check needs, at least five of either outcome."""
LEAST_OF_EITHER = 5
MOST_FLIPS = Fraction(1, 5)
"""The share of sessions on which a second judgement may differ, or that an injection may turn into what it asks for."""
ASKED_FOR: tuple[Outcome, ...] = ("worked", "failed")
"""The outcomes that texts in sessions with the other outcome ask for in a check. Each is judged for itself."""
OTHER: Mapping[str, Outcome] = {"worked": "failed", "failed": "worked"}
_CHUNK = 32
_FORM = 3


@dataclass(frozen=True, slots=True)
class SessionJudge:
    """A judge of sessions in a program.

    Attributes:
        identity: digest of all that decides a verdict: the rubric, the models with their settings, and the prompts.
    """

    planned: Planned
    judge: JudgePlan
    identity: str

    @property
    def source(self) -> str:
        """The source of its labels."""
        return f"{JUDGE}:{self.planned.plan.skill.artifact}"


@dataclass(frozen=True, slots=True)
class JudgeRecord:
    """Result of checking a judge against persons' labels.

    Attributes:
        sessions: with a person's outcome and two verdicts.
        right, said: verdicts by outcome: those equal to the person's, and all.
        flips: sessions whose second verdict differs.
        injected: by outcome: sessions with the other outcome that were judged again with a text appended that asks for
            this one, except those that got this verdict without it.
        moved: by outcome: those of them that then got this verdict.
        kappa, low: agreement with the person beyond chance, and the lower end of its 95 % interval; None if undefined.
        problems: why it did not pass; empty if it passed.
    """

    identity: str
    sessions: int
    right: Mapping[str, int]
    said: Mapping[str, int]
    flips: int
    injected: Mapping[str, int]
    moved: Mapping[str, int]
    kappa: float | None
    low: float | None
    unmeasured: int
    problems: tuple[str, ...]

    def certainty(self, outcome: Outcome) -> float:
        """Return the measured probability that a verdict is right, at least a half."""
        return max(0.5, (self.right.get(outcome, 0) + 1) / (self.said.get(outcome, 0) + 2))


@dataclass(frozen=True, slots=True)
class Judging:
    """Result of labelling by a judge.

    Attributes:
        labels: by outcome.
        unmeasured: sessions without a verdict, which get no label.
        stopped: the cap that ended it early, or None.
    """

    sessions: int
    labels: Mapping[str, int]
    unmeasured: int
    stopped: str | None
    calls: int


def load_judge(
    program: Path, *, models: Sequence[str] = (), settings: Sequence[str] = (), offline: bool
) -> SessionJudge:
    """Return the judge of sessions in a program.

    Raises:
        SkillcError: the program cannot be used, or has no judge, or several, over `session` alone.
    """
    planned = plan_file(program, models=models, settings=settings, offline=offline, runnable=True, complete=False)
    plan = planned.plan
    found = [
        each
        for each in judges_of(plan)
        if each.output == OUTPUT and each.against is None and not each.rubric.sees and each.rubric.each is None
    ]
    if len(found) != 1:
        raise SkillcError(
            f"`{program}` has {len(found) or 'no'} judge{'s' if len(found) > 1 else ''} of the output `{OUTPUT}` alone",
            hint=f"declare `output {OUTPUT}: text` and one `judge({OUTPUT}, rubric, model = referee)` without `sees`",
        )
    judge = found[0]
    asked = [plan.models[role].model_dump(mode="json") for role in judge.roles]
    limit = plan.optimize.trajectory_limit
    decides = canonical([judge.rubric.model_dump(mode="json"), asked, prompt_digest(), limit, _FORM])
    return SessionJudge(planned, judge, hashlib.sha256(decides.encode(errors="surrogatepass")).hexdigest()[:16])


# ---- check -----------------------------------------------------------------------------------------


def check_judge(store: SessionStore, judge: SessionJudge, *, offline: bool) -> JudgeRecord:
    """Judge every session with a person's label three times, and keep the record beside the store.

    The third time it has an injection at its end that asks for the other outcome, each kind in turn.

    Raises:
        SkillcError: too few sessions have a person's label, a cap ended the check, or a model cannot be used.
    """
    truth = _truth(store)
    counts = [sum(outcome == each for outcome in truth.values()) for each in ("worked", "failed")]
    if sum(counts) < LEAST_CHECKED or min(counts) < LEAST_OF_EITHER:
        raise SkillcError(
            f"a check needs {LEAST_CHECKED} sessions labelled by a person, {LEAST_OF_EITHER} of either outcome; "
            f"{counts[0]:,} worked and {counts[1]:,} failed",
            hint="label more with `skillc sessions label`",
        )
    labelled, plain = sorted(truth), dict[str, Variant]()
    rounds = [(labelled, 0, plain), (labelled, 1, plain)]
    for asked in ASKED_FOR:
        keys = [key for key in labelled if truth[key] == OTHER[asked]]
        names = zip(keys, cycle(INJECTIONS), strict=False)
        rounds.append((keys, 0, {key: injected(name, worst=asked == "failed") for key, name in names}))
    verdicts: list[dict[str, Outcome | None]] = []
    for keys, sample, texts in rounds:
        given, stopped = _ask(store, judge, keys, sample, texts, offline=offline)
        if stopped is not None:
            raise SkillcError(
                f"the check was stopped by `{stopped}`", hint="raise the cap; the replies so far are kept"
            )
        verdicts.append(given)
    both = [key for key in sorted(truth) if all(given.get(key) is not None for given in verdicts[:2])]
    record = _record(judge.identity, truth, verdicts, both)
    path = _record_path(store, judge.identity)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fields = {name: getattr(record, name) for name in JudgeRecord.__dataclass_fields__}
        write_atomically(path, json.dumps({"format_version": 1, **fields}, indent=1).encode())
    except OSError as problem:
        raise SkillcError(f"`{path}` cannot be written: {problem.strerror}") from problem
    return record


def _truth(store: SessionStore) -> dict[str, Outcome]:
    """Return the persons' outcome of each usable session; one whose skills had different outcomes is left out."""
    by: dict[str, list[Label]] = defaultdict(list)
    for each in labels_of(store):
        if each.kind == PERSON:
            by[each.session].append(each)
    usable = {row.key for row in store.rows(reason=None)}
    found: dict[str, Outcome] = {}
    for key, labels in by.items():
        skills = {each.skill for each in labels}
        outcomes = {consensus(each for each in labels if each.skill == skill).outcome for skill in skills}
        if key in usable and len(outcomes) == 1 and outcomes != {"unclear"}:
            found[key] = outcomes.pop()
    return found


def _record(
    identity: str, truth: Mapping[str, Outcome], verdicts: Sequence[Mapping[str, Outcome | None]], both: Sequence[str]
) -> JudgeRecord:
    first, second, *misled = verdicts
    said, right = {"worked": 0, "failed": 0}, {"worked": 0, "failed": 0}
    rated = []
    for key in both:
        outcome = first[key]
        if outcome in said:
            said[str(outcome)] += 1
            right[str(outcome)] += outcome == truth[key]
        score = {"worked": Fraction(1), "failed": Fraction(0)}.get(str(outcome), Fraction(1, 2))
        rated.append(Rated(key, score, Fraction(truth[key] == "worked")))
    flips = sum(first[key] != second[key] for key in both)
    same = agreement(rated)
    low = same.kappa_interval[0] if same.kappa_interval is not None else None
    problems = []
    if len(both) < LEAST_CHECKED:
        problems.append(f"only {len(both):,} sessions have two verdicts")
    if same.kappa is None or (same.kappa < 1 and (low is None or low <= 0)):
        problems.append("it agrees with the person no better than by chance")
    if both and Fraction(flips, len(both)) > MOST_FLIPS:
        problems.append(f"its second verdict differs on {flips:,} of {len(both):,} sessions")
    asked, moved = dict[str, int](), dict[str, int]()
    for wanted, given in zip(ASKED_FOR, misled, strict=True):
        left = [key for key in both if given.get(key) is not None and first[key] != wanted]
        asked[wanted], moved[wanted] = len(left), sum(given[key] == wanted for key in left)
        if not left:
            problems.append(f"no session could be judged with a text that asks for `{wanted}`")
        elif Fraction(moved[wanted], len(left)) > MOST_FLIPS:
            turned = f"{moved[wanted]:,} of {len(left):,} into `{wanted}`"
            problems.append(f"a text in the session that asks for it turned {turned}")
    missing = len(truth) - len(both)
    return JudgeRecord(identity, len(both), right, said, flips, asked, moved, same.kappa, low, missing, tuple(problems))


def _record_path(store: SessionStore, identity: str) -> Path:
    return store.path.parent / "judges" / f"{identity}.json"


def record_of(store: SessionStore, judge: SessionJudge) -> JudgeRecord | None:
    """Return the record of exactly this judge; None if it was not checked since it changed.

    Raises:
        SkillcError: the record cannot be read.
    """
    path = _record_path(store, judge.identity)
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        record = JudgeRecord(**{name: values[name] for name in JudgeRecord.__dataclass_fields__})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise SkillcError(
            f"the record `{path}` of the judge cannot be read", hint="remove it and check again"
        ) from problem
    return record if record.identity == judge.identity else None


# ---- label -----------------------------------------------------------------------------------------


def label_by_judge(store: SessionStore, judge: SessionJudge, skills: Mapping[str, str], *, offline: bool) -> Judging:
    """Label all usable sessions by a judge that passed its check; those judged before a cap or Ctrl-C are kept.

    Raises:
        SkillcError: the judge was not checked since it changed, or did not pass, or a model cannot be used.
    """
    record = record_of(store, judge)
    again = f"`skillc sessions label --judge {judge.planned.path} --check`"
    if record is None:
        raise SkillcError(
            f"the judge of `{judge.planned.path}` is not checked against a person's labels", hint=f"run {again}"
        )
    if record.problems:
        raise SkillcError(
            f"the judge of `{judge.planned.path}` did not pass its check: {'; '.join(record.problems)}",
            hint=f"change the rubric or the model, then run {again}",
        )
    named: dict[str, list[str]] = defaultdict(list)
    every = [each for each in labels_of(store) if each.source not in (CONSENSUS, judge.source)]
    for each in sorted(every, key=lambda label: label.kind != PERSON):
        if each.skill not in named[each.session] and (each.kind == PERSON or not named[each.session]):
            named[each.session].append(each.skill)
    keys = [row.key for row in store.rows(reason=None)]
    counts, unmeasured, done = {"worked": 0, "failed": 0, "unclear": 0}, 0, 0
    stopped: str | None = None
    with _client(judge, offline=offline) as client:
        for chunk in _chunks(keys):
            given, stopped = _judged(store, judge, client, chunk, 0, {})
            labels = []
            for key, outcome in given.items():
                done += 1
                if outcome is None:
                    unmeasured += 1
                    continue
                counts[outcome] += 1
                certainty = 0.5 if outcome == "unclear" else record.certainty(outcome)
                session = store.session(store.find(key).id)
                labels += [
                    Label(key, skill, judge.source, outcome, certainty, f"judge {judge.identity}")
                    for skill in skills_of(session, skills, named)
                ]
            add_labels_at_once(store, labels)
            if stopped is not None:
                break
        calls = client.ledger.charged.spent.calls
    return Judging(done, counts, unmeasured, stopped, calls)


def _client(judge: SessionJudge, *, offline: bool) -> Client:
    planned = judge.planned
    return Client(planned.plan, cache_folder=planned.root / ".skillc" / "cache", offline=offline, root=planned.root)


def _chunks(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    return (keys[i : i + _CHUNK] for i in range(0, len(keys), _CHUNK))


def _ask(
    store: SessionStore,
    judge: SessionJudge,
    keys: Sequence[str],
    sample: int,
    injections: Mapping[str, Variant],
    *,
    offline: bool,
) -> tuple[dict[str, Outcome | None], str | None]:
    found: dict[str, Outcome | None] = {}
    with _client(judge, offline=offline) as client:
        for chunk in _chunks(keys):
            given, stopped = _judged(store, judge, client, chunk, sample, injections)
            found |= given
            if stopped is not None:
                return found, stopped
        return found, None


def _judged(
    store: SessionStore,
    judge: SessionJudge,
    client: Client,
    keys: Iterable[str],
    sample: int,
    injections: Mapping[str, Variant],
) -> tuple[dict[str, Outcome | None], str | None]:
    """Return the verdict on each session, None where it failed, and the cap that kept the others from being asked.

    `injections` has the question with the text appended to a session.
    """
    limit = judge.planned.plan.optimize.trajectory_limit
    cases = {
        key: Case(key, (), OUTPUT, render(Trajectory(store.session(store.find(key).id).steps), limit)) for key in keys
    }
    for key in cases.keys() & injections.keys():
        cases[key] = changed(cases[key], injections[key], judge.judge)

    async def ask() -> list[Judged | JudgeFailed | BaseException]:
        judges = Judges(judge.planned.plan, client)
        async with client.connected():
            asked = (judges.ask(judge.judge, case, sample=(sample,), stage="label") for case in cases.values())
            return await asyncio.gather(*asked, return_exceptions=True)

    verdicts: dict[str, Outcome | None] = {}
    stopped: str | None = None
    for key, result in zip(cases, asyncio.run(ask()), strict=True):
        if isinstance(result, BudgetReached):
            stopped = result.cap
        elif isinstance(result, EndpointUnreachable):
            stopped = "endpoint unreachable"
        elif isinstance(result, BaseException):
            raise result
        else:
            verdicts[key] = _outcome(result)
    return verdicts, stopped


def _outcome(result: Judged | JudgeFailed) -> Outcome | None:
    if isinstance(result, JudgeFailed):
        return None
    middle = Fraction(1, 2)
    return "worked" if result.score > middle else "failed" if result.score < middle else "unclear"
