"""Codes SK412 to SK419: what is declared, and nothing writes to or speaks of."""

from __future__ import annotations

from skillc.diagnostics.codes.code import Code
from skillc.diagnostics.codes.samples import program


def _code(number: int, title: str, explanation: str, bad: str, good: str) -> Code:
    return Code(f"SK{number}", "data", title, explanation, bad, good)


_RULES = "trainable section rules"
_SLOW = "trainable section rules; slow section guidance"
_RUBRIC = 'rubric right = """Is it right?"""\n'


def _guided(more: str = "", gate: str = "") -> str:
    return program(more, gate=gate).replace(_RULES, _SLOW)


CODES: tuple[Code, ...] = (
    _code(
        412,
        "a section without room for a rule",
        "The optimizer adds rules to a trainable section as long as its limit admits them. Into a limit of one token "
        "no rule fits, for a bullet and a word have two. Where the first text fills the limit (a note), a rule must be "
        "deleted or shortened before another can come.",
        program().replace(_RULES, f"{_RULES} {{ limit = 1 token }}"),
        program().replace(_RULES, f"{_RULES} {{ limit = 800 tokens }}"),
    ),
    _code(
        413,
        "a slow section that is never written",
        "Slow sections are rewritten at epoch ends, from examples that are run under the epoch's first and its "
        "last skill. With `slow_update = off`, with no example to compare, or in a run that ends before its first "
        "epoch does, the section stays as it is.",
        _guided("optimize { slow_update = off }"),
        _guided("optimize { slow_update_samples = 20 }"),
    ),
    _code(
        414,
        "a gate for updates that never come",
        "A gate `for slow` decides on rewrites of slow sections and on nothing else. Without such a section, "
        "or where it is never written, the gate is never asked.",
        program().replace(
            "gate better =", "gate calm for slow = candidate.correct >= incumbent.correct\ngate better ="
        ),
        _guided().replace(
            "gate better =", "gate calm for slow = candidate.correct >= incumbent.correct\ngate better ="
        ),
    ),
    _code(
        415,
        "a metric or gate with parameters that nothing calls",
        "What has parameters does something only where it is called. In a library this is what the file is "
        "there for, and nothing is said.",
        program("gate most(m: metric) = candidate.m >= 50%"),
        program("gate most(m: metric) = candidate.m >= 50%", gate="most(correct)"),
    ),
    _code(
        416,
        "a rubric that no judge is given",
        "A rubric is what a judge judges by, and no metric names this one. Judges come with skillc 0.5.",
        program(_RUBRIC),
        program(),
    ),
    _code(
        417,
        "a field that nothing reads",
        "A field of `data` names a column for gates (`by = field`), for metrics and for `group`. Inputs and "
        "outputs have their columns by themselves. A program with a `python(...)` metric is not told this, for such a "
        "function is given the whole row.",
        program().replace('"trivia.jsonl"', '"trivia.jsonl"; field topic: text'),
        program(gate="regressed(correct, by = topic) <= 10%"),
    ),
    _code(
        418,
        "a declaration for others that nothing uses",
        "A `budget` or `optimize` with a name, and a section outside of a skill, do nothing by themselves. "
        "They are there to be referred to, here or in another file.",
        program("budget nightly { cost = $5 }"),
        program("budget nightly { cost = $5 }").replace("budget { epochs = 4 }", "budget = nightly { epochs = 4 }"),
    ),
    _code(
        419,
        "a trainable `about`, which nothing trains yet",
        "The language lets `about` be trained; this version of skillc edits sections alone, so it stays as it is "
        "written. Where the skill has no section to train, a run can change nothing, and a warning says so.",
        program().replace("about =", "trainable about ="),
        program(),
    ),
)
