"""Render the messages of every optimizer call from jinja2 templates and frozen views.

A prompt is a system message, which is the same for all stages of a program, and one user message. The parts that all
calls of a step share come first (task, skill, sections, memory, rejected edits), so that they hit the server's prefix
cache.

Prompts are structured by XML-like tags. Data cannot forge them: `fence` escapes the `<` of anything that looks like a
tag, and nothing else. Templates are never rendered twice, so braces in data have no effect.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jinja2 import Template
from pydantic import JsonValue

from skillc.dataclass import dataclass
from skillc.document.tool_lines import HOW_TO_RENAME
from skillc.files import templates
from skillc.language.kinds import default_of
from skillc.language.rollouts import ENVIRONMENT_DEFAULTS, HARBOR_DEFAULTS, is_agent
from skillc.optimize.propose.replies import ProposedEdit
from skillc.plan.schema import FieldPlan, RolloutPlan, TaskPlan

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
otherwise outcome patch patches refused rejected request section sections skill steps summary task trajectories
trajectory
"""
TAGS = tuple(_TAG_NAMES.split())
_PROMPTS = Path(__file__).parent / "prompts"

_TAG = re.compile(rf"<(?=\s*/?\s*(?:{'|'.join(sorted(TAGS, key=len, reverse=True))})\b)", re.IGNORECASE)
_ESCAPED = re.compile(r"&((?:amp;)*)lt;")


def fence(text: str) -> str:
    """Escape a text for use within tags: `<` before a tag name becomes `&lt;`.

    A literal `&lt;` becomes `&amp;lt;`, so that escaping can be reversed.
    """
    return _TAG.sub("&lt;", _ESCAPED.sub(r"&amp;\1lt;", text))


@dataclass(frozen=True, slots=True)
class TrajectoryView:
    """One rollout in a prompt. A value that the program withholds is None.

    Attributes:
        tag: its name in the prompt and in `cures`, such as `t1`.
        inputs: by field name.
        answer: the target's.
        gold: the right answer.
        feedback: the metric's.
        trajectory: the target's trimmed text from input to answer.
        score: the goal's, for people, such as `0` or `0.5`.
        otherwise: trajectory and answer of another rollout of the same example that succeeded.
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
    """A training example with its right answer.

    Attributes:
        right: whether the target got it right; None if it was not run on it.
        calls: of an agent, with what came back.
    """

    tag: str
    inputs: Mapping[str, str]
    gold: str
    right: bool | None = None
    calls: str | None = None


@dataclass(frozen=True, slots=True)
class HitView:
    """A trajectory in the answer to a lookup: the number of a part, and a few words of it."""

    tag: str
    part: int
    score: str
    gold: str | None
    text: str


@dataclass(frozen=True, slots=True)
class SectionView:
    """An editable section. `limit` and `used` are tokens; `mode` is `trainable` or `slow`."""

    name: str
    mode: str
    limit: int | None
    used: int


@dataclass(frozen=True, slots=True)
class PatchView:
    """The edits of one reflection on `failures` or `successes`, and its summary."""

    kind: Kind
    summary: str
    edits: Sequence[ProposedEdit]


@dataclass(frozen=True, slots=True)
class EditView:
    """An edit in a prompt, with the screen's counts: `cured` of `tried` failures, `broke` of `near` successes."""

    edit: ProposedEdit
    cured: int | None = None
    tried: int | None = None
    broke: int | None = None
    near: int | None = None


@dataclass(frozen=True, slots=True)
class PairView:
    """One example with its answers under the epoch's first and last skill, and calls and feedback of the last.

    None is what the program withholds.
    """

    tag: str
    kind: Literal["improved", "regressed", "still_failing", "still_right"]
    inputs: Mapping[str, str]
    before: str
    after: str
    gold: str | None
    feedback: str | None
    calls: str | None = None


@dataclass(frozen=True, slots=True)
class DecisionView:
    """Decision number `step` of an epoch; `edits` are (edit, fate) in words, as is `outcome`."""

    step: int
    accepted: bool
    edits: Sequence[tuple[str, str]]
    outcome: str


@dataclass(frozen=True, slots=True)
class Briefing:
    """The shared part of all prompts.

    Attributes:
        skill: the skill, or the draft to revise, with rule ids and rationales.
        task: inputs and outputs.
        sections: the editable sections.
        meta: the optimizer's own memory.
        rejected: rejected edits with the reason, a line each.
        knowledge: whether the optimizer may use its own knowledge.
        last: effects of the last candidates on training cases, the newest first, for reflections and drafts.
        first_decides: whether the target is told that the first of several matching rules decides.
        tools: descriptions of an agent's tools and their arguments, a line each.
        lead: the text above the first rules; empty if the skill already contains it.
        opens: whether the target opens the skill on demand, which is a step of a trajectory.
        renames_tools: whether the section `tools` may rename them.
        answered: whether the examples have right answers, shown or withheld.
        scripts: section, file and rule of each script.
    """

    skill: str
    task: TaskPlan
    sections: Sequence[SectionView] = ()
    meta: str = ""
    rejected: Sequence[str] = ()
    knowledge: Knowledge = "open"
    last: Sequence[CandidateEffect] = ()
    first_decides: bool = False
    tools: Sequence[str] = ()
    lead: str = ""
    opens: bool = False
    renames_tools: bool = False
    answered: bool = True
    scripts: Sequence[tuple[str, str, str]] = ()


@dataclass(frozen=True, slots=True)
class ReflectRequest:
    """The request of one reflection.

    Attributes:
        kind: of the trajectories.
        trajectories: one minibatch.
        edit_budget: the most edits of the reply.
        right: near successes for contrast with failures.
        confusion: the answers by right answer.
        kept_back: whether some failures are held out of all prompts of the step.
        lapses: whether to classify failures as defects of the skill or lapses in following it.
        rule_counts: whether to mark rules as helpful and harmful.
        lookups: the most lookups in the trajectories, whose steps are omitted then.
        others: the number of further trajectories for lookups.
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
    """The request of a draft, which is written from cases instead of edits.

    Attributes:
        written: names of the sections to write.
        wrong: failures, related ones together.
        right: successes.
        cases: further training examples with their right answers.
        confusion: the answers by right answer.
        kept_back: whether some failures are held out of the prompt.
        mostly_right: whether most cases of the batch are successes.
        tried: whether the skill is a draft, and `wrong` and `right` are the cases of its trial.
        refused: rules that were left out of the draft because of the sessions in the data, each with the reason.
        cite: whether each rule names the cases that it comes from, because they are from recorded sessions.
    """

    written: Sequence[str]
    wrong: Sequence[TrajectoryView]
    right: Sequence[TrajectoryView]
    cases: Sequence[CaseView]
    confusion: Sequence[ConfusionRow] = ()
    kept_back: bool = False
    mostly_right: bool = False
    tried: bool = False
    refused: Sequence[tuple[str, str]] = ()
    cite: bool = False


def reflect_messages(brief: Briefing, request: ReflectRequest) -> Messages:
    """Ask for edits that cure failures, or preserve successes."""
    return _render("reflect", brief, **_values(request))


def aggregate_messages(
    brief: Briefing,
    *,
    patches: Sequence[PatchView],
    most: int,
    edit_budget: int,
    cases: Sequence[TrajectoryView] = (),
) -> Messages:
    """Ask to merge the patches of several minibatches into one of at most `most` edits; `cases` are those they cite."""
    rows = [(each.kind, each.summary, [_edit_json(EditView(edit)) for edit in each.edits]) for each in patches]
    return _render("aggregate", brief, patches=rows, most=most, edit_budget=edit_budget, trajectories=cases)


def budget_messages(brief: Briefing, *, edits: Sequence[EditView], most: int) -> Messages:
    """Ask how many of the edits to make in this step, at most `most`."""
    rows = [_edit_json(view) for view in edits]
    return _render("budget", brief, edits=rows, edit_budget=most)


def rewrite_messages(brief: Briefing, *, edits: Sequence[EditView], rewritten: Sequence[str]) -> Messages:
    """Ask to rewrite the sections `rewritten`, so that they do what the chosen edits suggest."""
    named = _with_limits(brief, rewritten)
    return _render("rewrite", brief, edits=[_edit_json(view) for view in edits], rewritten=named)


def draft_messages(brief: Briefing, request: DraftRequest) -> Messages:
    """Ask for new texts of whole sections."""
    values = _values(request)
    named = _with_limits(brief, values.pop("written"))
    has_rules = any(section.name in request.written and section.used for section in brief.sections)
    # A Jinja filter is too slow: for the cases of a whole split it takes longer than the rest of the prompt.
    has_calls = any(case.calls for case in request.cases)
    return _render("draft", brief, sections_to_write=named, has_rules=has_rules, has_calls=has_calls, **values)


def tidy_messages(brief: Briefing, *, written: Sequence[str], confusion: Sequence[ConfusionRow] = ()) -> Messages:
    """Ask to rewrite the sections `written` shorter and in order; notes below the rules contain their support."""
    return _render("tidy", brief, tidied=_with_limits(brief, written), confusion=confusion)


def slow_update_messages(brief: Briefing, *, section: str, limit: int | None, pairs: Sequence[PairView]) -> Messages:
    """Ask for a new text of the slow section `section` from pairs of answers."""
    return _render("slow_update", brief, section=section, limit=limit, pairs=pairs)


def meta_skill_messages(brief: Briefing, *, decisions: Sequence[DecisionView], in_vain: bool = False) -> Messages:
    """Ask for a new memory after the decisions of an epoch; `in_vain` if none of them changed the skill."""
    return _render("meta_skill", brief, decisions=decisions, in_vain=in_vain)


def lookup_messages(
    messages: Sequence[Mapping[str, str]], *, asked: str, hits: Sequence[HitView], text: str, left: int
) -> Messages:
    """Append a lookup and its answer to the conversation; `left` is the number of remaining lookups."""
    answer = _template("lookup").render(hits=hits, text=text, left=left).strip()
    return (*(dict(m) for m in messages), {"role": "assistant", "content": asked}, _user(answer))


def reask_messages(messages: Sequence[Mapping[str, str]], reply: str, problem: str) -> Messages:
    """Append an unreadable reply and its problem to the conversation."""
    again = _template("reask").render(problem=problem).strip()
    return (*(dict(m) for m in messages), {"role": "assistant", "content": reply or "(empty)"}, _user(again))


def _render(name: str, brief: Briefing, **values: Any) -> Messages:
    task = brief.task
    named = {
        "inputs": field_views(task.inputs),
        "outputs": field_views(task.outputs),
        "rollout": rollout_text(task.rollout),
    }
    one_turn = task.rollout.one_turn
    system = _template("system").render(first_decides=brief.first_decides, one_turn=one_turn, opens=brief.opens)
    return (
        {"role": "system", "content": system.strip()},
        _user(_template(name).render(**{**_values(brief), "task": named}, **values).strip()),
    )


def _values(view: Briefing | ReflectRequest | DraftRequest) -> dict[str, Any]:
    return {each.name: getattr(view, each.name) for each in fields(view)}


def _with_limits(brief: Briefing, names: Sequence[str]) -> list[tuple[str, int | None]]:
    limits = {section.name: section.limit for section in brief.sections}
    return [(name, limits.get(name)) for name in names]


def _user(content: str) -> Message:
    return {"role": "user", "content": content}


def field_views(fields: Sequence[FieldPlan]) -> list[dict[str, str]]:
    """Return inputs or outputs for a prompt."""
    return [{"name": f.name, "type": f.type.text, "about": f.about or ""} for f in fields]


def rollout_text(rollout: RolloutPlan) -> str:
    """Describe what the target does in one rollout."""
    kind = rollout.kind

    def limit(name: str) -> JsonValue:
        default = ENVIRONMENT_DEFAULTS[name] if kind == "environment" else default_of("task", "rollout", name)
        return rollout.settings.get(name, default)

    if kind == "react":
        calls = "one or more tools" if rollout.settings.get("tool_calls") == "native" else "one tool"
        return f"react (the target calls {calls} a turn, in at most {limit('turns')} turns, then answers)"
    if kind == "environment":
        does = "acts" if rollout.with_tools is None else "calls tools and acts"
        return f"environment (the target {does} in at most {limit('turns')} turns)"
    if kind == "code":
        return f"code (the target writes and runs Python in at most {limit('rounds')} rounds, then answers)"
    if kind == "harbor":
        turns = rollout.settings.get("turns", HARBOR_DEFAULTS["turns"])
        return f"harbor (the target runs shell commands in at most {turns} turns, then hidden tests score the files)"
    return f"{kind} (an agent that works in a folder of files)" if is_agent(kind) else kind


def _edit_json(view: EditView) -> str:
    """Write an edit on one line without empty values, in the form that a model has to write."""
    value = view.edit.model_dump(mode="json", exclude_defaults=True)
    if view.cured is not None:
        value["cured"] = f"{view.cured} of {view.tried}"
    if view.near:
        value["broke"] = f"{view.broke} of {view.near}"
    return json.dumps(value, ensure_ascii=False)


@cache
def prompt_template(folder: Path, name: str) -> Template:
    """Return a prompt of a folder."""
    environment = templates(folder)
    environment.filters["fence"] = fence
    environment.globals["how_to_rename"] = HOW_TO_RENAME
    return environment.get_template(f"{name}.j2")


def _template(name: str) -> Template:
    return prompt_template(_PROMPTS, name)
