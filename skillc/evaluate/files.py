"""The rollouts of evaluations as files: CSV for tables, JUnit XML for CI."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree as Xml

from skillc.errors import SkillcError
from skillc.evaluate.rows import Row
from skillc.evaluate.run import Evaluation
from skillc.evaluate.scores import DONE, NOT_RUN, Gain, Score
from skillc.evaluate.skills import NONE
from skillc.files import write_atomically
from skillc.json_values import JsonObject, as_text, rounded

_NANO = 10**9
# What XML 1.0 cannot contain, and what moves a cursor.
_UNFIT = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# A spreadsheet treats a cell with such a start as a formula, unless it is a number.
_FORMULA = re.compile(r"(?![+-]?\d+(\.\d+)?\Z)\s*[=+\-@\t\r]")
_MOST_DETAIL = 4_000


def write_files(found: Sequence[Evaluation], csv_file: Path | None, junit_file: Path | None) -> list[str]:
    """Write the files that the user asked for, each atomically; return what could not be written yet.

    A test split that was not measured completely has no scores, so that nothing is written.

    Raises:
        SkillcError: a file cannot be written.
    """
    missing = []
    for file, text in ((csv_file, csv_text), (junit_file, junit_text)):
        if file is None:
            continue
        if not any(each.rows for each in found):
            missing.append(f"`{file}` is not written: there are no scores")
            continue
        try:
            write_atomically(file, text(found))
        except OSError as problem:
            raise SkillcError(f"`{file}` cannot be written: {problem.strerror}") from problem
    return missing


# ---- CSV ------------------------------------------------------------------------------------------


def csv_text(found: Sequence[Evaluation]) -> str:
    """Return a row for each rollout, with a header. Texts cannot become formulas of a spreadsheet."""
    rows = [row for each in found for row in each.rows]
    metrics = list(dict.fromkeys(name for row in rows for name in row.metrics or ()))
    part = next((each.job.by for each in found if each.job.by is not None), None)
    goal = found[0].job.plan.goal.name
    head = ["where", "split", "model", "role", "skill", "example", "group", *([f"by {part}"] if part else [])]
    head += ["sample", "state", f"goal {goal}", "right", *metrics, "seconds", "tokens", "dollars"]
    page = io.StringIO()
    writer = csv.writer(page, lineterminator="\n")
    writer.writerow([*map(_text, head), "answer", "expected", "detail"])
    for row in rows:
        texts = [row.where, row.split, row.model.model, row.model.role, row.skill, row.example, row.group]
        texts += [row.part or ""] if part else []
        scores = [_number((row.metrics or {}).get(name)) for name in metrics]
        is_measured = row.state == DONE
        writer.writerow(
            [
                *map(_text, texts),
                row.sample,
                row.state,
                _number(row.goal),
                int(row.right) if is_measured else "",
                *scores,
                "" if row.seconds is None else row.seconds,
                row.tokens if is_measured else "",
                _number(None if row.cost is None or not is_measured else Fraction(row.cost, _NANO), 9),
                _text(_values(row.answer)),
                _text(_values(row.expected)),
                _text(row.detail),
            ]
        )
    return page.getvalue()


def _number(value: Fraction | None, digits: int = 6) -> float | str:
    return "" if value is None else round(float(value), digits)


def _text(value: str) -> str:
    text = _clean(value)
    return f"'{text}" if _FORMULA.match(text) else text


def _values(values: JsonObject | None) -> str:
    """Return the values of an answer: the only one as it is, several with their names."""
    if not values:
        return ""
    if len(values) == 1:
        return as_text(next(iter(values.values())))
    return "\n".join(f"{name}: {as_text(value)}" for name, value in values.items())


def _clean(text: str) -> str:
    """Drop characters that XML cannot contain and control characters except tabs and line ends."""
    return _UNFIT.sub("", text)


# ---- JUnit ----------------------------------------------------------------------------------------


def junit_text(found: Sequence[Evaluation]) -> str:
    """Return JUnit XML: a suite for each skill under each model, a test case for each example.

    No skill and the reference are left out, unless nothing else was scored: their wrong answers are no news. Valid by
    the schemas of Jenkins (junit-10.xsd) and, for each suite, of Surefire.
    """
    suites = [suite for each in found for suite in _suites(each)]
    root = Xml.Element("testsuites", name=_clean(found[0].job.plan.skill.artifact))
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))
    root.set("time", f"{sum(float(suite.get('time', '0')) for suite in suites):.3f}")
    root.extend(suites)
    Xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _suites(found: Evaluation) -> Iterable[Xml.Element]:
    reference = found.job.arms.reference
    news = {arm.name for arm in found.job.arms.each} - {NONE, *([reference.name] if reference is not None else [])}
    kept = [row for row in found.rows if row.skill in news] if news else list(found.rows)
    for (role, skill), rows in groupby(kept, key=lambda row: (row.model.role, row.skill)):
        model = next(each for each in found.models if each.model.role == role)
        score = next(each for each in model.scores if each.arm.name == skill)
        gain = next((each for each in model.gains if each.arm.name == skill), None)
        several = " · ".join(filter(None, (found.job.where, model.label if len(found.models) > 1 else "")))
        yield _suite(found, list(rows), score, gain, several)


def _suite(found: Evaluation, rows: Sequence[Row], score: Score, gain: Gain | None, where: str) -> Xml.Element:
    job = found.job
    parts = [job.plan.skill.artifact, job.split, *([where] if where else []), score.arm.label]
    name = _clean(" · ".join(parts))
    cases = [_case(found, row, name) for row in rows]
    suite = Xml.Element("testsuite", name=name, tests=str(len(rows)))
    suite.set("failures", str(sum(case.find("failure") is not None for case in cases)))
    suite.set("errors", str(sum(case.find("error") is not None for case in cases)))
    suite.set("skipped", str(sum(case.find("skipped") is not None for case in cases)))
    suite.set("time", f"{sum(row.seconds or 0 for row in rows):.3f}")
    properties = Xml.SubElement(suite, "properties")
    for key, value in _facts(found, rows[0], score, gain):
        Xml.SubElement(properties, "property", name=key, value=_clean(value))
    suite.extend(cases)
    return suite


def _facts(found: Evaluation, row: Row, score: Score, gain: Gain | None) -> Iterable[tuple[str, str]]:
    yield "model", row.model.model
    yield "split", found.job.split
    yield "goal", found.job.plan.goal.name
    if score.goal.mean is not None:
        yield "mean", str(rounded(score.goal.mean))
    if score.interval is not None:
        yield "interval", " to ".join(str(rounded(end)) for end in score.interval)
    if gain is None or gain.verdict.gain is None:
        return
    reference = found.job.arms.reference
    yield "reference", reference.name if reference is not None else ""
    yield "gain", str(rounded(gain.verdict.gain))
    if gain.verdict.p is not None:
        yield "p", str(rounded(gain.verdict.p))
    yield "wins, losses, ties", f"{gain.duel.wins}, {gain.duel.losses}, {gain.duel.ties}"
    if gain.look:
        yield "verdict", gain.verdict.verdict


def _case(found: Evaluation, row: Row, suite: str) -> Xml.Element:
    """Return a test case: a failure if the goal is not the best possible, an error if nothing was measured."""
    name = row.example if found.job.plan.optimize.samples == 1 else f"{row.example} #{row.sample + 1}"
    # Viewers read a class name as packages with dots between them.
    place = suite.replace(".", "_").replace(" · ", ".")
    case = Xml.Element("testcase", classname=place, name=_clean(name), time=f"{row.seconds or 0:.3f}")
    if row.state == NOT_RUN:
        Xml.SubElement(case, "skipped", message="not reached")
    elif row.state != DONE:
        case.append(_problem("error", f"not measured: {row.state}", row.state, row.detail))
    elif not row.right:
        goal = found.job.plan.goal
        message = f"{goal.name} {rounded(row.goal)} of {rounded(goal.high)}"
        lines = [f"answer: {_values(row.answer)}", f"expected: {_values(row.expected)}", row.detail]
        case.append(_problem("failure", message, "wrong", "\n".join(filter(None, lines))))
    return case


def _problem(tag: str, message: str, kind: str, text: str) -> Xml.Element:
    found = Xml.Element(tag, message=_clean(message), type=kind)
    cleaned = _clean(text)
    found.text = cleaned if len(cleaned) <= _MOST_DETAIL else f"{cleaned[:_MOST_DETAIL]}…"
    return found
