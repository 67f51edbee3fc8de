"""`skillc why`: where a line of a skill comes from, and what removing it would cost by results at hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import JsonValue
from rich.console import Group, RenderableType
from rich.text import Text

from skillc.json_values import rounded
from skillc.plan.lock import text_key
from skillc.review.confidence import SPLIT_WORDS, detectable_words, difference, ends_of_difference, noise_words
from skillc.review.decisions import Decision
from skillc.review.log import bound_json, fitted, run_json
from skillc.review.origins import Origin
from skillc.review.removal import Comparison, Removal, removal_of
from skillc.review.run_view import RunView, other_stores
from skillc.review.show import edit_json
from skillc.review.stored import StoredRun
from skillc.review.terminal import block, difference_lines, facts, plain
from skillc.review.tracing import Traced, failures_behind, part_of
from skillc.review.words import NAMED, SHORT, bound_words, credit_words, edit_words
from skillc.text import counted, cut, listed

_MOST = 400
_FAILURES = 5


# ---- in a terminal --------------------------------------------------------------------------------


def why_table(view: RunView, line: Traced, path: str) -> RenderableType:
    """Return the origin of one line."""
    part = f"  {line.compiled.part}" if line.compiled is not None and line.compiled.part else ""
    head = plain(f"{path}:{line.number}{part}", "bold")
    rows = [*_written(view, line), *(_origin_rows(view, line) if line.origin is not None else ())]
    rows += list(_session_rows(view, line))
    rows += list(_removal_rows(view, line))
    words = _confidence(view) if line.origin is not None else ()
    notes = [*(plain(text, "dim") for text in words), *(plain(f"missing: {text}", "yellow") for text in view.missing)]
    text = block(plain(line.text.strip() or "(a blank line)"))
    return Group(head, text, Text(), facts(rows), *([Text()] if notes else []), *notes)


def sessions_behind(view: RunView, line: Traced) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the keys of the recorded sessions that a line cites by name and of the others that its author could read.

    A line by hand has none.
    """
    part = part_of(view, line) if line.by == "a step" else None
    if view.lock is None or part is None:
        return (), ()
    read = view.lock.sessions.get(text_key(part.text), ())
    cited = view.lock.cited.get(text_key(part.text), ())
    return cited, tuple(key for key in read if key not in cited)


def _session_rows(view: RunView, line: Traced) -> Iterator[tuple[str, RenderableType]]:
    cited, seen = sessions_behind(view, line)
    if cited or seen:
        yield "cites", plain(listed(cited, most=NAMED) if cited else "none by name")
    if seen:
        yield "read beside" if cited else "read", plain(listed(seen, most=NAMED))


def _written(view: RunView, line: Traced) -> Iterator[tuple[str, str | RenderableType]]:
    compiled = line.compiled
    if line.by == "nobody":
        yield "written", "a blank line, which separates parts of the file"
    elif line.by == "hand":
        what = "by hand after the compile; no step wrote this text, and no gate has seen it"
        yield "written", what
        if compiled is not None:
            yield "instead of", plain(compiled.text.strip())
            if compiled.origin is None:
                yield "which is", "of the program, unchanged by any step"
    elif line.by == "the program":
        place = f", {line.place}" if line.place else ""
        frozen = compiled is not None and compiled.part.startswith("frozen")
        yield "written", f"by the program{place}; {'no step can change it' if frozen else 'no step changed it'}"
    elif line.by == "unknown":
        yield "written", "not known: neither the program nor an accepted edit of this run has this text"


def _origin_rows(view: RunView, line: Traced) -> Iterator[tuple[str, str | RenderableType]]:
    origin = line.origin
    assert origin is not None
    decision, edit = origin.decision, origin.edit
    run = f" of run {decision.run[:SHORT]}" if decision.run else ""
    name = "written" if line.by == "a step" else "that by"
    heading = line.compiled is not None and "heading" in line.compiled.part
    first = "the step that gave the section its first text: " if heading else ""
    yield name, f"{first}{decision.place}, decision {decision.number}{run}: {decision.result}, {decision.reason}"
    if edit is not None:
        head, parts = edit_words(edit, view.skills.get(decision.incumbent))
        yield "edit", Group(plain(head), *difference_lines(parts))
        if edit.rationale:
            yield "why", cut(edit.rationale, _MOST)
    elif decision.guidance:
        yield "edit", f"rewrite of {decision.section}"
    yield "failures", _failures(view, origin)
    if edit is not None and edit.screen is not None:
        yield "screen", f"alone on training examples: {edit.screen.counts}"
    yield "gain", _gain_words(view, decision)
    if edit is not None and edit.credit is not None:
        yield "credit", credit_words("validation examples with its words", edit.credit)
    for text, place in origin.before:
        yield "before", f"{place}: {text}"


def _failures(view: RunView, origin: Origin) -> RenderableType:
    found = failures_behind(view, origin)
    if not found:
        made = origin.decision.maker
        if origin.decision.drafts or made == "draft":
            return plain("a draft is written from all failures of its batch; none is recorded for one line")
        return plain("none are recorded for it")
    lines: list[RenderableType] = [plain(f"it was written for {counted(len(found), 'training example')}")]
    for each in found[:_FAILURES]:
        answered = f", answered {each.answer}" if each.answer else ""
        right = f"right is {each.right}{answered}" if each.right else ""
        lines.append(plain(f"{each.id}  {right}"))
        if each.input:
            lines.append(block(plain(cut(each.input, 160), "dim")))
    rest = [each.id for each in found[_FAILURES:]]
    lines += [plain(f"and {listed(rest, most=NAMED)}")] if rest else []
    return Group(*lines)


def _gain_words(view: RunView, decision: Decision) -> str:
    goal, before, after = view.plan.goal, decision.incumbent_goal, decision.reached
    if before is None or after is None:
        return "not measured"
    others = len(decision.edits) - 1
    with_ = f" with the {counted(others, 'other edit')} of the step" if others > 0 else ""
    means = f"{bound_words(before, goal)} → {bound_words(after, goal)}"
    gained = f" ({difference(after.low - before.low, goal)})" if before.exact and after.exact else ""
    flips = f"+{decision.gains} −{decision.losses} on {decision.evaluated} of {decision.of}"
    return f"{SPLIT_WORDS['validation']}: {means}{gained}{with_}, {flips}"


def _removal_rows(view: RunView, line: Traced) -> Iterator[tuple[str, str | RenderableType]]:
    """Yield what removing the line would cost."""
    if line.by in ("nobody", "unknown"):
        return
    if line.by == "hand":
        yield "without it", f"no results at hand: nothing has measured it; {_compile_hint(view)}"
        return
    part = part_of(view, line)
    if part is None:
        if line.compiled is not None and line.compiled.part not in ("", "rule"):
            yield "without it", "not measured: it is no rule that could be left out alone"
        else:
            yield "without it", f"no results at hand: the texts of the skills are not known; {_measure_hint(view)}"
        return
    found = removal_of(view, part, line.origin, view.best, other_stores(view))
    if not found.is_known and line.compiled is not None and line.compiled.part.startswith("frozen"):
        yield "without it", "no results at hand: it is frozen, so no step has left it out"
        return
    lines = [_comparison_words(view, each) for each in found.comparisons]
    if found.associated is not None and not any(each.other == "nothing" for each in found.comparisons):
        lines += _associated_words(found)
    if not found.is_known:
        lines.append("no results at hand: no skill was measured that differs in it alone")
    yield "without it", Group(*(plain(each) for each in lines), plain(_measure_hint(view), "dim"))


def _measure_hint(view: RunView) -> str:
    return f"`skillc ablate {view.program.name} --dry-run` measures the skill without each rule"


def _compile_hint(view: RunView) -> str:
    return f"`skillc compile {view.program.name} --take-edits` takes it into the program"


def _comparison_words(view: RunView, found: Comparison) -> str:
    goal = view.plan.goal
    instead = "without it" if found.other == "nothing" else "with the text before"
    counts = f"{found.lost} lost, {found.won} won on {found.n} of {found.of} validation examples"
    if found.change is None:
        return f"measured in {found.place}: {instead} {counts}; those that can decide most were measured first"
    between = ""
    if found.interval is not None:
        between = f" (95 % interval {ends_of_difference(found.interval, goal)}, as for one rule alone)"
    return f"measured in {found.place}: {instead} {difference(found.change, goal)}{between}, {counts}"


def _associated_words(found: Removal) -> Iterator[str]:
    each = found.associated
    assert each is not None
    if not each.cured and not each.broke:
        yield "no validation example that changed has its words, so nothing shows that it is needed"
        return
    cured = f"about {counted(each.cured, 'validation example')}, which changed to right as it was written"
    if each.known:
        cured += f"; {each.right} of {each.known} are right under the compiled skill"
    yield f"{cured}. This is an association, not a test: another rule may cover them"
    if each.broke:
        yield f"{counted(each.broke, 'validation example')} changed to wrong as it was written"


def _confidence(view: RunView) -> tuple[str, ...]:
    if view.lock is None:
        return ()
    return noise_words(view.lock, view.plan.goal), detectable_words(view.lock, view.plan.goal)


def blame_table(view: RunView, lines: Sequence[Traced], path: str, width: int) -> RenderableType:
    """Return every line of a file with the place that wrote it before it."""
    marks = [_mark(line) for line in lines]
    size = max(map(len, marks), default=0)
    digits = len(str(len(lines)))
    parts: list[RenderableType] = [plain(path, "bold"), Text()]
    for line, mark in zip(lines, marks, strict=True):
        style = {"a step": "green", "hand": "yellow", "unknown": "red"}.get(line.by, "dim")
        row = plain(f"{mark:<{size}}", style).append(f"  {line.number:>{digits}}  ", style="dim")
        parts.append(row.append_text(plain(fitted(line.text, width - size - digits - 4) if line.text else "")))
    if any(line.by == "hand" for line in lines):
        parts += [Text(), plain("`by hand`: changed after the compile; no gate has seen it", "yellow")]
    return Group(*parts, *(plain(f"missing: {each}", "yellow") for each in view.missing))


def _mark(line: Traced) -> str:
    if line.by == "a step" and line.origin is not None:
        return line.origin.decision.place
    return {"hand": "by hand", "the program": "program", "unknown": "not known"}.get(line.by, "")


# ---- JSON -----------------------------------------------------------------------------------------


def why_json(view: RunView, lines: Sequence[Traced], path: str) -> dict[str, JsonValue]:
    """Return the object that `why --json` prints."""
    others = list(other_stores(view))
    return {**run_json(view), "file": path, "lines": [_line_json(view, line, others) for line in lines]}


def _line_json(view: RunView, line: Traced, others: Sequence[tuple[str, StoredRun]]) -> JsonValue:
    part = part_of(view, line) if line.by in ("a step", "the program") else None
    removal = removal_of(view, part, line.origin, view.best, others) if part is not None else None
    sessions: dict[str, JsonValue] = {}
    if view.lock is not None and view.lock.sessions:
        cited, seen = sessions_behind(view, line)
        sessions = {"sessions": [*sorted({*cited, *seen})], "cited": [*cited]}
    return {
        **sessions,
        "line": line.number,
        "text": line.text,
        "part": line.compiled.part if line.compiled is not None else "",
        "written_by": {"a step": "step", "nobody": "none", "the program": "program"}.get(line.by, line.by),
        "in_program": line.place,
        "replaced": line.compiled.text if line.by == "hand" and line.compiled is not None else None,
        "origin": None if line.origin is None else _origin_json(view, line.origin),
        "without": None if removal is None else _removal_json(removal),
    }


def _origin_json(view: RunView, origin: Origin) -> JsonValue:
    decision = origin.decision
    return {
        "run": decision.run,
        "place": decision.place,
        "decision": decision.number,
        "result": decision.result,
        "reason": decision.reason,
        "goal": {"incumbent": bound_json(decision.incumbent_goal), "candidate": bound_json(decision.reached)},
        "gains": decision.gains,
        "losses": decision.losses,
        "evaluated": decision.evaluated,
        "of": decision.of,
        "edit": edit_json(origin.edit) if origin.edit is not None else None,
        "failures": [
            {"id": each.id, "input": each.input, "right": each.right, "answer": each.answer}
            for each in failures_behind(view, origin)
        ],
        "before": [{"text": text, "place": place} for text, place in origin.before],
    }


def _removal_json(found: Removal) -> JsonValue:
    return {
        "comparisons": [
            {
                "place": each.place,
                "other": each.other,
                "lost": each.lost,
                "won": each.won,
                "n": each.n,
                "of": each.of,
                "change": rounded(each.change),
                "interval": None if each.interval is None else [rounded(end) for end in each.interval],
            }
            for each in found.comparisons
        ],
        "associated": None
        if found.associated is None
        else {
            "cured": found.associated.cured,
            "broke": found.associated.broke,
            "known": found.associated.known,
            "right": found.associated.right,
        },
    }
