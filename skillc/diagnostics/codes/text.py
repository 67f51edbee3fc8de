"""Codes SK0xx and SK9xx: text, syntax, comments for skillc, and mistakes of skillc itself."""

from __future__ import annotations

from skillc.diagnostics.codes.code import Code
from skillc.diagnostics.codes.samples import program

_GENERAL = (
    Code(
        1,
        "something stands where it can't",
        "Every statement has one shape: `words (parameters) : type = value { block }`. The message names what could "
        "have stood at this place. A statement ends with its line, unless the line ends in an operator, `=`, `,` or "
        "`:`, a bracket is open, or the next line begins with an operator or `{`.",
        "goal score = 0.9 * * correct\n",
        "goal score = 0.9 * correct\n",
    ),
    Code(
        2,
        "a character that means nothing",
        "No part of the language begins with this character. Inside of strings and texts every character may stand.",
        "goal score = correct @ team\n",
        "goal score = correct\n",
    ),
    Code(
        3,
        "a bracket that is never closed",
        "The next statement begins, or the file ends, while this bracket is open. Where several could be meant, "
        "indentation decides which one is named.",
        'data {\n  source = "tickets.jsonl"\n\ngoal score = correct\n',
        'data {\n  source = "tickets.jsonl"\n}\n\ngoal score = correct\n',
    ),
    Code(
        4,
        "a bracket that closes nothing",
        "No bracket of this kind is open here. Perhaps one too many was written, or the opening one got lost.",
        "goal score = correct)\n",
        "goal score = correct\n",
    ),
    Code(
        10,
        "nested too deeply",
        "Brackets, calls and signs nest at most 100 levels deep. A sum or a product has at most 10,000 operators in a "
        "row. Give parts of the expression names.",
        "goal score = " + "(" * 101 + "1" + ")" * 101 + "\n",
        "goal score = 1\n",
    ),
    Code(
        11,
        "too many mistakes",
        "After 100 mistakes the rest of the file is not read; most likely it is not a program at all.",
        "task @\n" * 101,
        "task {\n}\n",
    ),
    Code(
        25,
        "a zipped skill",
        "Packed agent skills are zip files with the suffix `.skill` too. This one begins as they do. Unpack it; its "
        "`SKILL.md` can be the start of a program.",
        "PK\x03\x04\n",
        'use "./SKILL.md" as today\n',
    ),
)

_TEXTS = (
    Code(
        5,
        "a string without an end",
        'A string stands on one line between two `"`. Inside, `"` is written `\\"`. A text of several lines stands '
        'between two `"""`.',
        'model target = "openai/gpt-5.5\n',
        'model target = "openai/gpt-5.5"\n',
    ),
    Code(
        6,
        "a text without an end",
        'A text of several lines ends with `"""` on a line of its own. None was found before the next text or '
        "statement.",
        'frozen section style = """\n  Short sentences.\n\ngoal score = correct\n',
        'frozen section style = """\n  Short sentences.\n"""\n\ngoal score = correct\n',
    ),
    Code(
        7,
        "a closing fence behind words",
        'The `"""` that closes a text of several lines stands on a line of its own, so that the last line of the '
        'text can be seen to be one. Inside of a text `"""` is written `\\"""`.',
        'frozen section style = """\n  Short sentences."""\n',
        'frozen section style = """\n  Short sentences.\n"""\n',
    ),
    Code(
        8,
        "an unknown escape",
        'A string knows `\\"`, `\\\\`, `\\n`, `\\t`, `\\r`, `\\u00e9` and `\\u{1F600}`. A backslash is written `\\\\`. '
        'A text between `"""` needs no escapes.',
        'data { source = "data\\questions.csv" }\n',
        'data { source = "data/questions.csv" }\n',
    ),
    Code(
        18,
        "quotes of another kind",
        "Strings stand in straight double quotes. Word processors and chats turn them into curly ones.",
        "model target = “openai/gpt-5.5”\n",
        'model target = "openai/gpt-5.5"\n',
    ),
    Code(
        31,
        "a character that hides what a text says",
        "Characters that turn the direction of writing show a text in another order than it is read. Others show "
        "nothing at all and are still read, by a model too; and some are the end of a line in one editor and not in "
        "another, so that a statement seems to be a comment, or the reverse. In a string such a character can be "
        "written as an escape, `\\u{202e}`, which everybody sees.",
        program("# checked\u202e"),
        program("# checked"),
    ),
    Code(
        32,
        "the two sides of a merge",
        "git could not merge a place, and left both sides in it, between marks. Where that is the text of a section, "
        "it would be shown to a model as it stands, so such marks are a mistake in texts too; a text that speaks of "
        "them can indent them. Everything else is checked with the first side.",
        program("<<<<<<< HEAD\noptimize { batch = 20 }\n=======\noptimize { batch = 30 }\n>>>>>>> other"),
        program("optimize { batch = 20 }"),
    ),
    Code(
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
    Code(
        9,
        "a number with too many digits",
        "Numbers are exact, and may have 40 digits and an exponent of 30.",
        "budget { tokens = 1e400 }\n",
        "budget { tokens = 31M }\n",
    ),
    Code(
        20,
        "money that is not in dollars",
        "Prices of models are in dollars, so budgets are too. The `$` stands before the amount, without a space.",
        "budget { cost = €3 }\n",
        "budget { cost = $3 }\n",
    ),
    Code(
        21,
        "a number without a digit beside its point",
        "A number has digits on both sides of its point.",
        "metric brief = .5 * correct\n",
        "metric brief = 0.5 * correct\n",
    ),
)

_OPERATORS = (
    Code(
        14,
        "`=` where `==` is meant",
        "`=` gives a name its value; `==` compares.",
        'metric billing = team = "billing"\n',
        'metric billing = team == "billing"\n',
    ),
    Code(
        15,
        "logic in signs",
        "`and`, `or` and `not` are words.",
        "gate safe = better && !worse\n",
        "gate safe = better and not worse\n",
    ),
    Code(
        16,
        "an operator of another language",
        "Comparisons are `<`, `<=`, `>`, `>=`, `==` and `!=`; arithmetic is `+`, `-`, `*` and `/`.",
        "gate safe = candidate.correct ≥ incumbent.correct\n",
        "gate safe = candidate.correct >= incumbent.correct\n",
    ),
    Code(
        17,
        "a condition with branches",
        "There is no `if`, no `? :` and no loop. In a metric a condition counts as 0 or 1, so `(when) * a + (not when) "
        "* b` is `a` when the condition holds and `b` otherwise. A gate is itself a condition.",
        "metric paid = correct if urgent else brief\n",
        "metric paid = urgent * correct + (not urgent) * brief\n",
    ),
    Code(
        27,
        "an operator where `=` belongs",
        "A value is given with one plain `=`.",
        "goal score := correct\n",
        "goal score = correct\n",
    ),
    Code(
        28,
        "no power and no modulo",
        "`%` belongs to a number: `5%` is 0.05. A power is written as a product.",
        "metric steep = brief ** 2\n",
        "metric steep = brief * brief\n",
    ),
)

_STATEMENTS = (
    Code(
        12,
        "commas between statements",
        "Commas separate items of a list and arguments. Statements stand on lines of their own, or are separated by "
        "`;`.",
        "budget { epochs = 4, cost = $3 }\n",
        "budget { epochs = 4; cost = $3 }\n",
    ),
    Code(
        13,
        "`:` where `=` belongs",
        "A colon is followed by a type (`input ticket: text`), `=` by a value.",
        "trainable section rules { limit: 800 tokens }\n",
        "trainable section rules { limit = 800 tokens }\n",
    ),
    Code(
        19,
        "a comment of another language",
        "A comment begins with `#` and ends with its line. `///` documents the statement below it.",
        "goal score = correct  // the share of right answers\n",
        "goal score = correct  # the share of right answers\n",
    ),
    Code(
        22,
        "not a name",
        "A name begins with a letter and goes on with letters, digits and `_`. A hyphen is a minus. Names of the "
        "program stand without quotes. `route_tickets` becomes `route-tickets` where agents want it so.",
        "skill route-tickets {\n}\n",
        "skill route_tickets {\n}\n",
    ),
    Code(
        23,
        "a comma is missing",
        "Items of a list and arguments of a function are separated by commas.",
        'tools = ["house:act" "house:inventory"]\n',
        'tools = ["house:act", "house:inventory"]\n',
    ),
    Code(
        26,
        "a value is missing",
        "Something must follow `=`, and a type must follow `:`.",
        "budget {\n  cost =\n}\n",
        "budget {\n  cost = $3\n}\n",
    ),
    Code(
        29,
        "a block as a value",
        "A block belongs to its statement and stands at its end: `data { ... }`. Only what is given to a name, such "
        "as a string or a number, follows `=`.",
        'data = { source = "tickets.jsonl" }\n',
        'data { source = "tickets.jsonl" }\n',
    ),
    Code(
        30,
        "a reserved word",
        "`and`, `or` and `not` can't be names, and `use` can't begin a setting. All other words can.",
        "metric not = correct\n",
        "metric wrong = 1 - correct\n",
    ),
)

_SYNTAX = (*_GENERAL, *_TEXTS, *_NUMBERS, *_OPERATORS, *_STATEMENTS)


_UNREAD = "metric close = f1(answer)"


_COMMENTS = (
    Code(
        40,
        "a file that is no program",
        "There is no such file, it may not be read, or what it holds is no text in UTF-8. The other files of the "
        "command are checked all the same, and the exit status is 2. No text of a program can show it.",
    ),
    Code(
        41,
        "a suppression that can't be read",
        "A finding is suppressed by `# skillc: ignore[SK409] why it may stay`: the codes in square brackets, then the "
        "reason. At the end of a line it holds for the findings that begin on that line; on a line of its own for "
        "those in the statement below, its block included.",
        program(f"{_UNREAD}  # skillc: ignore SK409, the report shows it"),
        program(f"{_UNREAD}  # skillc: ignore[SK409] the report shows it"),
    ),
    Code(
        42,
        "a suppression without a reason",
        "Whoever reads the program later sees that something was passed over, and must be able to tell whether it "
        "still may be. So nothing is suppressed until the reason stands behind the codes.",
        program(f"{_UNREAD}  # skillc: ignore[SK409]"),
        program(f"{_UNREAD}  # skillc: ignore[SK409] the report shows it"),
    ),
    Code(
        43,
        "a suppression of a code that does not exist",
        "`skillc explain` lists all codes.",
        program(f"{_UNREAD}  # skillc: ignore[SK4O9] the report shows it"),
        program(f"{_UNREAD}  # skillc: ignore[SK409] the report shows it"),
    ),
    Code(
        44,
        "an error that can't be suppressed",
        "Warnings and notes may be passed over, an error may not: what it is about has no meaning, so there is "
        "nothing to go on with.",
        program(gate="regressed(correct) <= 5  # skillc: ignore[SK303] it is meant so"),
        program(gate="regressed(correct) <= 5%"),
    ),
    Code(
        45,
        "a suppression that suppresses nothing",
        "What it was for is gone, or begins on another line. It would hide the next finding of this code. Codes that "
        "only `skillc plan` or `skillc check --data` finds are judged there, on the program as it is written.",
        program("metric close = f1(answer)  # skillc: ignore[SK409] shown", gate="candidate.close > 0.5"),
        program("metric close = f1(answer)", gate="candidate.close > 0.5"),
    ),
)


_INTERNAL = (
    Code(
        901,
        "the formatter would have changed the program",
        "Before `skillc fmt` writes a file it proves that the result is the same program with the same "
        "comments, and that formatting it once more changes nothing. Here it did not come out so. This is a "
        "bug in skillc and none of yours: the file is as it was. Please report it with the statement that the "
        "message points at; until it is mended, every other verb works with the file as it stands.",
    ),
)

CODES: tuple[Code, ...] = (*_SYNTAX, *_COMMENTS, *_INTERNAL)
