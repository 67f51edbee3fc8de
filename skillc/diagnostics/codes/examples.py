"""Codes SK430 to SK439, SK520 and SK521: what `skillc check --data` finds in the examples."""

from __future__ import annotations

import json
from collections.abc import Mapping

from skillc.diagnostics.codes.code import Code

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


def _code(
    number: int,
    title: str,
    explanation: str,
    texts: tuple[str, str],
    files: Mapping[str, str],
    mended: Mapping[str, str] | None = None,
) -> Code:
    stage = "data" if number < 500 else "gates"
    return Code(f"SK{number}", stage, title, explanation, *texts, files=files, mended=mended or {}, found_by="data")


_SAME = (_program(), _program())


def _role(text: str) -> str:
    return _program().replace('frozen section role = "You route."', f'frozen section role = "{text}"')


CODES: tuple[Code, ...] = (
    _code(
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
    _code(
        431,
        "an example with two answers",
        "Inputs that are the same but for case, blanks and punctuation have "
        "answers that exclude each other. No skill can have both right, and the optimizer is taught the one and the "
        "other.",
        _SAME,
        _files(train=(*_TRAIN, ("wrong invoice!", "shipping"))),
        _files(train=(*_TRAIN, ("wrong invoice!", "billing"))),
    ),
    _code(
        432,
        "a text that quotes training examples",
        "Five or more words in a row of a section, or of the skill that was compiled "
        "beside the program, stand in inputs or answers of the training split. What is learnt by heart does not help "
        "with other inputs. Words that more than two different inputs share are wording of the task, and don't count; "
        "nor do declared labels.",
        (_role("Who says I was charged twice today means billing."), _role("A double charge is for billing.")),
        _files(train=(("I was charged twice today", "billing"), *_TRAIN[1:])),
    ),
    _code(
        433,
        "a text that quotes what it is measured on",
        "Five or more words in a row of a section, or of the skill that was "
        "compiled beside the program, stand in inputs or answers of the validation or test split. The score then says "
        "nothing about new inputs. Words that more than two different inputs share are wording of the task, such as an "
        "instruction in each row, and don't count.",
        (_role("The wrong name and address is for billing."), _role("What is on an invoice is for billing.")),
        _files(),
    ),
    _code(
        434,
        "a label that no example has",
        "The label is declared, and no row of the data has it as its answer. Nothing "
        "can be learnt of it, and nothing measures it.",
        (_program().replace('| "shipping"', '| "shipping" | "account"'), _program()),
        _files(),
    ),
    _code(
        435,
        "a label that one side lacks",
        "A label that validation or test has and train has not can't be learnt (a "
        "warning); one that train alone has is never measured (a note).",
        _SAME,
        _files(train=(_TRAIN[0], _TRAIN[2])),
        _files(),
    ),
    _code(
        436,
        "a column that is mostly empty",
        "Most rows have nothing in the column of an input or a field. Perhaps another column is meant.",
        (
            _program().replace("input ticket: text;", "input ticket: text; input order: text | none;"),
            _program(),
        ),
        _files(),
    ),
    _code(
        437,
        "data that can't be used",
        "The data is read as a compile reads it. The message names the file and the line: a file or a "
        "column that is not there, a value of another type, a label that is not declared, an example or a group on two "
        "sides.",
        _SAME,
        _files(train=(*_TRAIN, ("Where to log in", "acount"))),
        _files(),
    ),
    _code(
        439,
        "what was noticed while the data was read",
        "Rows that count once because they are equal in everything, examples that "
        "stand on no side, inputs with two different answers.",
        _SAME,
        _files(train=(*_TRAIN, _TRAIN[0])),
        _files(),
    ),
    _code(
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
    _code(
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
