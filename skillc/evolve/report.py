"""Format the report of a night, and the table of all nights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skillc.evolve.ledger import Json
from skillc.evolve.spending import HOPELESS
from skillc.gates.units import dollars, format_duration
from skillc.language.loop import SPENDING_CAPS
from skillc.models.ledger import NANO_PER_DOLLAR
from skillc.outcomes import MICRO
from skillc.text import counted, joined

_SHOWN_ROWS = 6


def night_status(record: Json) -> int:
    """Return the exit status of a night: 1 if the skill has fallen, else 0."""
    return int(record["drift"]["word"] == "fallen")


def night_report(record: Json, where: str = "") -> RenderableType:
    """Return the report of a night for a terminal; its last lines are the result and what a person does next.

    Args:
        record: of the night.
        where: the option that points commands to the manifest, such as `--project DIR`; empty in its folder.
    """
    sessions, rows = record["sessions"], record["rows"]
    apart = sum(sessions["apart"].values())
    suspect = sessions["apart"].get("suspect", 0)
    lines = []
    if record.get("repeated"):
        lines.append(
            "the night of this date has run already; `--again` runs another one with its own budget; the last:"
        )
    usable = f"{sessions['usable']:,} usable, {apart:,} set apart"
    lines += [
        f"night     {record['night']} of {record['date']}, version {record['version'][:12]}",
        f"sessions  {sessions['new']:,} new; in all {usable}" + (f" ({suspect:,} suspect)" if suspect else ""),
        f"rows      {rows['added']:,} added: {rows['train']:,} train, {rows['validation']:,} validation, "
        f"{rows['test']:,} test; {counted(len(record['recurring']), 'recurring task')}",
    ]
    lines += [f"          left out: {number:,} {why}" for why, number in rows["left_out"].items()]
    if record["replayed"]:
        lines.append(f"replayed  {replayed_line(record)}")
    lines.append(f"drift     {drift_line(record['drift'])}")
    if record["rolled_back"] and not record["rolled_back"]["to"]:
        lines.append(f"          not rolled back: {record['rolled_back']['problem']}")
    lines += [f"          the model changed, a likely cause: {each}" for each in record["drift"]["changed_models"]]
    if record["compiled"]:
        compiled = record["compiled"]
        failing = counted(compiled["failing"], "new row")
        lines.append(f"compiled  from the current skill, {failing} failing: {compiled_words(compiled)}")
        if named := compiled.get("unexplained"):
            lines.append(f"          no rule for {counted(len(named), 'training row')}, whose answers may be wrong:")
            lines += [f"          {name}" for name in named[:_SHOWN_ROWS]]
            lines += [f"          and {len(named) - _SHOWN_ROWS:,} more" for _ in range(len(named) > _SHOWN_ROWS)]
        if compiled.get("left_out"):
            arms, spared = joined(compiled["left_out"]), counted(compiled["spared"], "rollout")
            lines.append(f"          not measured: {arms}, {spared}; the challenge decides")
    if record["challenge"]:
        lines.append(f"challenge {challenge_line(record['challenge'])}")
    if record.get("clock"):
        lines.append(f"note      the clock went back: an earlier night is of {record['clock']}")
    lines += [f"note      {note}" for note in record["notes"]]
    lines += [
        f"error     {error_line(record['error'])}",
        f"spent     {spent_line(record)}",
        f"result    {result_line(record)}",
    ]
    head = "next"
    for line in next_lines(record, where):
        lines.append(f"{head:<10}{line}")
        head = ""
    return Text("\n".join(lines))


def replayed_line(record: Json) -> str:
    """Return how the current version does on rows that an earlier one failed, or that recur, in one line."""
    now, before = (record.get(name) or {} for name in ("replayed", "replayed_before"))
    line = f"{counted(len(now), 'row')} that an earlier version failed, or recur: {_mean_of(now)}"
    return line + (f", {_mean_of(before)} before" if before else "")


def _mean_of(scores: Mapping[str, int]) -> str:
    return _percent(sum(scores.values()) / len(scores) / MICRO)


def compiled_words(compiled: Json) -> str:
    """Return the result of a night's compile: what passed, what was refused, or why nothing was tried."""
    tried, stopped = compiled.get("tried"), compiled["stopped"]
    if compiled["changed"]:
        return "a candidate passed the gates"
    if tried == 0 and stopped == "budget":
        return "no budget was left"
    if tried == 0 and stopped in (*SPENDING_CAPS, "time"):
        return f"the cap on {stopped} was reached before the gates decided"
    if tried == 0:
        return f"the optimizer proposed nothing that could be tried ({stopped})"
    many = f" of {tried:,}" if tried else ""
    return f"no candidate{many} passed the gates ({stopped})"


def error_line(error: Json) -> str:
    """Return the state of the error budget over all nights, in one line."""
    line = f"{_share(error['spent'])} of {100 * error['declared']:g}% spent over all nights"
    if "challengers" in error:
        line += f" by {counted(error['challengers'], 'challenger')}; the next one spends {_share(error['next'])}"
    return line


def spent_line(record: Json) -> str:
    """Return what a night spent, with its caps."""
    spent = record["spent"]
    caps = spent.get("caps") or {}
    parts = [_counted_of(spent["calls"], caps.get("calls"), "call")]
    parts += [
        _counted_of(spent[name], cap, what)
        for name, what in (("tokens", "token"), ("judge_calls", "judge call"))
        if (cap := caps.get(name)) is not None
    ]
    parts.append(_cost_of(spent["nano"], caps.get("nano")))
    if (cap := caps.get("judge_nano")) is not None:
        parts.append(f"{_cost_of(spent['judge_nano'], cap)} for judges")
    seconds = caps.get("seconds")
    return ", ".join(parts) + (f", within {format_duration(Fraction(seconds))}" if seconds is not None else "")


def next_lines(record: Json, where: str = "") -> Iterator[str]:
    """Yield what a person can do after a night; nothing if the next night needs no person."""
    name, option = record.get("skill", "NAME"), f" {where}" if where else ""
    offered, rolled = record["offered"], record["rolled_back"]
    waiting = record.get("waiting") or (offered["digest"] if offered and offered["word"] == "held" else None)
    if waiting:
        yield f"skillc adopt {name}{option} --digest {waiting[:12]}   shows the difference, then asks"
        yield f"skillc reject {name}{option} --why REASON   if it is not wanted"
    elif offered is not None and offered["word"] == "adopted":
        yield f"skillc rollback {name}{option}   if it is not wanted"
    if rolled is not None and rolled["to"]:
        yield f"skillc installed{option} --versions   lists the versions; `rollback --to` brings one back"
    elif record["drift"]["word"] == "fallen":
        yield "requests or models changed since the lock: adopt what the nights stage, or compile again"
    unlabelled = record["rows"]["left_out"].get("not labelled", 0)
    if unlabelled and not record["rows"]["added"]:
        yield f"skillc sessions label   {counted(unlabelled, 'session')} without a label can teach nothing"


def drift_line(drift: Json) -> str:
    """Return the result of the drift test, in one line."""
    word = drift["word"]
    if word == "no reference":
        return "no reference: the lock has no score"
    if drift["mean"] is None:
        return f"no drift: no new task yet; the lock's score is {_percent(drift['locked'])}"
    low, high = drift["interval"]
    seen = (
        f"{_percent(drift['mean'])} on {counted(drift['rows'], 'new task')}, the lock has {_percent(drift['locked'])}; "
        f"95% confidence sequence {_percent(low)} to {_percent(high)}"
    )
    if word == "fallen":
        return f"fallen by {100 * drift['fallen_by']:.1f} points: {seen}"
    if word == "suspected":
        return f"suspected (evidence e = {drift['evidence']:.1f}; fallen at {drift['needed']:.0f}): {seen}"
    return f"no drift (evidence e = {_evidence(drift['evidence'])}; fallen at {drift['needed']:.0f}): {seen}"


def challenge_line(challenge: Json) -> str:
    """Return the state of a challenger, in one line."""
    head = f"{challenge['number']}, {challenge['word']}"
    if challenge["gain"] is None:
        return f"{head}: no test row that nobody has looked at yet"
    low, high = challenge["interval"]
    return (
        f"{head}: {100 * challenge['gain']:+.1f} points ({100 * low:+.1f} to {100 * high:+.1f}) on "
        f"{counted(challenge['rows'], 'task')} of {counted(challenge['nights'], 'night')}, "
        f"evidence e = {_evidence(challenge['evidence'])}; accepted at {challenge['needed']:.1f}, "
        f"dropped at {HOPELESS:g}"
    )


def result_line(record: Json) -> str:
    """Return the result of the night for the skill."""
    rolled = record["rolled_back"]
    if rolled is not None and rolled["to"] is not None:
        return f"rolled back to {rolled['to'][:12]}: {rolled['why']}"
    offered = record["offered"]
    if offered is not None and offered["word"] == "adopted":
        return f"adopted {offered['digest'][:12]} by the policy"
    if offered is not None and offered["word"] == "held":
        return f"staged {offered['digest'][:12]} for a person: {'; '.join(offered['reasons'])}"
    if offered is not None:
        return "not staged: the policy is `never`, or this version was rejected before"
    if rolled is not None:
        return f"not rolled back: {rolled['problem']}; {rolled['why']}"
    if record["drift"]["word"] == "fallen":
        return "the skill has fallen and was not rolled back again"
    if record["notes"] == ["nothing new"]:
        if record["sessions"]["new"]:
            return f"{counted(record['sessions']['new'], 'new session')}, but none gave a row; nothing spent"
        return "nothing new, nothing spent"
    challenge = record["challenge"]
    if challenge and challenge["word"] == "open":
        return "a challenger goes on with the next test rows"
    return "the current skill stays"


def log_table(records: Sequence[Json]) -> RenderableType:
    """Return the table of all nights, oldest first."""
    if not records:
        return Text("no night has run yet")
    table = Table(box=None, pad_edge=False, collapse_padding=True)
    for name in ("night", "date", "new", "usable", "suspect", "rows", "calls", "cost", "error", "drift", "result"):
        table.add_column(name, justify="left" if name in ("date", "drift", "result") else "right", no_wrap=True)
    for each in records:
        drift = each["drift"]
        left = each["error"]["declared"] - each["error"]["spent"]
        table.add_row(
            str(each["night"]),
            each["date"],
            f"{each['sessions']['new']:,}",
            f"{each['sessions']['usable']:,}",
            f"{each['sessions']['apart'].get('suspect', 0):,}",
            f"{each['rows']['added']:,}",
            f"{each['spent']['calls']:,}",
            _cost_of(each["spent"]["nano"], None),
            f"{_share(left)}",
            drift["word"],
            _short(each),
        )
    last = records[-1]
    heads = Text("new, usable, suspect: sessions; rows: added; error: what is left of the budget over all nights")
    return Group(table, Text(""), heads, Text(f"last: {result_line(last)}"))


def log_json(records: Sequence[Json]) -> Json:
    """Return the object that `evolve --log --json` prints."""
    return {"format_version": 1, "nights": list(records)}


def _short(record: Json) -> str:
    rolled, offered, challenge = record["rolled_back"], record["offered"], record["challenge"]
    if rolled is not None and rolled["to"]:
        return "rolled back"
    if offered is not None:
        return "staged" if offered["word"] == "held" else str(offered["word"])
    if rolled is not None:
        return "not rolled back"
    if challenge:
        return f"challenger {challenge['number']} {challenge['word']}"
    if record["compiled"]:
        return "no candidate"
    return "nothing new" if record["notes"] == ["nothing new"] else "measured"


def _evidence(value: float) -> str:
    return "over 1,000,000" if value > 1_000_000 else f"{value:.2g}" if value < 10 else f"{value:,.0f}"


def _share(value: float) -> str:
    return f"{100 * value:.2f}%"


def _counted_of(value: int, cap: int | None, what: str) -> str:
    return counted(value, what) if cap is None else f"{value:,} of {counted(cap, what)}"


def _cost_of(nano: int, cap: int | None) -> str:
    spent = dollars(Fraction(nano, NANO_PER_DOLLAR))
    return spent if cap is None else f"{spent} of {dollars(Fraction(cap, NANO_PER_DOLLAR))}"


def _percent(value: float) -> str:
    return f"{100 * value:.1f}%"
