"""Codes SK0xx and SK9xx: text, syntax, suppressions, and bugs of skillc."""

from __future__ import annotations

from skillc.diagnostics.codes.code import Code, program

_SYNTAX = (
    Code(
        1,
        "unexpected token",
        "The message names the tokens that are valid here. Every statement has the form `words (parameters) : type = "
        "value { block }` and ends with its line, unless the line ends in an operator, `=`, `,` or `:`, a bracket is "
        "open, or the next line begins with an operator or `{`.",
        "goal score = 0.9 * * correct\n",
        "goal score = 0.9 * correct\n",
    ),
    Code(
        2,
        "unknown character",
        "No token begins with this character. Strings and texts may contain any character.",
        "goal score = correct @ team\n",
        "goal score = correct\n",
    ),
    Code(
        3,
        "unclosed bracket",
        "The next statement begins, or the file ends, before this bracket is closed. If several brackets are open, "
        "indentation decides which one is reported.",
        'data {\n  source = "tickets.jsonl"\n\ngoal score = correct\n',
        'data {\n  source = "tickets.jsonl"\n}\n\ngoal score = correct\n',
    ),
    Code(
        4,
        "unmatched closing bracket",
        "No bracket of this kind is open here. Remove it, or add the opening bracket.",
        "goal score = correct)\n",
        "goal score = correct\n",
    ),
    Code(
        10,
        "nested too deeply",
        "Brackets, calls and signs nest at most 100 levels deep, and a sum or product has at most 10,000 operators. "
        "Move parts of the expression into named metrics.",
        "goal score = " + "(" * 101 + "1" + ")" * 101 + "\n",
        "goal score = 1\n",
    ),
    Code(
        11,
        "too many syntax errors",
        "Parsing stops after 100 errors. The file is probably not a program.",
        "task @\n" * 101,
        "task {\n}\n",
    ),
    Code(
        25,
        "zipped skill",
        "Packaged agent skills are zip files that also have the suffix `.skill`, and this file is one. Unpack it; a "
        "program can import the sections of its `SKILL.md`.",
        "PK\x03\x04\n",
        'use "./SKILL.md" as today\n',
    ),
    Code(
        5,
        "unterminated string",
        'A string is on one line between two `"`. Write `\\"` for a quote inside it, and use `"""` for several lines.',
        'model target = "openai/gpt-5.5\n',
        'model target = "openai/gpt-5.5"\n',
    ),
    Code(
        6,
        "unterminated text",
        'A text of several lines ends with `"""` on a separate line. None follows before the next text or statement.',
        'frozen section style = """\n  Short sentences.\n\ngoal score = correct\n',
        'frozen section style = """\n  Short sentences.\n"""\n\ngoal score = correct\n',
    ),
    Code(
        7,
        'closing `"""` after other words',
        'The closing `"""` is on a separate line, so that the last line of the text is unambiguous. Write `\\"""` for '
        "three quotes inside a text.",
        'frozen section style = """\n  Short sentences."""\n',
        'frozen section style = """\n  Short sentences.\n"""\n',
    ),
    Code(
        8,
        "unknown escape sequence",
        'A string may contain `\\"`, `\\\\`, `\\n`, `\\t`, `\\r`, `\\u00e9` and `\\u{1F600}`. Write `\\\\` for a '
        'backslash. A text between `"""` needs no escapes.',
        'data { source = "data\\questions.csv" }\n',
        'data { source = "data/questions.csv" }\n',
    ),
    Code(
        18,
        "curly quotes",
        "Strings are in straight double quotes. Word processors and chats replace them with curly ones.",
        "model target = “openai/gpt-5.5”\n",
        'model target = "openai/gpt-5.5"\n',
    ),
    Code(
        31,
        "invisible or direction-changing character",
        "Bidirectional controls display a text in another order than it is read. Zero-width characters are invisible, "
        "but a model reads them. Some line separators end a line in one editor only, so that a statement looks like a "
        "comment. Remove the character, or write it as a visible escape in a string: `\\u{202e}`.",
        program("# checked\u202e"),
        program("# checked"),
    ),
    Code(
        32,
        "unresolved merge conflict",
        "git left both sides of a merge between conflict markers. Keep one side and remove the markers. They are an "
        "error inside texts too, because a model would read them; indent markers that a text should quote. The rest "
        "of the file is checked with our side.",
        program("<<<<<<< HEAD\noptimize { batch = 20 }\n=======\noptimize { batch = 30 }\n>>>>>>> other"),
        program("optimize { batch = 20 }"),
    ),
    Code(
        24,
        "lookalike character",
        "Copied text often contains no-break spaces, zero-width characters, full-width signs, or letters of another "
        "script that look like Latin ones. The message names the character, and its fix replaces it.",
        "goal\u00a0score = correct\n",
        "goal score = correct\n",
    ),
    Code(
        9,
        "number with too many digits",
        "Numbers are exact. They have at most 40 digits and an exponent of at most 30.",
        "budget { tokens = 1e400 }\n",
        "budget { tokens = 31M }\n",
    ),
    Code(
        20,
        "currency other than dollars",
        "Model prices are in dollars, so budgets are too. Write `$` before the amount, without a space.",
        "budget { cost = €3 }\n",
        "budget { cost = $3 }\n",
    ),
    Code(
        21,
        "missing digit next to the decimal point",
        "A number has digits on both sides of its decimal point.",
        "metric brief = .5 * correct\n",
        "metric brief = 0.5 * correct\n",
    ),
    Code(
        14,
        "`=` instead of `==`",
        "`=` assigns a value; `==` compares.",
        'metric billing = team = "billing"\n',
        'metric billing = team == "billing"\n',
    ),
    Code(
        15,
        "logical operator written as a symbol",
        "The logical operators are the words `and`, `or` and `not`.",
        "gate safe = better && !worse\n",
        "gate safe = better and not worse\n",
    ),
    Code(
        16,
        "unsupported operator",
        "The comparisons are `<`, `<=`, `>`, `>=`, `==` and `!=`; the arithmetic operators are `+`, `-`, `*` and `/`.",
        "gate safe = candidate.correct ≥ incumbent.correct\n",
        "gate safe = candidate.correct >= incumbent.correct\n",
    ),
    Code(
        17,
        "unsupported control flow",
        "The language has no `if`, no `? :` and no loops. In a metric a condition counts as 0 or 1, so `(when) * a + "
        "(not when) * b` is `a` if the condition holds and `b` otherwise. A gate is itself a condition.",
        "metric paid = correct if urgent else brief\n",
        "metric paid = urgent * correct + (not urgent) * brief\n",
    ),
    Code(
        27,
        "compound assignment instead of `=`",
        "A value is assigned with a plain `=`.",
        "goal score := correct\n",
        "goal score = correct\n",
    ),
    Code(
        28,
        "unsupported power or modulo",
        "`%` belongs to a number: `5%` is 0.05. Write a power as a product.",
        "metric steep = brief ** 2\n",
        "metric steep = brief * brief\n",
    ),
    Code(
        12,
        "comma between statements",
        "Commas separate list items and arguments. Put statements on separate lines, or separate them with `;`.",
        "budget { epochs = 4, cost = $3 }\n",
        "budget { epochs = 4; cost = $3 }\n",
    ),
    Code(
        13,
        "`:` instead of `=`",
        "A type follows `:`, as in `input ticket: text`; a value follows `=`.",
        "trainable section rules { limit: 800 tokens }\n",
        "trainable section rules { limit = 800 tokens }\n",
    ),
    Code(
        19,
        "unsupported comment syntax",
        "A comment begins with `#` and ends with the line. `///` documents the statement below it.",
        "goal score = correct  // the share of right answers\n",
        "goal score = correct  # the share of right answers\n",
    ),
    Code(
        22,
        "invalid name",
        "A name begins with a letter, continues with letters, digits and `_`, and has no quotes. A hyphen means minus. "
        "The skill's file gets hyphens where agents require them: `route_tickets` becomes `route-tickets`.",
        "skill route-tickets {\n}\n",
        "skill route_tickets {\n}\n",
    ),
    Code(
        23,
        "missing comma",
        "Commas separate the items of a list and the arguments of a function.",
        'tools = ["house:act" "house:inventory"]\n',
        'tools = ["house:act", "house:inventory"]\n',
    ),
    Code(
        26,
        "missing value",
        "A value follows `=`, and a type follows `:`.",
        "budget {\n  cost =\n}\n",
        "budget {\n  cost = $3\n}\n",
    ),
    Code(
        29,
        "block used as a value",
        "A block follows its statement without `=`: `data { ... }`. Values such as strings and numbers follow `=`.",
        'data = { source = "tickets.jsonl" }\n',
        'data { source = "tickets.jsonl" }\n',
    ),
    Code(
        30,
        "reserved word",
        "`and`, `or` and `not` can't be names, and `use` can't begin a setting. All other words can be names.",
        "metric not = correct\n",
        "metric wrong = 1 - correct\n",
    ),
)


_UNREAD = "metric close = f1(answer)"


_SUPPRESSIONS = (
    Code(
        40,
        "unreadable file",
        "The file does not exist, can't be opened, or is not UTF-8 text. The other files of the command are checked, "
        "and the exit status is 2. No program text causes it, so there is no example.",
    ),
    Code(
        41,
        "malformed suppression",
        "A suppression is a comment of the form `# skillc: ignore[SK409] why it may stay`: the codes in square "
        "brackets, then the reason. At the end of a line it covers findings that begin on that line. On a separate "
        "line it covers the statement below, including its block.",
        program(f"{_UNREAD}  # skillc: ignore SK409, the report shows it"),
        program(f"{_UNREAD}  # skillc: ignore[SK409] the report shows it"),
    ),
    Code(
        42,
        "suppression without a reason",
        "A later reader must be able to judge whether the suppression is still valid. Write the reason after the "
        "codes; until then nothing is suppressed.",
        program(f"{_UNREAD}  # skillc: ignore[SK409]"),
        program(f"{_UNREAD}  # skillc: ignore[SK409] the report shows it"),
    ),
    Code(
        43,
        "suppression of an unknown code",
        "`skillc explain` lists all codes.",
        program(f"{_UNREAD}  # skillc: ignore[SK4O9] the report shows it"),
        program(f"{_UNREAD}  # skillc: ignore[SK409] the report shows it"),
    ),
    Code(
        44,
        "suppression of an error",
        "Only warnings and notes can be suppressed. Code with an error has no meaning, so there is nothing to run.",
        program(gate="regressed(correct) <= 5  # skillc: ignore[SK303] it is meant so"),
        program(gate="regressed(correct) <= 5%"),
    ),
    Code(
        45,
        "unused suppression",
        "The suppressed finding no longer exists, or begins on another line. Remove the comment: it would hide the "
        "next finding with this code. Suppressions of codes that only `skillc plan` or `skillc check --data` reports "
        "are checked there, for the program without command-line overrides.",
        program("metric close = f1(answer)  # skillc: ignore[SK409] shown", gate="candidate.close > 0.5"),
        program("metric close = f1(answer)", gate="candidate.close > 0.5"),
    ),
)


_INTERNAL = Code(
    901,
    "bug: the formatter would change the program",
    "Before `skillc fmt` writes a file it checks that the result is the same program with the same comments, and that "
    "formatting it again changes nothing. That check failed, which is a bug in skillc. The file is unchanged, and all "
    "other commands work with it. Please report the bug with the statement that the message points at.",
)

CODES: tuple[Code, ...] = (*_SYNTAX, *_SUPPRESSIONS, _INTERNAL)
