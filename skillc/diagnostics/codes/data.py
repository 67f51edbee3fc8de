"""Codes SK4xx and SK52x: task, skill, data and metrics, unused declarations, and what `check --data` reports."""

from __future__ import annotations

import json
from collections.abc import Mapping

from skillc.diagnostics.codes.code import Code, program

_SOURCE = 'source = "trivia.jsonl"'
_RULES = "trainable section rules"
_BY_CODE = "output answer: text\n  rollout = code"
_SCRIPT = "trainable section lookup = \"print('Lima')\""
_LOOKUP_TESTS = {
    "tests/test_lookup.py": "import runpy\n\n\ndef test_it_runs():\n    runpy.run_path('scripts/lookup.py')\n"
}


def _with_script(section: str, rollout: str = 'python("agent:run")') -> str:
    return (
        program()
        .replace(_RULES, f"{_RULES}; {section}")
        .replace("output answer: text", f"output answer: text; rollout = {rollout}")
    )


_BY_TOPIC = program(gate="regressed(correct, by = topic) <= 5%")
_JUDGED = program(
    "rubric solves = <text>\nmetric solved = judge(answer, solves, model = referee)\n"
    'model referee = "anthropic/claude-opus-5"',
    gate="candidate.solved > incumbent.solved",
)

_DECLARED = (
    Code(
        401,
        "missing or superfluous data files",
        "Declare either one `source`, which is split, or `train`, `validation` and, for a final test, `test`.",
        program().replace(_SOURCE, 'train = "train.jsonl"'),
        program().replace(_SOURCE, 'train = "train.jsonl"; validation = "validation.jsonl"; test = "test.jsonl"'),
    ),
    Code(
        402,
        "invalid split",
        "A split is train : validation : test, either as shares, `2 : 1 : 2`, or as counts, `80 examples : 40 examples "
        ": 280 examples`. Train and validation may not be empty. Without the last part the result stays `unverified`.",
        program().replace(_SOURCE, f"{_SOURCE}; split = 2 : 1 : 100 examples"),
        program().replace(_SOURCE, f"{_SOURCE}; split = 200 examples : 100 examples : 100 examples"),
    ),
    Code(
        403,
        "grouping by something other than a field",
        "`group` and `by` name an input or a declared field of the data. To group by the gold answer, declare it as a "
        'field with another name: `field gold: text { column = "answer" }`.',
        program(gate="regressed(correct, by = author) <= 5%"),
        _BY_TOPIC,
    ),
    Code(
        404,
        "grouping by an unsuitable field",
        "Examples can be grouped by a text, a label, a bool or a number.",
        _BY_TOPIC.replace("topic: text", "topic: json"),
        _BY_TOPIC,
    ),
    Code(
        405,
        "task without an input or an output",
        "The target reads at least one field and answers with at least one.",
        program().replace("input question: text; ", ""),
        program(),
    ),
    Code(
        406,
        "frozen section without a text",
        "A frozen section never changes, so it would stay empty.",
        program().replace(_RULES, f"frozen section role; {_RULES}"),
        program().replace(_RULES, f'frozen section role = "You know much."; {_RULES}'),
    ),
    Code(
        407,
        "missing, empty or too long `about`",
        "`about` becomes the description of the skill, by which an agent decides whether to load it. State what the "
        "skill is for and when to use it, in at most 1,024 characters.",
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
        "unused metric",
        "A note: the metric is measured on every rollout and printed in the report, but no goal and no gate reads it.",
        program("metric close = f1(answer)"),
        program("metric close = f1(answer)", gate="candidate.close >= incumbent.close"),
    ),
    Code(
        410,
        "`opened` of a skill that is always read",
        "With `load = always`, the default, the target reads the whole skill at once, so it opens nothing. Write `load "
        "= on_demand`: then it reads names and descriptions, and opens the skills that it needs.",
        program("metric used = opened(answer_trivia)", gate="candidate.used >= 50%"),
        program("metric used = opened(answer_trivia)", gate="candidate.used >= 50%").replace(
            _RULES, f"load = on_demand; {_RULES}"
        ),
    ),
    Code(
        441,
        "images that cannot be scaled down",
        "`pixels` is the longest side of an image that the target gets: a larger one is scaled down before it is sent. "
        "Only inputs of the types `image` and `list[image]` have it, and only in rollouts whose prompts contain "
        "images. An agent with a workspace gets the files as they are.",
        program().replace("input question: text", "input question: text { pixels = 1024 }"),
        program().replace("input question: text", "input question: image { pixels = 1024 }"),
    ),
    Code(
        422,
        "skill that the target cannot open",
        "With `load = on_demand`, and of the skills in `beside`, the target reads names and descriptions, and opens "
        "what it needs. The target of `rollout = code` writes programs, which open no skill. Write `load = always`, or "
        "run the skill where targets open skills: `predict`, `react`, an environment, a function or an agent.",
        program().replace(_RULES, f"load = on_demand; {_RULES}").replace("output answer: text", _BY_CODE),
        program().replace("output answer: text", _BY_CODE),
    ),
    Code(
        411,
        "text longer than its limit",
        "The initial text of a section exceeds its limit, and every edit would too. Raise the limit or shorten it.",
        program().replace(_RULES, f'{_RULES} = "Say what you know, and no more." {{ limit = 3 tokens }}'),
        program().replace(_RULES, f'{_RULES} = "Say what you know, and no more." {{ limit = 300 tokens }}'),
    ),
    Code(
        420,
        "unclosed code fence or comment in a text",
        "Markdown extends an open code fence, or an open comment `<!--`, over the sections that follow it in SKILL.md. "
        "Close it. Headings are safe: `#` and `##` in a text become `###`, below the `##` of the sections.",
        program().replace(_RULES, f'frozen section role = "Answer so:\\n```\\nyes"; {_RULES}'),
        program().replace(_RULES, f'frozen section role = "Answer so:\\n```\\nyes\\n```"; {_RULES}'),
    ),
    Code(
        421,
        "input that cannot be cut",
        "`cut` leaves out the start, the middle or the end of a value that exceeds `limit`, so it needs a `limit` with "
        "room for the note of the omission. Texts, files and lists of them can be cut.",
        program().replace("question: text;", "question: text { cut = end };"),
        program().replace("question: text;", "question: text { cut = end; limit = 400 tokens };"),
    ),
    Code(
        427,
        "malformed rubric",
        "A rubric is a text or a block of criteria. Its text is a question, answered by yes or no, or has two or more "
        "levels: lines that begin with a number, in order, each with its meaning. A deeper line continues the level "
        "above; text before the first level is shown to the judge.",
        _JUDGED.replace("<text>", '"""\n  5  solved\n  beside the question\n"""'),
        _JUDGED.replace("<text>", '"""\n  5  solved\n  1  beside the question\n"""'),
    ),
    Code(
        424,
        "wrong file of a section",
        "`file` puts the text of a section into a file of the skill's folder, which SKILL.md links below the section's "
        "title, with its `about` as when to read it. The path is a `.md` file below the folder, written with `/`, "
        "without `..`, spaces and brackets, and other than SKILL.md.",
        program().replace(_RULES, f'{_RULES} {{ file = "../rules.md" }}'),
        program().replace(_RULES, f'{_RULES} {{ file = "references/rules.md"; about = "Before the first answer" }}'),
    ),
    Code(
        425,
        "two sections in one file",
        "Each section in a file has a file of its own. Paths that differ only in case are one path on macOS and "
        "Windows.",
        program().replace(
            _RULES, f'{_RULES} {{ file = "references/a.md" }}; slow section b {{ file = "references/A.md" }}'
        ),
        program().replace(
            _RULES, f'{_RULES} {{ file = "references/a.md" }}; slow section b {{ file = "references/b.md" }}'
        ),
    ),
    Code(
        426,
        "unusable folder of files",
        "`files` names a folder below the program's folder. Its files are copied to the skill byte for byte, except "
        "SKILL.md, hidden files and caches. It may contain no links, at most 1,000 files of 10 MB each and 30 MB "
        "together, and no file with the path of a section, also where case is ignored.",
        program().replace(_RULES, f'files = "no_such_folder"; {_RULES}'),
        program().replace(_RULES, f'files = "extras"; {_RULES}'),
        files={"extras/scripts/lookup.py": "print('Lima')\n"},
    ),
    Code(
        428,
        "script and tests that do not belong together",
        "A trainable section whose `file` is below `scripts/` is code. Each version of it must pass its `tests` before "
        "a rollout uses it, so a script without tests cannot be trained; keep it in the folder that `files` names. "
        "Sections of text have no tests: only gates decide on them.",
        _with_script(f'{_SCRIPT} {{ file = "scripts/lookup.py" }}'),
        _with_script(f'{_SCRIPT} {{ file = "scripts/lookup.py"; tests = "tests/test_lookup.py" }}'),
        files=_LOOKUP_TESTS,
    ),
    Code(
        429,
        "unusable tests of a script",
        "`tests` names a file or a folder beside the program, outside of the folder that `files` names, because the "
        "target never gets the tests. Without `command` it has Python files, whose test functions and `unittest` cases "
        "are run. A script begins with the text of its section, or with the file of its path in the folder of `files`.",
        _with_script(f'{_SCRIPT} {{ file = "scripts/lookup.py"; tests = "tests/no_such_test.py" }}'),
        _with_script(f'{_SCRIPT} {{ file = "scripts/lookup.py"; tests = "tests/test_lookup.py" }}'),
        files=_LOOKUP_TESTS,
    ),
    Code(
        423,
        "script that nothing can run",
        "A script is learned from what happens when the target runs it. `predict`, `chain_of_thought`, `react` and "
        "`environment` give a target no folder with the skill's files, and methods other than `skillc` write texts.",
        _with_script(f'{_SCRIPT} {{ file = "scripts/lookup.py"; tests = "tests/test_lookup.py" }}', "predict"),
        _with_script(f'{_SCRIPT} {{ file = "scripts/lookup.py"; tests = "tests/test_lookup.py" }}'),
        files=_LOOKUP_TESTS,
    ),
)


_SLOW = "trainable section rules; slow section guidance"
_RUBRIC = 'rubric right = """Is it right?"""\n'
_SLOW_GATE = "gate calm for slow = candidate.correct >= incumbent.correct\ngate better ="


def _guided(more: str = "") -> str:
    return program(more).replace(_RULES, _SLOW)


_UNUSED = (
    Code(
        412,
        "section with no room for a rule",
        "The optimizer adds rules to a trainable section up to its limit, and the shortest rule, a bullet and a word, "
        "has two tokens. If the initial text fills the limit (a note), a new rule must replace old text.",
        program().replace(_RULES, f"{_RULES} {{ limit = 1 token }}"),
        program().replace(_RULES, f"{_RULES} {{ limit = 800 tokens }}"),
    ),
    Code(
        413,
        "slow section that is never rewritten",
        "A slow section is rewritten at the end of an epoch, from examples that are run with the epoch's first and "
        "last skill. It never changes with `slow_update = off`, without examples, or if no epoch is completed.",
        _guided("optimize { slow_update = off }"),
        _guided("optimize { slow_update_samples = 20 }"),
    ),
    Code(
        414,
        "unused gate for slow updates",
        "A gate `for slow` decides only on rewrites of slow sections. Without such a section, or if it is never "
        "rewritten, the gate is never evaluated.",
        program().replace("gate better =", _SLOW_GATE),
        _guided().replace("gate better =", _SLOW_GATE),
    ),
    Code(
        415,
        "unused metric or gate with parameters",
        "A metric or gate with parameters has an effect only where it is called. Libraries are exempt.",
        program("gate most(m: metric) = candidate.m >= 50%"),
        program("gate most(m: metric) = candidate.m >= 50%", gate="most(correct)"),
    ),
    Code(
        416,
        "unused rubric",
        "A judge scores by a rubric, and no metric uses this one.",
        program(_RUBRIC),
        program(),
    ),
    Code(
        417,
        "unused field",
        "A field of `data` names a column for gates (`by = field`), metrics and `group`. Inputs and outputs have "
        "columns without it. Exempt are programs with a `python(...)` metric, which receives the whole row, and the "
        "field `session`, which has the recorded session of an example.",
        program().replace('"trivia.jsonl"', '"trivia.jsonl"; field topic: text'),
        program(gate="regressed(correct, by = topic) <= 10%"),
    ),
    Code(
        418,
        "unused shared declaration",
        "A named `budget` or `optimize`, and a section outside a skill, have an effect only where they are used.",
        program("budget nightly { cost = $5 }"),
        program("budget nightly { cost = $5 }").replace("budget { epochs = 4 }", "budget = nightly { epochs = 4 }"),
    ),
    Code(
        419,
        "trainable `about` that nothing trains",
        "A description is trained where it decides something: with `load = on_demand` the target opens the skill by "
        "it, and a gate on `precision` or `recall` of `opened(skill)` names the examples where it should. Otherwise "
        "`about` does not change, and if the skill has no trainable section, a run can change nothing: a warning.",
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
    splits = {"train": train, "validation": validation, "test": test}
    return {f"{split}.jsonl": _lines(rows) for split, rows in splits.items()}


def _lines(rows: Rows) -> str:
    return "".join(json.dumps({"ticket": ticket, "team": team}) + "\n" for ticket, team in rows)


def _many(size: int) -> str:
    return _lines(tuple((f"ticket number {i}", "billing" if i % 2 else "shipping") for i in range(size)))


def _on_data(
    number: int,
    title: str,
    explanation: str,
    bad: str = _program(),
    good: str = _program(),
    *,
    files: Mapping[str, str] | None = None,
    fixed_files: Mapping[str, str] | None = None,
) -> Code:
    """Build a code that only `check --data` reports; its examples are beside three small splits unless `files`."""
    files = _files() if files is None else files
    return Code(number, title, explanation, bad, good, files, fixed_files or {}, found_by="data")


def _role(text: str) -> str:
    return _program().replace('frozen section role = "You route."', f'frozen section role = "{text}"')


def _triggered(word: str) -> str:
    gate = f'gate narrow = precision(opened(route), mentions(ticket, "{word}") == 1) >= 90%\n'
    return _program(gate).replace("frozen section", "load = on_demand; frozen section")


_FOUND_IN_EXAMPLES = (
    _on_data(
        430,
        "example in two splits",
        "The inputs of a validation or test example occur in another split too, apart from case, spaces and "
        "punctuation. A skill can memorize them there, so its score is too high. Identical inputs are always in one "
        "split; declare a `group` to keep related examples together.",
        files=_files(test=(("i was charged twice!", "billing"), *_TEST[1:])),
        fixed_files=_files(),
    ),
    _on_data(
        431,
        "conflicting answers",
        "Examples with the same inputs, apart from case, spaces and punctuation, have different answers. No skill can "
        "get both right, and the optimizer is trained on both.",
        files=_files(train=(*_TRAIN, ("wrong invoice!", "shipping"))),
        fixed_files=_files(train=(*_TRAIN, ("wrong invoice!", "billing"))),
    ),
    _on_data(
        432,
        "text that quotes training examples",
        "Five or more consecutive words of a section, or of the compiled skill beside the program, occur in inputs or "
        "answers of the training split. Memorized examples do not help with new inputs. Declared labels are ignored, "
        "and so are words that more than two inputs share.",
        _role("Who says I was charged twice today means billing."),
        _role("A double charge is for billing."),
        files=_files(train=(("I was charged twice today", "billing"), *_TRAIN[1:])),
    ),
    _on_data(
        433,
        "text that quotes validation or test examples",
        "Five or more consecutive words of a section, or of the compiled skill beside the program, occur in inputs or "
        "answers of the validation or test split, so the score does not predict results on new inputs. Words that more "
        "than two inputs share, such as an instruction in each row, do not count.",
        _role("The wrong name and address is for billing."),
        _role("What is on an invoice is for billing."),
    ),
    _on_data(
        434,
        "label without examples",
        "No row of the data has this declared label as its answer, so it is neither trained nor measured.",
        _program().replace('| "shipping"', '| "shipping" | "account"'),
    ),
    _on_data(
        435,
        "label missing from a split",
        "A label of validation or test that is missing from train can't be learned (a warning). A label that only "
        "train has is never measured (a note).",
        files=_files(train=(_TRAIN[0], _TRAIN[2])),
        fixed_files=_files(),
    ),
    _on_data(
        436,
        "mostly empty column",
        "Most rows have no value in the column of an input or field. Check whether it is the right column.",
        _program().replace("input ticket: text;", "input ticket: text; input order: text | none;"),
    ),
    _on_data(
        437,
        "unusable data",
        "The data is read as in a compile. The message names the file and the line: a missing file or column, a value "
        "of the wrong type, an undeclared label, or an example or group in two splits.",
        files=_files(train=(*_TRAIN, ("Where to log in", "acount"))),
        fixed_files=_files(),
    ),
    _on_data(
        438,
        "inputs that are cut",
        "A note: how many examples exceed the `limit` of an input with `cut`, and by how much. The target and the "
        "optimizer read the rest, with a note of the tokens left out. Raise the limit if they matter.",
        _program().replace("ticket: text;", "ticket: text { cut = end; limit = 20 tokens };"),
        _program().replace("ticket: text;", "ticket: text { cut = end; limit = 200 tokens };"),
        files=_files(train=(*_TRAIN, ("I ordered a lamp. " * 9, "shipping"))),
    ),
    _on_data(
        439,
        "observations while reading the data",
        "Notes on duplicate rows, which count once, on examples in no split, and on inputs with two answers.",
        files=_files(train=(*_TRAIN, _TRAIN[0])),
        fixed_files=_files(),
    ),
    _on_data(
        440,
        "condition that nothing decides",
        "`precision` and `recall` compare where a skill is opened with where it should be. If the condition holds for "
        "all examples of a split, opening the skill everywhere has a precision of 100 %; if it holds for none, there "
        "is nothing to recall. Neither measures the description, so it is an error. Add near misses (examples that "
        "resemble those of the skill but belong to another one), or examples of the skill.",
        _triggered("parcel"),
        _triggered("invoice"),
    ),
    _on_data(
        520,
        "threshold below the weight of one example",
        "The mean of a metric that is 0 or 1 moves in steps of 1/n over n examples. With 20 validation examples "
        "`regressed(m) <= 1%` forbids every regression, `candidate.m >= 99%` requires all of them to be right, and a "
        "margin of 1 % accepts any gain. With `by = field` the smallest group counts.",
        _program("gate safe = regressed(correct) <= 1%\n", 'source = "tickets.jsonl"'),
        _program("gate safe = regressed(correct) <= 20%\n", 'source = "tickets.jsonl"'),
        files={"tickets.jsonl": _many(60)},
    ),
    _on_data(
        521,
        "confidence or e-value out of reach for so few examples",
        "The confidence of a paired test over n examples, or groups, is at most 1 - 1/2^n and at most 1 - 1/10,000; "
        "with `over = run` all decisions of the run share the error. A gate that requires more never holds (a "
        "warning). If k of n examples must improve with no regression, and k is more than n/5, it is a note. The "
        "largest `e_value` of n examples is the mean of (1 + bet)^n over the bets 1/8 to 7/8.",
        _program("gate sure = confidence(candidate.correct > incumbent.correct) >= 95%\n"),
        _program("gate sure = confidence(candidate.correct > incumbent.correct) >= 95%\n"),
        fixed_files={"validation.jsonl": _many(40)},
    ),
)

CODES: tuple[Code, ...] = (*_DECLARED, *_UNUSED, *_FOUND_IN_EXAMPLES)
