"""Codes SK4xx: task, skill, data and metrics, what nothing uses, and what `skillc check --data` finds in examples."""

from __future__ import annotations

import json
from collections.abc import Mapping

from skillc.diagnostics.codes.code import Code
from skillc.diagnostics.codes.samples import program

_SOURCE = 'source = "trivia.jsonl"'
_RULES = "trainable section rules"

_DECLARED = (
    Code(
        401,
        "data without files, or with too many",
        "Either one `source` that is split, or `train`, `validation` and, for a final test, `test`.",
        program().replace(_SOURCE, 'train = "train.jsonl"'),
        program().replace(_SOURCE, 'train = "train.jsonl"; validation = "validation.jsonl"; test = "test.jsonl"'),
    ),
    Code(
        402,
        "a split that is none",
        "A split is train : validation : test, in shares or in numbers of examples; without the last part there is no "
        "final test, and the result stays `unverified`.",
        program().replace(_SOURCE, f"{_SOURCE}; split = 2 : 1 : 100 examples"),
        program().replace(_SOURCE, f"{_SOURCE}; split = 200 examples : 100 examples : 100 examples"),
    ),
    Code(
        403,
        "grouped by something else than a field",
        "`group` and `by` name an input or a declared field of the data. The gold answer is a field too, once it is "
        'declared under another name: `field gold: text { column = "answer" }`.',
        program(gate="regressed(correct, by = author) <= 5%"),
        program(gate="regressed(correct, by = topic) <= 5%"),
    ),
    Code(
        404,
        "a field that makes no groups",
        "Examples are grouped by a text, a label, a bool or a number.",
        program(gate="regressed(correct, by = topic) <= 5%").replace("topic: text", "topic: json"),
        program(gate="regressed(correct, by = topic) <= 5%"),
    ),
    Code(
        405,
        "a task without an input or an output",
        "The target is given at least one field, and answers at least one.",
        program().replace("input question: text; ", ""),
        program(),
    ),
    Code(
        406,
        "a frozen section without a text",
        "Nothing ever changes a frozen section, so it would stay empty.",
        program().replace(_RULES, f"frozen section role; {_RULES}"),
        program().replace(_RULES, f'frozen section role = "You know much."; {_RULES}'),
    ),
    Code(
        407,
        "`about` is missing, empty or too long",
        "An agent decides by `about` whether to load the skill: what it is for, and when to use it, in at most 1,024 "
        "characters.",
        program().replace('about = "Answer a trivia question."; ', ""),
        program(),
    ),
    Code(
        408,
        "nothing to train",
        "At least one section is `trainable` or `slow`, or the skill has a `trainable about`.",
        program().replace(_RULES, 'frozen section rules = "Guess."'),
        program(),
    ),
    Code(
        409,
        "a metric that nothing reads",
        "A note: the metric is measured on every rollout and shown in the report, but neither the goal nor a gate "
        "depends on it.",
        program("metric close = f1(answer)"),
        program("metric close = f1(answer)", gate="candidate.close >= incumbent.close"),
    ),
    Code(
        411,
        "a text above its own limit",
        "The first text of a section is longer than the section may be, so every edit would break the limit.",
        program().replace(_RULES, f'{_RULES} = "Say what you know, and no more." {{ limit = 3 tokens }}'),
        program().replace(_RULES, f'{_RULES} = "Say what you know, and no more." {{ limit = 300 tokens }}'),
    ),
    Code(
        420,
        "a text that opens a fence and does not close it",
        "Markdown reads all that follows an open code fence, or an open comment `<!--`, as part of it. In SKILL.md "
        "that would be the sections behind. Headings need no care: `#` and `##` in a text become `###`, since the "
        "headings of the sections are `##`.",
        program().replace(_RULES, f'frozen section role = "Answer so:\\n```\\nyes"; {_RULES}'),
        program().replace(_RULES, f'frozen section role = "Answer so:\\n```\\nyes\\n```"; {_RULES}'),
    ),
)


_SLOW = "trainable section rules; slow section guidance"
_RUBRIC = 'rubric right = """Is it right?"""\n'


def _guided(more: str = "", gate: str = "") -> str:
    return program(more, gate=gate).replace(_RULES, _SLOW)


_UNUSED = (
    Code(
        412,
        "a section without room for a rule",
        "The optimizer adds rules to a trainable section as long as its limit admits them. Into a limit of one token "
        "no rule fits, for a bullet and a word have two. Where the first text fills the limit (a note), a rule must be "
        "deleted or shortened before another can come.",
        program().replace(_RULES, f"{_RULES} {{ limit = 1 token }}"),
        program().replace(_RULES, f"{_RULES} {{ limit = 800 tokens }}"),
    ),
    Code(
        413,
        "a slow section that is never written",
        "Slow sections are rewritten at epoch ends, from examples that are run under the epoch's first and its "
        "last skill. With `slow_update = off`, with no example to compare, or in a run that ends before its first "
        "epoch does, the section stays as it is.",
        _guided("optimize { slow_update = off }"),
        _guided("optimize { slow_update_samples = 20 }"),
    ),
    Code(
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
    Code(
        415,
        "a metric or gate with parameters that nothing calls",
        "What has parameters does something only where it is called. In a library this is what the file is "
        "there for, and nothing is said.",
        program("gate most(m: metric) = candidate.m >= 50%"),
        program("gate most(m: metric) = candidate.m >= 50%", gate="most(correct)"),
    ),
    Code(
        416,
        "a rubric that no judge is given",
        "A rubric is what a judge judges by, and no metric names this one. Judges come with skillc 0.5.",
        program(_RUBRIC),
        program(),
    ),
    Code(
        417,
        "a field that nothing reads",
        "A field of `data` names a column for gates (`by = field`), for metrics and for `group`. Inputs and "
        "outputs have their columns by themselves. A program with a `python(...)` metric is not told this, for such a "
        "function is given the whole row.",
        program().replace('"trivia.jsonl"', '"trivia.jsonl"; field topic: text'),
        program(gate="regressed(correct, by = topic) <= 10%"),
    ),
    Code(
        418,
        "a declaration for others that nothing uses",
        "A `budget` or `optimize` with a name, and a section outside of a skill, do nothing by themselves. "
        "They are there to be referred to, here or in another file.",
        program("budget nightly { cost = $5 }"),
        program("budget nightly { cost = $5 }").replace("budget { epochs = 4 }", "budget = nightly { epochs = 4 }"),
    ),
    Code(
        419,
        "a trainable `about`, which nothing trains yet",
        "The language lets `about` be trained; this version of skillc edits sections alone, so it stays as it is "
        "written. Where the skill has no section to train, a run can change nothing, and a warning says so.",
        program().replace("about =", "trainable about ="),
        program(),
    ),
)


_PROGRAM = """language 1
task { input ticket: text; output team: "billing" | "shipping" }
skill route { about = "Route a ticket."; frozen section role = "You route."; trainable section rules }
model target    = "rulebook/v1"
model optimizer = "rulebook/v1"
data { DATA }
budget { epochs = 2 }
goal correct = exact_match(team)
gate better = candidate.correct > incumbent.correct
"""
_FILES = 'train = "train.jsonl"; validation = "validation.jsonl"; test = "test.jsonl"'
_TRAIN = (("I was charged twice", "billing"), ("Where is my parcel", "shipping"), ("Wrong invoice", "billing"))
_VALIDATION = (("The invoice shows the wrong name and address", "billing"), ("The box is broken", "shipping"))
_TEST = (("My card was declined at the very last step", "billing"), ("It never came", "shipping"))

Rows = tuple[tuple[str, str], ...]


def _program(more: str = "", data: str = _FILES) -> str:
    return _PROGRAM.replace("DATA", data) + more


def _files(train: Rows = _TRAIN, validation: Rows = _VALIDATION, test: Rows = _TEST) -> Mapping[str, str]:
    sides = {"train": train, "validation": validation, "test": test}
    return {f"{side}.jsonl": _lines(rows) for side, rows in sides.items()}


def _lines(rows: Rows) -> str:
    return "".join(json.dumps({"ticket": ticket, "team": team}) + "\n" for ticket, team in rows)


def _many(size: int) -> str:
    return _lines(tuple((f"ticket number {i}", "billing" if i % 2 else "shipping") for i in range(size)))


def _on_data(
    number: int,
    title: str,
    explanation: str,
    texts: tuple[str, str],
    files: Mapping[str, str],
    mended: Mapping[str, str] | None = None,
) -> Code:
    return Code(number, title, explanation, *texts, files=files, mended=mended or {}, found_by="data")


_SAME = (_program(), _program())


def _role(text: str) -> str:
    return _program().replace('frozen section role = "You route."', f'frozen section role = "{text}"')


_FOUND_IN_EXAMPLES = (
    _on_data(
        430,
        "an example that stands on two sides",
        "The inputs of an example of validation or test stand on another side too, "
        "but for case, blanks and punctuation. A skill may learn them by heart on the one side and be measured on the "
        "other, so the result is too good. Inputs that are the same to the letter never stand on two sides of a split. "
        "A `group` keeps together what belongs together.",
        _SAME,
        _files(test=(("i was charged twice!", "billing"), *_TEST[1:])),
        _files(),
    ),
    _on_data(
        431,
        "an example with two answers",
        "Inputs that are the same but for case, blanks and punctuation have "
        "answers that exclude each other. No skill can have both right, and the optimizer is taught the one and the "
        "other.",
        _SAME,
        _files(train=(*_TRAIN, ("wrong invoice!", "shipping"))),
        _files(train=(*_TRAIN, ("wrong invoice!", "billing"))),
    ),
    _on_data(
        432,
        "a text that quotes training examples",
        "Five or more words in a row of a section, or of the skill that was compiled "
        "beside the program, stand in inputs or answers of the training split. What is learnt by heart does not help "
        "with other inputs. Words that more than two different inputs share are wording of the task, and don't count; "
        "nor do declared labels.",
        (_role("Who says I was charged twice today means billing."), _role("A double charge is for billing.")),
        _files(train=(("I was charged twice today", "billing"), *_TRAIN[1:])),
    ),
    _on_data(
        433,
        "a text that quotes what it is measured on",
        "Five or more words in a row of a section, or of the skill that was "
        "compiled beside the program, stand in inputs or answers of the validation or test split. The score then says "
        "nothing about new inputs. Words that more than two different inputs share are wording of the task, such as an "
        "instruction in each row, and don't count.",
        (_role("The wrong name and address is for billing."), _role("What is on an invoice is for billing.")),
        _files(),
    ),
    _on_data(
        434,
        "a label that no example has",
        "The label is declared, and no row of the data has it as its answer. Nothing "
        "can be learnt of it, and nothing measures it.",
        (_program().replace('| "shipping"', '| "shipping" | "account"'), _program()),
        _files(),
    ),
    _on_data(
        435,
        "a label that one side lacks",
        "A label that validation or test has and train has not can't be learnt (a "
        "warning); one that train alone has is never measured (a note).",
        _SAME,
        _files(train=(_TRAIN[0], _TRAIN[2])),
        _files(),
    ),
    _on_data(
        436,
        "a column that is mostly empty",
        "Most rows have nothing in the column of an input or a field. Perhaps another column is meant.",
        (
            _program().replace("input ticket: text;", "input ticket: text; input order: text | none;"),
            _program(),
        ),
        _files(),
    ),
    _on_data(
        437,
        "data that can't be used",
        "The data is read as a compile reads it. The message names the file and the line: a file or a "
        "column that is not there, a value of another type, a label that is not declared, an example or a group on two "
        "sides.",
        _SAME,
        _files(train=(*_TRAIN, ("Where to log in", "acount"))),
        _files(),
    ),
    _on_data(
        439,
        "what was noticed while the data was read",
        "Rows that count once because they are equal in everything, examples that "
        "stand on no side, inputs with two different answers.",
        _SAME,
        _files(train=(*_TRAIN, _TRAIN[0])),
        _files(),
    ),
    _on_data(
        520,
        "a threshold below the weight of one example",
        "A mean over n examples of a metric that is right or wrong moves in steps of "
        "1/n. With 20 examples on validation `regressed(m) <= 1%` forbids every regression, `candidate.m >= 99%` asks "
        "for all of them, and a margin of 1% asks for no more than any gain. With `by = field` the smallest group "
        "counts.",
        (
            _program("gate safe = regressed(correct) <= 1%\n", 'source = "tickets.jsonl"'),
            _program("gate safe = regressed(correct) <= 20%\n", 'source = "tickets.jsonl"'),
        ),
        {"tickets.jsonl": _many(60)},
    ),
    _on_data(
        521,
        "a confidence or an e-value that so few examples can't give",
        "A paired test over n examples, or groups of the split, is never surer than "
        "1 - 1/2^n, and never surer than 1 - 1/10,000; with `over = run` the error is shared by all decisions of the "
        "run. A gate that asks for more never holds (a warning). Where k of n examples must improve and none may get "
        "worse, and k is more than a fifth of n, a note says so. With `e_value` the most that n examples can "
        "reach is the mean of (1 + bet)^n over the bets 1/8 to 7/8.",
        (
            _program("gate sure = confidence(candidate.correct > incumbent.correct) >= 95%\n"),
            _program("gate sure = confidence(candidate.correct > incumbent.correct) >= 95%\n"),
        ),
        _files(),
        {"validation.jsonl": _many(40)},
    ),
)

CODES: tuple[Code, ...] = (*_DECLARED, *_UNUSED, *_FOUND_IN_EXAMPLES)
