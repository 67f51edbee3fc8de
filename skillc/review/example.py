"""`skillc example`: one example over all steps of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import JsonValue
from rich.console import Group, RenderableType
from rich.text import Text

from skillc.dataclass import dataclass
from skillc.items.grid import Mark
from skillc.items.record import Measure, Score, SplitName, measures_of, score_of
from skillc.json_values import as_text
from skillc.optimize.rollouts import Outcome
from skillc.outcomes import MICRO, Example
from skillc.review.confidence import SELECTED_ON, SPLIT_WORDS, noise_words
from skillc.review.decisions import Decision, ProposedEdit
from skillc.review.log import run_json
from skillc.review.run_view import PlacedExample, RunView
from skillc.review.stored import NO_SKILL
from skillc.review.terminal import MARK_STYLES, aligned, block, facts, plain
from skillc.text import cut

_SYMBOLS: dict[Mark, str] = {"right": "■", "wrong": "□", "unmeasured": "?", "not run": "·"}
_MOST = 300
_ANSWER = 60


@dataclass(frozen=True, slots=True)
class Naming:
    """An edit whose record names the example, and in what roles."""

    decision: Decision
    edit: ProposedEdit
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExampleVersion:
    """The example under one skill.

    Attributes:
        place: of the skill: `no skill`, `start`, `step 3/8`.
        result: `incumbent` or what became of the candidate; empty for no skill.
        outcome: of the first sample.
        changed: whether the mark differs from that of the incumbent before.
        decision: the one that made the skill.
    """

    skill: str
    place: str
    result: str
    mark: Mark
    score: Score
    outcome: Outcome | None
    changed: bool
    decision: Decision | None


def versions_of(view: RunView, name: str) -> tuple[ExampleVersion, ...]:
    """Return the example under no skill, the initial skill, and each candidate, in the order of the decisions."""
    measure = next(each for each in measures_of(view.plan) if each.name == view.plan.goal.name)
    steps: list[tuple[str, Decision | None]] = [(NO_SKILL, None), (view.initial, None)]
    made = set[str]()
    for decision in view.decisions:
        if decision.candidate and decision.candidate not in made:
            made.add(decision.candidate)
            steps.append((decision.candidate, decision))
    found: list[ExampleVersion] = []
    before: Mark = "not run"
    for skill, step in steps:
        place = "no skill" if skill == NO_SKILL else view.place(skill)
        mark, score, outcome = _measured(view, measure, skill, name)
        is_known = mark in ("right", "wrong") and before in ("right", "wrong")
        result = "" if step is None else step.result
        changed = is_known and mark != before and skill != NO_SKILL
        found.append(ExampleVersion(skill, place, result, mark, score, outcome, changed, step))
        if skill != NO_SKILL and (step is None or step.accepted) and mark in ("right", "wrong"):
            before = mark
    return tuple(found)


def _measured(view: RunView, measure: Measure, skill: str, name: str) -> tuple[Mark, Score, Outcome | None]:
    """Return the mark, the mean over the samples, and the first rollout."""
    samples = [view.outcome(skill, name, sample) for sample in range(view.plan.optimize.samples)]
    outcomes = [each for each in samples if each is not None]
    score = score_of(outcomes, measure.name) if outcomes else None
    if isinstance(score, int):
        return "right" if measure.is_right(score) else "wrong", score, outcomes[0]
    return ("unmeasured" if outcomes else "not run"), score, outcomes[0] if outcomes else None


def named_in(view: RunView, name: str) -> tuple[Naming, ...]:
    """Return the edits whose record names the example."""
    found = []
    for decision in view.decisions:
        for edit in (*decision.edits, *decision.others):
            screen, credit = edit.screen, edit.credit
            roles = (
                ("written for it", name in edit.cures),
                ("cured it alone, in the screen", screen is not None and name in screen.cured),
                ("broke it alone, in the screen", screen is not None and name in screen.broke),
                ("credited with curing it", credit is not None and name in credit.cured_ids),
                ("credited with breaking it", credit is not None and name in credit.broke_ids),
            )
            names = tuple(role for role, is_so in roles if is_so)
            found += [Naming(decision, edit, names)] if names else []
    return tuple(found)


def fate_of(versions: Sequence[ExampleVersion]) -> str:
    """Return what became of the example over the incumbents, as the grid of items names it."""
    kept = [each for each in versions if each.decision is None or each.decision.accepted]
    marks = [each.mark == "right" for each in kept if each.skill != NO_SKILL and each.mark in ("right", "wrong")]
    if not marks:
        return "not measured"
    if len(set(marks)) == 1:
        return "always right" if marks[0] else "never solved"
    if marks[0] == marks[-1]:
        return "back and forth"
    return "newly solved" if marks[-1] else "lost"


# ---- in a terminal --------------------------------------------------------------------------------


def example_table(view: RunView, name: str, placed: PlacedExample | None, *, full: bool) -> RenderableType:
    """Return one example over all steps; `full` shows whole inputs, outputs and feedback."""
    versions, naming = versions_of(view, name), named_in(view, name)
    parts: list[RenderableType] = [plain(name, "bold"), Text()]
    if placed is not None:
        parts += [facts(_facts(view, placed, versions, full=full)), Text()]
    ran = [each for each in versions if each.mark != "not run"]
    if ran:
        parts += [*_versions(view, ran, naming, full=full), Text()]
    elif view.outcomes is not None:
        parts += [plain("no skill that can be rebuilt was run on it", "yellow"), Text()]
    if naming:
        parts.append(Text("edits that name it", style="bold"))
        parts.append(block(*(_naming(each) for each in naming)))
        parts.append(Text())
    if view.lock is not None:
        parts.append(plain(noise_words(view.lock, view.plan.goal), "dim"))
    if placed is not None and placed.split != "train":
        parts.append(plain(SELECTED_ON, "dim"))
    return Group(*parts, *(plain(f"missing: {each}", "yellow") for each in view.missing))


def _facts(
    view: RunView, placed: PlacedExample, versions: Sequence[ExampleVersion], *, full: bool
) -> Iterator[tuple[str, str]]:
    example = placed.example
    place = view.dataset.places.get(example.id) if view.dataset is not None else None
    where = f", {place[0]}:{place[1]}" if place is not None else ""
    group = f", group {example.group}" if example.group != example.id else ""
    yield "split", f"{SPLIT_WORDS[placed.split]}{where}{group}"
    for name, text in _inputs(example).items():
        yield name, text if full else cut(text, _MOST)
    for name, right in example.gold.items():
        yield f"right {name}", as_text(right)
    yield "fate", fate_of(versions)


def _inputs(example: Example) -> dict[str, str]:
    return {name: example.labels.get(name) or as_text(value) for name, value in example.inputs.items()}


def _versions(
    view: RunView, versions: Sequence[ExampleVersion], naming: Sequence[Naming], *, full: bool
) -> Iterator[RenderableType]:
    rows = [[Text(each, "bold") for each in ("skill", "", "score", "result", "answer")]]
    for each in versions:
        mark = Text(f"{_SYMBOLS[each.mark]} {each.mark}", style=MARK_STYLES[each.mark])
        answer = plain(cut(answer_of(each.outcome), _ANSWER))
        rows.append([plain(each.place), mark, plain(_score_words(view, each.score)), Text(each.result), answer])
    lines = aligned(rows, (False, False, True, False, False))
    yield lines[0]
    for line, each in zip(lines[1:], versions, strict=True):
        yield line
        notes = list(_notes(each, naming, full=full))
        if notes:
            yield block(*notes)


def _notes(version: ExampleVersion, naming: Sequence[Naming], *, full: bool) -> Iterator[RenderableType]:
    decision, outcome = version.decision, version.outcome
    if version.changed and decision is not None:
        named = [each.edit for each in naming if each.decision is decision and each.edit in decision.edits]
        if len(decision.edits) == 1:
            yield plain(f"changed by {cut(decision.edits[0].words, _MOST)}", "cyan")
        elif named:
            yield plain(f"changed in this step, probably by {cut(named[0].words, _MOST)}", "cyan")
        else:
            yield plain("changed in this step; no edit of it names the example", "cyan")
    if outcome is not None and version.mark == "unmeasured":
        yield plain(cut(outcome.failure or outcome.feedback or str(version.score), _MOST), "yellow")
    if full and outcome is not None:
        for text in (outcome.trajectory.reply, outcome.feedback):
            if text.strip():
                yield plain(text.strip(), "dim")


def answer_of(outcome: Outcome | None) -> str:
    """Return the answer of a rollout, or why it has none."""
    if outcome is None:
        return ""
    if outcome.answer is None:
        return f"no readable answer: {outcome.trajectory.problem or outcome.trajectory.reply}"
    values = list(outcome.answer.values())
    return as_text(values[0]) if len(values) == 1 else as_text(dict(outcome.answer))


def _score_words(view: RunView, score: Score) -> str:
    if not isinstance(score, int):
        return score or ""
    return f"{score / MICRO:g}"


def _naming(each: Naming) -> RenderableType:
    line = plain(f"{each.decision.place}, {each.edit.fate}: {', '.join(each.roles)}")
    return Group(line, block(plain(cut(each.edit.words, _MOST), "dim")))


# ---- JSON -----------------------------------------------------------------------------------------


def example_json(view: RunView, name: str, placed: PlacedExample | None) -> dict[str, JsonValue]:
    """Return the object that `example --json` prints."""
    versions = versions_of(view, name)
    place = view.dataset.places.get(name) if view.dataset is not None else None
    split: SplitName | None = placed.split if placed is not None else None
    return {
        **run_json(view),
        "id": name,
        "split": split,
        "place": f"{place[0]}:{place[1]}" if place is not None else None,
        "group": placed.example.group if placed is not None else None,
        "inputs": dict(placed.example.inputs) if placed is not None else None,
        "right": dict(placed.example.gold) if placed is not None else None,
        "fate": fate_of(versions),
        "versions": [_version_json(each) for each in versions if each.mark != "not run"],
        "named_in": [
            {
                "place": each.decision.place,
                "decision": each.decision.number,
                "fate": each.edit.fate,
                "roles": list(each.roles),
                "edit": each.edit.words,
            }
            for each in named_in(view, name)
        ],
    }


def _version_json(version: ExampleVersion) -> JsonValue:
    outcome = version.outcome
    return {
        "skill": version.skill,
        "place": version.place,
        "result": version.result,
        "mark": version.mark,
        "score": version.score / MICRO if isinstance(version.score, int) else None,
        "unmeasured": version.score if isinstance(version.score, str) else None,
        "changed": version.changed,
        "answer": dict(outcome.answer) if outcome is not None and outcome.answer is not None else None,
        "reply": outcome.trajectory.reply if outcome is not None else None,
        "feedback": outcome.feedback if outcome is not None else None,
    }
