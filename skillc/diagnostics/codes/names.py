"""Codes SK2xx: statements, settings and names."""

from __future__ import annotations

from skillc.diagnostics.codes.code import FIND, Code, program


def _renaming(line: str) -> str:
    """The small program with an agent whose skill renames its tool."""
    section = f'trainable section tools = "- {line}" {{ rename = on }}'
    return _with_tools('python("library:find")').replace("trainable section rules", section)


def _with_tools(tools: str) -> str:
    """The small program with an agent that has tools."""
    return program().replace(
        "output answer: text }", f"output answer: text; rollout = react {{ tools = [{tools}] }} }}"
    )


CODES: tuple[Code, ...] = (
    Code(
        201,
        "unknown statement",
        "A statement begins with `task`, `skill`, `model`, `data`, `metric`, `goal`, `rubric`, `optimize`, `budget`, "
        "`gate` or `require`. A section begins with `frozen`, `trainable` or `slow`.",
        program("metrik right = contains(answer)"),
        program("metric right = contains(answer)"),
    ),
    Code(
        202,
        "unknown setting",
        "The block has no setting with this name. A model's block passes unknown names on to the provider, unless one "
        "resembles a known name: that is probably a typo, which would cost a run.",
        program("optimize { bach = 40 }"),
        program("optimize { batch = 40 }"),
    ),
    Code(
        203,
        "duplicate declaration",
        "Names are unique within each kind, and all values that a metric can read are unique together: inputs, "
        "outputs, data fields, metrics and the goal. A setting occurs once in its block.",
        program("metric right = f1(answer)\nmetric right = contains(answer)"),
        program("metric right = f1(answer)\nmetric close = contains(answer)"),
    ),
    Code(
        207,
        "missing language version",
        "Each file begins with `language 1`, so that its meaning stays the same when there is a language 2.",
        program().removeprefix("language 1\n"),
        program(),
    ),
    Code(
        208,
        "unsupported language version",
        "This skillc is too old for the file. A newer skillc reads older languages, not the reverse.",
        program().replace("language 1", "language 7"),
        program(),
    ),
    Code(
        209,
        "missing `=`",
        "Every value follows `=`. The only exception is `language 1`.",
        program("optimize { batch 40 }"),
        program("optimize { batch = 40 }"),
    ),
    Code(
        210,
        "missing or superfluous name",
        "Declarations that may be repeated need a name, `metric right = ...`; others have none, `task { ... }`.",
        program("metric = f1(answer)"),
        program("metric close = f1(answer)"),
    ),
    Code(
        211,
        "statement in the wrong place",
        "`input` and `output` belong in `task`, `field` in `data`, and settings in their block.",
        program("input more: text"),
        program().replace("input question: text", "input question: text; input more: text"),
    ),
    Code(
        219,
        "missing or superfluous part of a statement",
        "The kind of a statement decides whether it has parameters, a type, a value and a block.",
        program("metric close"),
        program("metric close = f1(answer)"),
    ),
    Code(
        204,
        "unknown name",
        "A metric may name fields of task and data, and metrics of the file. A gate names a skill and a metric: "
        "`candidate.correct`. Errors that follow from an unknown name are not reported.",
        program(goal="clamp(exact_match(answer) + lenght, 0, 1)"),
        program(
            "metric length = clamp(tokens(answer) / 20 tokens, 0, 1)", goal="clamp(exact_match(answer) - length, 0, 1)"
        ),
    ),
    Code(
        205,
        "unknown function",
        "A call names a built-in function, or a metric or gate with parameters: `gates.strict(correct)`.",
        program(goal="exactmatch(answer)"),
        program(goal="exact_match(answer)"),
    ),
    Code(
        206,
        "missing declaration",
        "A program needs a task, a skill, data, a goal, a budget, a gate, and models for `target` and `optimizer`. "
        "None has a default. A file without task, skill, data, goal and gate is a library, and needs none of them.",
        program().replace("goal correct = ", "metric correct = "),
        program(),
    ),
    Code(
        212,
        "circular definition",
        "A metric may not read itself, and a function may not call itself, directly or through others.",
        program("metric a = clamp(b, 0, 1)\nmetric b = clamp(a, 0, 1)"),
        program("metric a = f1(answer)\nmetric b = clamp(a, 0, 1)"),
    ),
    Code(
        213,
        "name from outside the function",
        "The body of a metric or gate with parameters can use its parameters, functions, skills and modules only, so "
        "that it has the same meaning at every call. Pass the rest as parameters.",
        program("gate most(m: metric) = candidate.m > 0.5 and candidate.correct > 0.5", gate="most(correct)"),
        program(
            "gate most(m: metric, n: metric) = candidate.m > 0.5 and candidate.n > 0.5", gate="most(correct, correct)"
        ),
    ),
    Code(
        214,
        "section without `frozen`, `trainable` or `slow`",
        "A `frozen` section never changes. The optimizer edits the rules of a `trainable` section at every step, and "
        "rewrites a `slow` section at the end of an epoch.",
        program().replace("trainable section rules", "section rules"),
        program(),
    ),
    Code(
        215,
        "parameter without a type",
        "The type decides which arguments are valid: `m: metric`, `most: share = 5%`, `by: field = none`.",
        program("gate most(m) = candidate.m >= 0.5"),
        program("gate most(m: metric) = candidate.m >= 0.5"),
    ),
    Code(
        216,
        "unknown type",
        'Fields are `text`, `bool`, `number`, `integer`, `json`, `file`, `image`, `list[text]`, labels such as `"a" | '
        '"b"`, and any of these with `| none`. Parameters are `metric`, `claim`, `condition`, `text`, `texts`, '
        "`field`, `share`, `number` or a unit such as `tokens`.",
        program().replace("input question: text", "input question: string"),
        program(),
    ),
    Code(
        217,
        "metric in a gate without a skill",
        "A gate compares skills, so name one: `candidate.correct` is the candidate's mean on the validation split.",
        program(gate="correct > 0.5"),
        program(gate="candidate.correct > 0.5"),
    ),
    Code(
        218,
        "name too long",
        "Agents load skills with names of at most 64 characters.",
        program().replace("answer_trivia", "answer_" + "very_" * 12 + "long_trivia"),
        program(),
    ),
    Code(
        220,
        "name of a built-in function",
        "Built-in functions have the same meaning in every program and cannot be redefined.",
        program("gate worst(m: metric) = candidate.m > 0.5", gate="worst(correct)"),
        program("gate lowest(m: metric) = candidate.m > 0.5", gate="lowest(correct)"),
    ),
    Code(
        222,
        "several goals",
        "A run optimizes one number. Declare the others as metrics, and use them in the goal or in gates.",
        program("goal close = f1(answer)"),
        program("metric close = f1(answer)", goal="0.5 * exact_match(answer) + 0.5 * close"),
    ),
    Code(
        223,
        "tool that an agent cannot use",
        "All that an agent knows of a tool is in its function: name, docstring, the types of the parameters, and the "
        "text of each in the section `Args:`. If they are missing, a model has to guess. `check` reads the source text "
        "of functions in the program's folder and runs none of it. What only a run can detect, such as a type without "
        "a JSON schema, is an error before the first call.",
        _with_tools('python("library:find")'),
        _with_tools('python("library:find")'),
        files={"library.py": "def find(title):\n    return title\n"},
        fixed_files={"library.py": FIND},
    ),
    Code(
        224,
        "two tools of one name",
        "An agent calls a tool by its name, which is the name of the function. Rename one of the two functions. "
        "The tools of MCP servers are compared when a run starts.",
        _with_tools('python("library:find"), python("archive:find")'),
        _with_tools('python("library:find"), python("archive:find_old")'),
        files={"library.py": FIND, "archive.py": f"{FIND}\n\n{FIND.replace('find', 'find_old')}"},
    ),
    Code(
        225,
        "name that a tool cannot have",
        "With `rename = on`, a line `find -> look_up` of the section `tools` gives a tool another name for the agent. "
        "It has letters, digits, `_` and `-`, at most 64 in all, as providers require, and no other tool has it, in "
        "the program or for the agent. Only a task with `rollout = react { tools = [...] }` has tools to rename. "
        "Edits that break the rule are refused before any rollout.",
        _renaming("find -> look up"),
        _renaming("find -> look_up"),
        files={"library.py": FIND},
    ),
)
