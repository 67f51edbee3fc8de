"""Codes SK0xx: the text and its syntax."""

from __future__ import annotations

from skillc.diagnostics.codes.code import Code
from skillc.diagnostics.codes.samples import program


def _code(number: int, title: str, explanation: str, bad: str = "", good: str = "") -> Code:
    return Code(f"SK{number:03}", "syntax", title, explanation, bad, good)


_GENERAL = (
    _code(
        1,
        "something stands where it can't",
        "Every statement has one shape: `words (parameters) : type = value { block }`. The message names what could "
        "have stood at this place. A statement ends with its line, unless the line ends in an operator, `=`, `,` or "
        "`:`, a bracket is open, or the next line begins with an operator or `{`.",
        "goal score = 0.9 * * correct\n",
        "goal score = 0.9 * correct\n",
    ),
    _code(
        2,
        "a character that means nothing",
        "No part of the language begins with this character. Inside of strings and texts every character may stand.",
        "goal score = correct @ team\n",
        "goal score = correct\n",
    ),
    _code(
        3,
        "a bracket that is never closed",
        "The next statement begins, or the file ends, while this bracket is open. Where several could be meant, "
        "indentation decides which one is named.",
        'data {\n  source = "tickets.jsonl"\n\ngoal score = correct\n',
        'data {\n  source = "tickets.jsonl"\n}\n\ngoal score = correct\n',
    ),
    _code(
        4,
        "a bracket that closes nothing",
        "No bracket of this kind is open here. Perhaps one too many was written, or the opening one got lost.",
        "goal score = correct)\n",
        "goal score = correct\n",
    ),
    _code(
        10,
        "nested too deeply",
        "Brackets, calls and signs nest at most 100 levels deep. A sum or a product has at most 10,000 operators in a "
        "row. Give parts of the expression names.",
        "goal score = " + "(" * 101 + "1" + ")" * 101 + "\n",
        "goal score = 1\n",
    ),
    _code(
        11,
        "too many mistakes",
        "After 100 mistakes the rest of the file is not read; most likely it is not a program at all.",
        "task @\n" * 101,
        "task {\n}\n",
    ),
    _code(
        25,
        "a zipped skill",
        "Packed agent skills are zip files with the suffix `.skill` too. This one begins as they do. Unpack it; its "
        "`SKILL.md` can be the start of a program.",
        "PK\x03\x04\n",
        'use "./SKILL.md" as today\n',
    ),
)

_TEXTS = (
    _code(
        5,
        "a string without an end",
        'A string stands on one line between two `"`. Inside, `"` is written `\\"`. A text of several lines stands '
        'between two `"""`.',
        'model target = "openai/gpt-5.5\n',
        'model target = "openai/gpt-5.5"\n',
    ),
    _code(
        6,
        "a text without an end",
        'A text of several lines ends with `"""` on a line of its own. None was found before the next text or '
        "statement.",
        'frozen section style = """\n  Short sentences.\n\ngoal score = correct\n',
        'frozen section style = """\n  Short sentences.\n"""\n\ngoal score = correct\n',
    ),
    _code(
        7,
        "a closing fence behind words",
        'The `"""` that closes a text of several lines stands on a line of its own, so that the last line of the '
        'text can be seen to be one. Inside of a text `"""` is written `\\"""`.',
        'frozen section style = """\n  Short sentences."""\n',
        'frozen section style = """\n  Short sentences.\n"""\n',
    ),
    _code(
        8,
        "an unknown escape",
        'A string knows `\\"`, `\\\\`, `\\n`, `\\t`, `\\r`, `\\u00e9` and `\\u{1F600}`. A backslash is written `\\\\`. '
        'A text between `"""` needs no escapes.',
        'data { source = "data\\questions.csv" }\n',
        'data { source = "data/questions.csv" }\n',
    ),
    _code(
        18,
        "quotes of another kind",
        "Strings stand in straight double quotes. Word processors and chats turn them into curly ones.",
        "model target = “openai/gpt-5.5”\n",
        'model target = "openai/gpt-5.5"\n',
    ),
    _code(
        31,
        "a character that hides what a text says",
        "Characters that turn the direction of writing show a text in another order than it is read. Others show "
        "nothing at all and are still read, by a model too; and some are the end of a line in one editor and not in "
        "another, so that a statement seems to be a comment, or the reverse. In a string such a character can be "
        "written as an escape, `\\u{202e}`, which everybody sees.",
        program("# checked\u202e"),
        program("# checked"),
    ),
    _code(
        32,
        "the two sides of a merge",
        "git could not merge a place, and left both sides in it, between marks. Where that is the text of a section, "
        "it would be shown to a model as it stands, so such marks are a mistake in texts too; a text that speaks of "
        "them can indent them. Everything else is checked with the first side.",
        program("<<<<<<< HEAD\noptimize { batch = 20 }\n=======\noptimize { batch = 30 }\n>>>>>>> other"),
        program("optimize { batch = 20 }"),
    ),
    _code(
        24,
        "a character that looks like another",
        "No-break spaces, zero-width characters and full-width signs come with copied text. They look right and are "
        "something else; so are letters of another script that look like Latin ones. `skillc` names them, and replaces "
        "them if asked to.",
        "goal\u00a0score = correct\n",
        "goal score = correct\n",
    ),
)

_NUMBERS = (
    _code(
        9,
        "a number with too many digits",
        "Numbers are exact, and may have 40 digits and an exponent of 30.",
        "budget { tokens = 1e400 }\n",
        "budget { tokens = 31M }\n",
    ),
    _code(
        20,
        "money that is not in dollars",
        "Prices of models are in dollars, so budgets are too. The `$` stands before the amount, without a space.",
        "budget { cost = €3 }\n",
        "budget { cost = $3 }\n",
    ),
    _code(
        21,
        "a number without a digit beside its point",
        "A number has digits on both sides of its point.",
        "metric brief = .5 * correct\n",
        "metric brief = 0.5 * correct\n",
    ),
)

_OPERATORS = (
    _code(
        14,
        "`=` where `==` is meant",
        "`=` gives a name its value; `==` compares.",
        'metric billing = team = "billing"\n',
        'metric billing = team == "billing"\n',
    ),
    _code(
        15,
        "logic in signs",
        "`and`, `or` and `not` are words.",
        "gate safe = better && !worse\n",
        "gate safe = better and not worse\n",
    ),
    _code(
        16,
        "an operator of another language",
        "Comparisons are `<`, `<=`, `>`, `>=`, `==` and `!=`; arithmetic is `+`, `-`, `*` and `/`.",
        "gate safe = candidate.correct ≥ incumbent.correct\n",
        "gate safe = candidate.correct >= incumbent.correct\n",
    ),
    _code(
        17,
        "a condition with branches",
        "There is no `if`, no `? :` and no loop. In a metric a condition counts as 0 or 1, so `(when) * a + (not when) "
        "* b` is `a` when the condition holds and `b` otherwise. A gate is itself a condition.",
        "metric paid = correct if urgent else brief\n",
        "metric paid = urgent * correct + (not urgent) * brief\n",
    ),
    _code(
        27,
        "an operator where `=` belongs",
        "A value is given with one plain `=`.",
        "goal score := correct\n",
        "goal score = correct\n",
    ),
    _code(
        28,
        "no power and no modulo",
        "`%` belongs to a number: `5%` is 0.05. A power is written as a product.",
        "metric steep = brief ** 2\n",
        "metric steep = brief * brief\n",
    ),
)

_STATEMENTS = (
    _code(
        12,
        "commas between statements",
        "Commas separate items of a list and arguments. Statements stand on lines of their own, or are separated by "
        "`;`.",
        "budget { epochs = 4, cost = $3 }\n",
        "budget { epochs = 4; cost = $3 }\n",
    ),
    _code(
        13,
        "`:` where `=` belongs",
        "A colon is followed by a type (`input ticket: text`), `=` by a value.",
        "trainable section rules { limit: 800 tokens }\n",
        "trainable section rules { limit = 800 tokens }\n",
    ),
    _code(
        19,
        "a comment of another language",
        "A comment begins with `#` and ends with its line. `///` documents the statement below it.",
        "goal score = correct  // the share of right answers\n",
        "goal score = correct  # the share of right answers\n",
    ),
    _code(
        22,
        "not a name",
        "A name begins with a letter and goes on with letters, digits and `_`. A hyphen is a minus. Names of the "
        "program stand without quotes. `route_tickets` becomes `route-tickets` where agents want it so.",
        "skill route-tickets {\n}\n",
        "skill route_tickets {\n}\n",
    ),
    _code(
        23,
        "a comma is missing",
        "Items of a list and arguments of a function are separated by commas.",
        'tools = ["house:act" "house:inventory"]\n',
        'tools = ["house:act", "house:inventory"]\n',
    ),
    _code(
        26,
        "a value is missing",
        "Something must follow `=`, and a type must follow `:`.",
        "budget {\n  cost =\n}\n",
        "budget {\n  cost = $3\n}\n",
    ),
    _code(
        29,
        "a block as a value",
        "A block belongs to its statement and stands at its end: `data { ... }`. Only what is given to a name, such "
        "as a string or a number, follows `=`.",
        'data = { source = "tickets.jsonl" }\n',
        'data { source = "tickets.jsonl" }\n',
    ),
    _code(
        30,
        "a reserved word",
        "`and`, `or` and `not` can't be names, and `use` can't begin a setting. All other words can.",
        "metric not = correct\n",
        "metric wrong = 1 - correct\n",
    ),
)

CODES: tuple[Code, ...] = (*_GENERAL, *_TEXTS, *_NUMBERS, *_OPERATORS, *_STATEMENTS)
