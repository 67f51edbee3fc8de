"""The messages of every optimizer call, from jinja2 templates and frozen views.

A prompt is a system message that is the same for all stages of a program, then one user message: what all calls of a
step share comes first (task, skill, sections, memory, rejected edits), what differs last, so that a server's prefix
cache hits.

Structure is XML-like tags. Data can't forge it: `fence` escapes the `<` of anything that looks like one of our tags,
and nothing else, so that texts stay as they are. Templates are never rendered twice, so braces in data mean nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from skillc.optimize.propose.replies import ProposedEdit
from skillc.plan.schema import FieldPlan, TaskPlan

if TYPE_CHECKING:
    from skillc.optimize.engine import CandidateEffect
    from skillc.optimize.propose.cases import ConfusionRow

Kind = Literal["failures", "successes"]
Knowledge = Literal["open", "examples"]
Message = dict[str, str]
Messages = tuple[Message, ...]

# Every tag that a template writes; a test compares the two.
_TAG_NAMES = """
after answer before case cases confusion decision decisions edit edits feedback found gold hit input last memory
otherwise outcome patch patches rejected request section sections skill steps summary task trajectories trajectory
"""
TAGS = tuple(_TAG_NAMES.split())
_PROMPTS = Path(__file__).parent / "prompts"

_TAG = re.compile(rf"<(?=\s*/?\s*(?:{'|'.join(sorted(TAGS, key=len, reverse=True))})\b)", re.IGNORECASE)
_ESCAPED = re.compile(r"&((?:amp;)*)lt;")


def fence(text: str) -> str:
    """A text that can stand inside our tags: `<` before a tag name of ours becomes `&lt;`, all else stays.

    A literal `&lt;` becomes `&amp;lt;`, so that the map can be undone.
    """
    return _TAG.sub("&lt;", _ESCAPED.sub(r"&amp;\1lt;", text))


@dataclass(frozen=True, slots=True)
class TrajectoryView:
    """One rollout as a reflection sees it; None is what the program withholds.

    Attributes:
        tag: its name in the prompt and in `cures`, such as `t1`.
        inputs: by field name.
        answer: what the target answered.
        gold: the right answer.
        feedback: the metric's.
        trajectory: what the target wrote on its way from input to answer, trimmed.
        score: of the goal, for people, such as `0` or `0.5`.
        otherwise: what the target wrote and answered in another rollout, which came out right.
    """

    tag: str
    inputs: Mapping[str, str]
    answer: str
    gold: str | None
    feedback: str | None
    trajectory: str | None
    score: str
    otherwise: tuple[str | None, str] | None = None


@dataclass(frozen=True, slots=True)
class CaseView:
    """A training example with its right answer; `right` is None where the target was not run on it."""

    tag: str
    inputs: Mapping[str, str]
    gold: str
    right: bool | None = None


@dataclass(frozen=True, slots=True)
class HitView:
    """A trajectory in the answer to a lookup: which part of it, and a few words of that part."""

    tag: str
    part: int
    score: str
    gold: str | None
    text: str


@dataclass(frozen=True, slots=True)
class SectionView:
    """A section that may be edited. `limit` and `used` in tokens; `mode` is `trainable` or `slow`."""

    name: str
    mode: str
    limit: int | None
    used: int


@dataclass(frozen=True, slots=True)
class PatchView:
    """The edits of one reader, who saw `failures` or `successes`, and what it said of them."""

    kind: Kind
    summary: str
    edits: Sequence[ProposedEdit]


@dataclass(frozen=True, slots=True)
class EditView:
    """An edit as the model sees it, with the screen's counts; None where it was not tried.

    Attributes:
        cured: how many of the `tried` failures it cured.
        broke: how many of the `near` right cases it broke.
    """

    edit: ProposedEdit
    cured: int | None = None
    tried: int | None = None
    broke: int | None = None
    near: int | None = None


@dataclass(frozen=True, slots=True)
class PairView:
    """One example under the epoch's first and last skill.

    Attributes:
        tag: its name in the prompt.
        kind: what became of it.
        inputs: by field name.
        before: the first skill's answer.
        after: the last skill's answer.
        gold: the right answer, None where it is withheld.
        feedback: on the last answer, None where it is withheld.
    """

    tag: str
    kind: Literal["improved", "regressed", "still_failing", "still_right"]
    inputs: Mapping[str, str]
    before: str
    after: str
    gold: str | None
    feedback: str | None


@dataclass(frozen=True, slots=True)
class DecisionView:
    """One decision of an epoch.

    Attributes:
        step: its number.
        accepted: whether the skill changed.
        edits: each edit with its op, and what became of it, in words; empty where nothing is known.
        outcome: how it went, in words.
    """

    step: int
    accepted: bool
    edits: Sequence[tuple[str, str]]
    outcome: str


@dataclass(frozen=True, slots=True)
class Briefing:
    """What all prompts share.

    Attributes:
        skill: the skill with rule ids and rationales; the draft itself where it is to be revised.
        task: inputs and outputs.
        sections: the sections that may be edited, with their limits.
        meta: the optimizer's own memory.
        rejected: edits that were tried and why they failed, a line each.
        knowledge: what the optimizer may write from.
        last: what the last candidates did on training cases, the newest first; reflections and drafts show it.
        first_decides: whether the target is told that of several rules that fit the first one decides.
    """

    skill: str
    task: TaskPlan
    sections: Sequence[SectionView] = ()
    meta: str = ""
    rejected: Sequence[str] = ()
    knowledge: Knowledge = "open"
    last: Sequence[CandidateEffect] = ()
    first_decides: bool = False


@dataclass(frozen=True, slots=True)
class ReflectRequest:
    """What one reflection is asked.

    Attributes:
        kind: which trajectories these are.
        trajectories: one minibatch.
        edit_budget: the most edits that the reply may hold.
        right: near cases that are right, beside failures.
        confusion: what was answered, by right answer.
        kept_back: whether there are failures that no prompt of the step shows.
        lapses: whether failures are to be classed as defects of the skill or lapses in following it.
        rule_counts: whether rules are to be marked as helpful and harmful.
        lookups: how many questions may be asked of the trajectories; then their steps are not shown.
        others: how many more trajectories of the batch may be looked up.
    """

    kind: Kind
    trajectories: Sequence[TrajectoryView]
    edit_budget: int
    right: Sequence[TrajectoryView] = ()
    confusion: Sequence[ConfusionRow] = ()
    kept_back: bool = False
    lapses: bool = False
    rule_counts: bool = False
    lookups: int = 0
    others: int = 0


@dataclass(frozen=True, slots=True)
class DraftRequest:
    """What the author of a draft is asked, from cases rather than from edits.

    Attributes:
        written: names of the sections that the reply shall hold.
        wrong: cases that came out wrong, related ones together.
        right: cases that came out right.
        cases: further training examples with their right answers.
        confusion: what was answered, by right answer.
        kept_back: whether there are failures that the prompt does not show.
        mostly_right: whether the target got most cases of the batch right.
        tried: whether the skill is a draft, and `wrong` and `right` are cases on which it was tried.
    """

    written: Sequence[str]
    wrong: Sequence[TrajectoryView]
    right: Sequence[TrajectoryView]
    cases: Sequence[CaseView]
    confusion: Sequence[ConfusionRow] = ()
    kept_back: bool = False
    mostly_right: bool = False
    tried: bool = False


def reflect_messages(brief: Briefing, request: ReflectRequest) -> Messages:
    """Ask for edits that cure failures, or keep what works."""
    return _render("reflect", brief, **_values(request))


def aggregate_messages(
    brief: Briefing,
    *,
    patches: Sequence[PatchView],
    most: int,
    edit_budget: int,
    cases: Sequence[TrajectoryView] = (),
) -> Messages:
    """Ask for one patch out of several.

    Args:
        brief: what all prompts share.
        patches: in the order of the minibatches; `cures` hold tags of cases.
        most: the most edits that the reply may hold.
        edit_budget: the most edits that the step will make.
        cases: what the edits cite, as many as fit.
    """
    rows = [(each.kind, each.summary, [_edit_json(EditView(edit)) for edit in each.edits]) for each in patches]
    return _render("aggregate", brief, patches=rows, most=most, edit_budget=edit_budget, trajectories=cases)


def budget_messages(brief: Briefing, *, edits: Sequence[EditView], most: int) -> Messages:
    """Ask how many of the edits to make in this step, at most `most`."""
    rows = [_edit_json(view) for view in edits]
    return _render("budget", brief, edits=rows, edit_budget=most)


def rewrite_messages(brief: Briefing, *, edits: Sequence[EditView], rewritten: Sequence[str]) -> Messages:
    """Ask for the sections `rewritten` written anew, so that they do what the chosen edits suggest."""
    named = _with_limits(brief, rewritten)
    return _render("rewrite", brief, edits=[_edit_json(view) for view in edits], rewritten=named)


def draft_messages(brief: Briefing, request: DraftRequest) -> Messages:
    """Ask for whole sections anew."""
    values = _values(request)
    named = _with_limits(brief, values.pop("written"))
    has_rules = any(section.name in request.written and section.used for section in brief.sections)
    return _render("draft", brief, sections_to_write=named, has_rules=has_rules, **values)


def tidy_messages(brief: Briefing, *, written: Sequence[str], confusion: Sequence[ConfusionRow] = ()) -> Messages:
    """Ask for the sections `written` anew, shorter and in order; a line below each rule says what supports it."""
    return _render("tidy", brief, tidied=_with_limits(brief, written), confusion=confusion)


def slow_update_messages(brief: Briefing, *, section: str, limit: int | None, pairs: Sequence[PairView]) -> Messages:
    """Ask for a new text of the slow section `section`, whose text the skill shows, from pairs of answers."""
    return _render("slow_update", brief, section=section, limit=limit, pairs=pairs)


def meta_skill_messages(
    brief: Briefing, *, decisions: Sequence[DecisionView], in_vain: bool = False, pairs: Sequence[PairView] = ()
) -> Messages:
    """Ask what the optimizer wants to remember about which edits helped; `meta` is what it wrote before.

    Args:
        brief: what all prompts share.
        decisions: of the epoch.
        in_vain: whether none of them changed the skill.
        pairs: cases under the skill of the epoch's beginning and that of its end.
    """
    return _render("meta_skill", brief, decisions=decisions, in_vain=in_vain, pairs=pairs)


def lookup_messages(
    messages: Sequence[Mapping[str, str]], *, asked: str, hits: Sequence[HitView], text: str, left: int
) -> Messages:
    """The same conversation with a lookup and its answer: trajectories, a text, and how many lookups are left."""
    answer = _template("lookup").render(hits=hits, text=text, left=left).strip()
    return (*(dict(m) for m in messages), {"role": "assistant", "content": asked}, _user(answer))


def reask_messages(messages: Sequence[Mapping[str, str]], reply: str, problem: str) -> Messages:
    """The same conversation, with the reply that could not be read and what was wrong with it."""
    again = _template("reask").render(problem=problem).strip()
    return (*(dict(m) for m in messages), {"role": "assistant", "content": reply or "(empty)"}, _user(again))


def _render(name: str, brief: Briefing, **values: Any) -> Messages:
    return (
        {"role": "system", "content": _template("system").render(first_decides=brief.first_decides).strip()},
        _user(_template(name).render(**values, **_shared(brief)).strip()),
    )


def _values(request: ReflectRequest | DraftRequest) -> dict[str, Any]:
    return {each.name: getattr(request, each.name) for each in fields(request)}


def _with_limits(brief: Briefing, names: Sequence[str]) -> list[tuple[str, int | None]]:
    limits = {section.name: section.limit for section in brief.sections}
    return [(name, limits.get(name)) for name in names]


def _user(content: str) -> Message:
    return {"role": "user", "content": content}


def _shared(brief: Briefing) -> dict[str, Any]:
    task = brief.task
    return {
        "skill": brief.skill,
        "task": {
            "inputs": field_views(task.inputs),
            "outputs": field_views(task.outputs),
            "rollout": task.rollout.kind,
        },
        "sections": brief.sections,
        "meta": brief.meta,
        "rejected": list(brief.rejected),
        "knowledge": brief.knowledge,
        "last": list(brief.last),
        "first_decides": brief.first_decides,
    }


def field_views(fields: Sequence[FieldPlan]) -> list[dict[str, str]]:
    """Inputs or outputs as a prompt names them."""
    return [{"name": f.name, "type": f.type.text, "about": f.about or ""} for f in fields]


def _edit_json(view: EditView) -> str:
    """An edit on one line, without what it leaves empty, so that a model sees the shape that it must write."""
    value = view.edit.model_dump(mode="json", exclude_defaults=True)
    if view.cured is not None:
        value["cured"] = f"{view.cured} of {view.tried}"
    if view.near:
        value["broke"] = f"{view.broke} of {view.near}"
    return json.dumps(value, ensure_ascii=False)


@cache
def templates(folder: Path) -> Environment:
    """The prompts of a folder."""
    environment = Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["fence"] = fence
    return environment


@cache
def _template(name: str) -> Any:
    return templates(_PROMPTS).get_template(f"{name}.j2")
