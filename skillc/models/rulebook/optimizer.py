"""rulebook as an optimizer: it reads the prompts of `skillc/optimize/prompts` and replies in their JSON."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from skillc.models.rulebook.briefs import Brief, read_brief
from skillc.models.rulebook.induce import deciding
from skillc.models.rulebook.lookups import with_lookups
from skillc.models.rulebook.merge import aggregate
from skillc.models.rulebook.one_shot import draft, one_shot
from skillc.models.rulebook.propose import reflect
from skillc.models.rulebook.reading import texts
from skillc.models.rulebook.rewriting import rewrite, tidy
from skillc.models.rulebook.sentences import read_sentence
from skillc.models.rulebook.wording import default_text


def is_request(messages: Sequence[Mapping[str, object]]) -> bool:
    """Whether a prompt is one of the optimizer's: its first user message goes from a task to a request."""
    first = next(iter(texts(messages, "user")), "").strip()
    return first.startswith("<task>") and first.endswith("</request>")


def answer_optimizer(messages: Sequence[Mapping[str, object]]) -> str:
    """The reply to an optimizer's prompt; `{}` for a stage that is not known."""
    brief = read_brief(texts(messages, "user")[0])
    stage = STAGES.get(brief.request.get("stage", ""))
    reply = stage(brief) if stage else {}
    if brief.request.get("lookups"):
        reply = with_lookups(brief, messages, reply)
    return json.dumps(reply, ensure_ascii=False)


def budget(brief: Brief) -> dict[str, object]:
    """As many as cured at least one case or were not tried."""
    edits = brief.edits[0] if brief.edits else ()
    return {"edits": min(brief.budget, sum("cured" not in edit or _cured(edit) > 0 for edit in edits))}


def _cured(edit: Mapping[str, object]) -> int:
    found = re.match(r"\d+", str(edit.get("cured", "")))
    return int(found[0]) if found else 0


def slow_update(brief: Brief) -> dict[str, object]:
    """The old guidance with a default: the answer that was missed most often where no rule applied."""
    missed: Counter[str] = Counter()
    for case in brief.cases:
        line = deciding(brief, case)
        undecided = line is None or line[1].default
        if undecided and case.kind in ("still_failing", "regressed") and case.gold in brief.labels:
            missed[case.gold or ""] += 1
    if not missed:
        return {"guidance": brief.guidance}
    kept = [line for line in brief.guidance.splitlines() if not _is_default(line)]
    return {"guidance": "\n".join([*kept, default_text(missed.most_common(1)[0][0])])}


def _is_default(line: str) -> bool:
    read = read_sentence(re.sub(r"^\s*[-*]\s+", "", line))
    return read is not None and read.default


def meta_skill(brief: Brief) -> dict[str, object]:
    """How many patches were accepted, by what they did; what was tried in vain is then proposed last."""
    if not brief.decisions:
        return {"memory": brief.memory}
    accepted = sum(ok for ok, _ in brief.decisions)
    lines = [f"{accepted} of {len(brief.decisions)} patches were accepted in the last epoch."]
    for op in ("add", "replace", "delete", "move"):
        tried = [ok for ok, edits in brief.decisions for edit in edits if edit.startswith(op)]
        if tried:
            lines.append(f"{op}: {sum(tried)} of {len(tried)} edits were in accepted patches.")
    return {"memory": "\n".join(lines)}


STAGES: dict[str, Callable[[Brief], dict[str, object]]] = {
    "reflect": reflect,
    "aggregate": aggregate,
    "budget": budget,
    "rewrite": rewrite,
    "tidy": tidy,
    "draft": draft,
    "slow_update": slow_update,
    "meta_skill": meta_skill,
    "one_shot": one_shot,
}
