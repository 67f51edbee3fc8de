"""The reports of `compile` and `compile --sanity`: JSON and tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from fractions import Fraction
from typing import TYPE_CHECKING

from pydantic import JsonValue
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skillc.budget.judging import share_of, with_share
from skillc.data.problems import location_text
from skillc.document.skill import for_target
from skillc.gates.units import format_amount
from skillc.items.report import gains_block, gains_json, judging_json, judging_lines, shown_metrics
from skillc.json_values import objects_in, rounded
from skillc.language.loop import SPENDING_CAPS
from skillc.optimize.engine import Engine, SearchState, unexplained_examples
from skillc.outcomes import ArmScore
from skillc.plan.judges import judges_of
from skillc.plan.lock import lock_json
from skillc.plan.models import OPTIMIZER, TARGET, judges
from skillc.plan.schema import Plan
from skillc.review.confidence import (
    ARM_WORDS,
    SPLIT_WORDS,
    confidence_lines,
    detectable_words,
    gain_words,
    look_words,
    noise_words,
    signal_words,
)
from skillc.run.time_left import book_total
from skillc.stats.verdict import Verdict
from skillc.text import counted, joined

if TYPE_CHECKING:
    from skillc.pipeline.compile import Compiled
    from skillc.pipeline.sanity import SanityResult

_SHOWN_PLACES = 6
VERDICT_STYLE = {"improved": "bold green", "worse": "bold red", "no significant gain": "yellow", "unverified": "yellow"}


def compile_json(compiled: Compiled) -> dict[str, JsonValue]:
    """Return the object that `compile --json` prints; verdict, test and validation are those of the lock."""
    lock = lock_json(compiled.lock)
    return {
        "format_version": 1,
        "confidence": list(confidence_lines(compiled.lock, compiled.trained.engine.plan.goal)),
        **{name: lock[name] for name in ("verdict", "reason", "test", "validation", "stopped", "quarantined")},
        **({"signal": lock["signal"]} if "signal" in lock else {}),
        "baselines": {name: rounded(mean) for name, mean in compiled.baselines.items()},
        "gain_over_none": rounded(compiled.tested.over_none),
        "parts": {name: _parts_json(tables) for name, tables in compiled.tested.parts.items()},
        "spent": compiled.spent,
        **_judges_json(compiled),
        "judging": judging_json(compiled.items),
        "gains": gains_json(compiled.items, shown_metrics(compiled.items)),
        "served": [served.to_json() for served in compiled.served],
        "ahead": {"sent": compiled.trained.engine.ahead.sent, "wasted": compiled.trained.engine.ahead.wasted},
        "interrupted": compiled.interrupted,
        "lost": None if compiled.lost is None else compiled.lost.message,
        "unexplained": [each.id for each in unexplained_examples(compiled.trained.engine, compiled.trained.state)],
        "decisions": compiled.trained.state.decisions,
        "accepted": compiled.trained.state.accepted,
        "required": compiled.trained.engine.plan.required_verdict,
        "delivered": compiled.withheld is None,
        "below_initial": _is_below(compiled.tested.verdict),
        "artifact": None if compiled.withheld else str(compiled.artifact),
        "candidate": str(compiled.artifact) if compiled.withheld else None,
        "kept": [str(path) for path in compiled.kept],
    }


def _judges_json(compiled: Compiled) -> dict[str, JsonValue]:
    """Return the usage and the comparisons of the judges; nothing without judges."""
    engine = compiled.trained.engine
    if not judges_of(engine.plan):
        return {}
    pairs, by_order, instructions = engine.rollouts.judged()
    counts: dict[str, JsonValue] = {"pairs": pairs, "by_order": by_order, "instructions": instructions}
    shares = _judges_share(engine.plan, compiled.spent)[1]
    share: dict[str, JsonValue] = {name.removesuffix("_nano"): rounded(each) for name, each in shares.items()}
    return {"judges": {"spent": dict(judge_spent(engine.plan, compiled.spent)), "share": share, **counts}}


def _parts_json(tables: tuple[dict[str, ArmScore], dict[str, ArmScore]]) -> JsonValue:
    """Return the means of one part of the goal, as the lock has them for the goal."""
    return {
        split: {name: {"mean": rounded(arm.mean), "n": arm.n} for name, arm in arms.items()}
        for split, arms in zip(("validation", "test"), tables, strict=True)
    }


def compile_table(compiled: Compiled, goal: str) -> RenderableType:
    """Return the report of a compile for a terminal."""
    tested = compiled.tested
    measured = tested.verdict.gain is not None
    gain = gain_words(compiled.lock, compiled.trained.engine.plan.goal) if measured else ""
    rows = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    rows.add_column(goal)
    rows.add_column(SPLIT_WORDS["validation"], justify="right")
    rows.add_column(SPLIT_WORDS["test"], justify="right")
    for name, label in ARM_WORDS.items():
        style = "bold" if name == "best" else ""
        rows.add_row(label, _score(tested.validation[name]), _score(tested.test[name]), style=style)
        for metric, (validation, test) in tested.parts.items():
            shown = (_part(arms[name], compiled, metric) for arms in (validation, test))
            rows.add_row(f"  {metric}", *shown, style="dim")
    if tested.always_read is not None:
        rows.add_row("compiled skill, always read", *map(_score, tested.always_read), style="dim")
    for name, mean in compiled.baselines.items():
        rows.add_row(f"{name} (no model)", "", percent(mean), style="dim")
    return Group(
        Text(),
        *_headline(compiled),
        rows,
        Text(),
        _verdict(tested.verdict, _unbeaten(compiled), gain),
        *map(Text, [*_certainty(compiled), *_compared(compiled)]),
        *judging_lines(compiled.items),
        *_gains(compiled),
        Text("\n".join(_facts(compiled))),
    )


def _compared(compiled: Compiled) -> list[str]:
    """Return the value of skill, text and description, and the openings of the skill, on the test split."""
    tested, lines = compiled.tested, list[str]()
    if tested.over_none is not None:
        lines.append(f"compared  {points(tested.over_none)} points against no skill on test (not part of the verdict)")
    none, offered = tested.test["none"].mean, tested.test["best"].mean
    always = tested.always_read[1].mean if tested.always_read is not None else None
    if none is not None and offered is not None and always is not None:
        worth = f"text {points(always - none)} points (always read against no skill)"
        lines.append(f"worth     {worth}, description {points(offered - always)} (offered against always read)")
    if tested.opened is not None:
        score = tested.opened[1]
        if score.verified:
            shares = f"precision {percent(score.precision)}, recall {percent(score.recall)}"
            where = f"{score.hits} of {score.wanted} where it should be, {score.strays} of {score.others} elsewhere"
            lines.append(f"opened    {where}: {shares} on test")
        elif score.wanted or score.others:
            missing = "no near miss" if score.wanted else "no example of the skill"
            lines.append(f"opened    unverified: test has {missing}")
    return lines


def _certainty(compiled: Compiled) -> list[str]:
    """Return the certainty of the result in the wording of every view, and how the gates respond to chance alone."""
    lock, goal = compiled.lock, compiled.trained.engine.plan.goal
    found = [signal_words(goal), look_words(lock), detectable_words(lock, goal), noise_words(lock, goal)]
    null = compiled.tested.null_arm
    if null is not None and null.changed and null.gates is not None:
        found.append(f"the gates accept the initial skill against itself in {percent(null.gates.chance)}")
    labels = ["certainty", *[""] * len(found)]
    return [f"{label:<10}{line}" for label, line in zip(labels, filter(None, found), strict=False)]


def _gains(compiled: Compiled) -> list[RenderableType]:
    """Return the gains by split if another metric measures the truth; otherwise the gains that vanish."""
    metrics = shown_metrics(compiled.items)
    found = gains_block(compiled.items, metrics)
    if len(metrics) > 1 and found:
        return [*found, Text()]
    return [each for each in found if isinstance(each, Text) and each.plain.startswith("vanishes")]


def _headline(compiled: Compiled) -> list[Text]:
    """Return the warning that the skill was not delivered, or was delivered and did worse on test."""
    verdict, withheld = compiled.tested.verdict, compiled.withheld
    arms = compiled.tested.test
    scores = f"{percent(arms['best'].mean)} on test, the initial skill {percent(arms['initial'].mean)}"
    if withheld is not None:
        text = f"not delivered: the verdict is `{withheld.verdict}`, and `{withheld.required}` is required"
        if _is_below(verdict):
            text += f"; the candidate has {scores}"
    elif _is_below(verdict):
        text = f"below the initial skill: the compiled skill has {scores}, and was delivered; "
        text += "`require improved` in the program prevents that"
    else:
        return []
    return [Text(text, style="bold red" if _is_below(verdict) else "bold yellow"), Text()]


def _is_below(verdict: Verdict) -> bool:
    """Return whether the skill did worse than the initial one on test, significantly or not."""
    return verdict.gain is not None and verdict.gain < 0


def _part(arm: ArmScore, compiled: Compiled, metric: str) -> str:
    """Render the mean of a part of the goal in its unit."""
    if arm.mean is None:
        return "–"
    plan = compiled.trained.engine.plan.metric(metric)
    unit = plan.shown_unit
    return percent(arm.mean) if unit == "%" else format_amount(arm.mean, unit, 2)


def sanity_json(found: SanityResult) -> dict[str, JsonValue]:
    """Return the object that `compile --sanity --json` prints."""
    return {
        "format_version": 1,
        "verdict": "unverified",
        "examples": found.examples,
        "stages": {**asdict(found.funnel)},
        "broken": found.broken,
        "message": found.message,
        "hint": found.hint,
        "before": rounded(found.before),
        "after": rounded(found.after),
        "changed": found.changed,
        "skill": for_target(found.skill),
        "stopped": found.stopped,
        "spent": found.spent,
    }


def sanity_text(found: SanityResult, goal: str) -> Text:
    """Return the report of a sanity check: counts of each stage, the broken one, and the skill if it changed."""
    funnel = found.funnel
    stages = (
        f"{funnel.failures} of {found.examples} failed, {funnel.answered} of {funnel.asked} reflections read, "
        f"{funnel.edits} edits proposed, {funnel.fitting} fit the skill, {funnel.curing} passed the screen, "
        f"{funnel.accepted} of {funnel.candidates} candidates accepted"
    )
    text = Text(f"sanity    {found.examples} training examples, also used as validation; nothing is written\n")
    text.append(f"{goal:<9} {percent(found.before)} before, {percent(found.after)} after\n")
    text.append(f"stages    {stages}\n")
    text.append("verdict   ")
    text.append("unverified", style=VERDICT_STYLE["unverified"])
    broken = f"`{found.broken}` is broken: " if found.broken else ""
    text.append(f"   {broken}{found.message}\n", style="red" if found.broken else "")
    if found.hint:
        text.append(f"          {found.hint}\n")
    text.append("\n".join(spent_lines(found.spent)))
    if found.changed:
        text.append(f"\n\n{for_target(found.skill).rstrip()}", style="dim")
    return text


def _score(arm: ArmScore) -> str:
    return f"{percent(arm.mean)} of {arm.n}" if arm.mean is not None else "–"


def percent(value: Fraction | None) -> str:
    """Render a mean of the goal: `61.9 %`."""
    return "–" if value is None else f"{float(value) * 100:.1f} %"


def points(value: Fraction) -> str:
    """Render a difference of two means: `+12.1`; a rounded 0 has no minus sign."""
    return f"{float(value) * 100:+z.1f}"


def _unbeaten(compiled: Compiled) -> str:
    """Name the best model-free baseline if the compiled skill does not beat it on test."""
    name, mean = max(compiled.baselines.items(), key=lambda item: item[1], default=("", Fraction(0)))
    best = compiled.tested.test["best"].mean
    return f"not above `{name}` (no model): {percent(mean)}" if best is not None and name and best <= mean else ""


def _verdict(verdict: Verdict, unbeaten: str, gain: str = "") -> Text:
    """Return the line of the verdict; `gain` is in the words of every view."""
    line = Text("verdict   ")
    line.append(verdict.verdict, style="yellow" if unbeaten else VERDICT_STYLE[verdict.verdict])
    if unbeaten:
        line.append(f"   {unbeaten}")
    if verdict.reason:
        line.append(f"   {verdict.reason}")
    if gain:
        line.append(f"   {gain}")
    return line


def _facts(compiled: Compiled) -> list[str]:
    stopped, engine = compiled.trained.stopped, compiled.trained.engine
    lines = [*spent_lines(compiled.spent), *judge_lines(engine.plan, compiled.spent, engine.rollouts.judged())]
    lines += _judges_lines(engine.plan, compiled.spent)
    if book_total(compiled.spent, "paid").get("calls") != book_total(compiled.spent, "charged").get("calls"):
        lines.append(f"paid      {spent_line(compiled.spent, 'paid')} over all sessions; the rest came from the cache")
    lines += [f"served    {served.line}" for served in compiled.served]
    if engine.ahead.sent:
        lines.append(f"ahead     prefetched {engine.ahead.sent:,} rollouts, {engine.ahead.wasted:,} wasted")
    on = ""
    if compiled.interrupted or stopped == "time":
        on = "; the same command resumes"
    elif stopped in SPENDING_CAPS:
        on = f"; the same command with a larger `{stopped}` resumes"
    lines.append(f"stopped   {compiled.lock.stopped}, {compiled.trained.state.accepted} accepted{on}")
    lines += _look_at_lines(engine, compiled.trained.state)
    if compiled.lost is not None:
        lines += [f"lost      {compiled.lost.message}", f"          {compiled.lost.hint}"]
    withheld = compiled.withheld
    if withheld is None:
        lines.append(f"skill     {compiled.artifact}")
    else:
        lines.append(f"skill     {withheld.path} is {'unchanged' if withheld.delivered else 'not written yet'}")
        lines.append(f"candidate {compiled.artifact}; `--require none` delivers it")
    if compiled.kept:
        names = joined([str(path) for path in compiled.kept])
        lines.append(f"kept      {names}: edited during the compile, so the new skill is in another folder")
    return lines


def _look_at_lines(engine: Engine, state: SearchState) -> list[str]:
    """Return the places of training examples whose answers may be wrong: the optimizer found no rule for them."""
    found = unexplained_examples(engine, state)
    if not found:
        return []
    lines = [
        f"look at   {counted(len(found), 'training example')} for which the optimizer saw no rule: answers may be wrong"
    ]
    by_file: dict[str, list[int]] = {}
    for each in found:
        if (place := engine.dataset.places.get(each.id)) is not None:
            by_file.setdefault(place[0], []).append(place[1])
    for file, (first, *others) in ((file, sorted(numbers)) for file, numbers in by_file.items()):
        more = [f"{len(others) - _SHOWN_PLACES:,} more"] if len(others) > _SHOWN_PLACES else []
        lines.append(f"          {joined([location_text(file, first), *map(str, others[:_SHOWN_PLACES]), *more])}")
    return lines


def spent_line(spent: dict[str, JsonValue], book: str = "charged") -> str:
    """Render calls, tokens and dollars of the whole run in one book."""
    total = book_total(spent, book)
    calls = total.get("calls")
    if not isinstance(calls, int):
        return "nothing"
    nano = total.get("cost_nano")
    most = "at most " if _bounds(total) is not None else ""
    cost = f"{most if nano else ''}${nano / 1e9:,.2f}" if isinstance(nano, int) else "an unknown price"
    return f"{counted(calls, 'call')}, {most}{total.get('tokens'):,} tokens, {cost}"


def spent_lines(spent: dict[str, JsonValue]) -> list[str]:
    """Render the charges, and which part of them is a bound."""
    lines, total = [f"spent     {spent_line(spent)}"], book_total(spent, "charged")
    found = _bounds(total)
    if found is not None:
        calls, tokens = found
        of = "its" if calls == total.get("calls") == 1 else f"of {calls:,} of {total.get('calls'):,} calls the"
        lines.append(f"          {of} usage was not reported: {tokens:,} tokens are reserved bounds")
    return lines


def judge_spent(plan: Plan, spent: Mapping[str, JsonValue]) -> dict[str, dict[str, JsonValue]]:
    """Return calls, tokens and nano-dollars (None if unknown) of each judge with a model of its own, by role."""
    charged = spent.get("charged")
    lines = objects_in(charged.get("lines")) if isinstance(charged, Mapping) else []
    found: dict[str, dict[str, JsonValue]] = {}
    for role in sorted({*judges(plan)} - {TARGET, OPTIMIZER}):
        own = [line for line in lines if line["role"] == role]
        costs = [line["cost_nano"] for line in own]
        known = [cost for cost in costs if isinstance(cost, int)]
        found[role] = {
            "calls": sum(line["calls"] for line in own if isinstance(line["calls"], int)),
            "tokens": sum(line["tokens"] for line in own if isinstance(line["tokens"], int)),
            "cost_nano": sum(known) if len(known) == len(costs) else None,
        }
    return found


def _judges_share(plan: Plan, spent: dict[str, JsonValue]) -> tuple[dict[str, int | None], dict[str, float | None]]:
    """Return calls, tokens and nano-dollars of all judges with a model of their own, and the shares of the run."""
    judges, whole = judge_spent(plan, spent).values(), book_total(spent, "charged")
    taken, shares = dict[str, int | None](), dict[str, float | None]()
    for name in ("calls", "tokens", "cost_nano"):
        values = [own[name] for own in judges]
        known = [value for value in values if isinstance(value, int)]
        taken[name], total = sum(known) if len(known) == len(values) else None, whole.get(name)
        shares[name] = share_of(taken[name], total if isinstance(total, int) else None)
    return taken, shares


def _judges_lines(plan: Plan, spent: dict[str, JsonValue]) -> list[str]:
    """Render the total usage of judges with a separate model; nothing without such a judge."""
    taken, shares = _judges_share(plan, spent)
    if not taken["calls"]:
        return []
    cost = taken["cost_nano"]
    parts = {
        "calls": counted(taken["calls"], "call"),
        "tokens": f"{taken['tokens'] or 0:,} tokens",
        "cost_nano": "an unknown cost" if cost is None else f"${cost / 10**9:,.2f}",
    }
    shown = ", ".join(with_share(text, shares[name]) for name, text in parts.items())
    return [f"judges    {shown} of the run; an exact metric costs none"]


def judge_lines(plan: Plan, spent: Mapping[str, JsonValue], counts: tuple[int, int, int] = (0, 0, 0)) -> list[str]:
    """Render what each judge took, how often the order decided a comparison, and answers that address their judge."""
    lines = []
    for role, own in judge_spent(plan, spent).items():
        cost = own["cost_nano"]
        dollars = f"${cost / 10**9:.2f}" if isinstance(cost, int) else "an unknown cost"
        lines.append(f"judge     {role}: {own['calls']:,} calls, {own['tokens']:,} tokens, {dollars}")
    pairs, by_order, instructions = counts
    if pairs:
        lines.append(f"          the order decided {by_order:,} of {pairs:,} comparisons")
    if instructions:
        lines.append(f"          {counted(instructions, 'verdict')} reported instructions in the answer")
    return lines


def _bounds(total: Mapping[str, JsonValue]) -> tuple[int, int] | None:
    """Return the number of calls without reported usage and their reserved tokens, None without such calls."""
    found = total.get("bounds")
    calls, tokens = (found.get("calls"), found.get("tokens")) if isinstance(found, dict) else (0, 0)
    return (calls, tokens) if isinstance(calls, int) and isinstance(tokens, int) and calls else None
