"""Codes SK2xx: names of all kinds, and where statements may stand."""

from __future__ import annotations

from skillc.diagnostics.codes.code import Code
from skillc.diagnostics.codes.samples import program

_STATEMENTS = (
    Code(
        201,
        "an unknown statement",
        "A statement begins with a word of the language: `task`, `skill`, `model`, `data`, `metric`, `goal`, `rubric`, "
        "`optimize`, `budget`, `gate`, `require`. A section has `frozen`, `trainable` or `slow` in front.",
        program("metrik right = contains(answer)"),
        program("metric right = contains(answer)"),
    ),
    Code(
        202,
        "an unknown setting",
        "Each block has settings of its own. A model's block passes names on that it does not know, unless one is "
        "nearly a known one, for that is a slip of the pen which would otherwise cost a run.",
        program("optimize { bach = 40 }"),
        program("optimize { batch = 40 }"),
    ),
    Code(
        203,
        "declared twice",
        "Each kind has names of its own, but all values that one metric can read must differ: inputs, outputs, data "
        "fields, metrics and the goal. A setting stands once in its block.",
        program("metric right = f1(answer)\nmetric right = contains(answer)"),
        program("metric right = f1(answer)\nmetric close = contains(answer)"),
    ),
    Code(
        207,
        "the file does not say its language",
        "Each file begins with `language 1`, so that it still means the same when there is a language 2.",
        program().removeprefix("language 1\n"),
        program(),
    ),
    Code(
        208,
        "a language that this skillc does not know",
        "A newer skillc reads older languages, not the other way round.",
        program().replace("language 1", "language 7"),
        program(),
    ),
    Code(
        209,
        "`=` is missing",
        "Every value stands behind a `=`. Only `language 1` has none.",
        program("optimize { batch 40 }"),
        program("optimize { batch = 40 }"),
    ),
    Code(
        210,
        "a name is missing, or one too many",
        "What may stand several times has a name of one word: `metric right = ...`. What stands once has none: "
        "`task { ... }`.",
        program("metric = f1(answer)"),
        program("metric close = f1(answer)"),
    ),
    Code(
        211,
        "a statement in the wrong place",
        "`input` and `output` stand in `task`, `field` in `data`, settings in the block that they belong to.",
        program("input more: text"),
        program().replace("input question: text", "input question: text; input more: text"),
    ),
    Code(
        219,
        "a part too many or too few",
        "What a statement may carry depends on its kind: parameters, a type, a value, a block.",
        program("metric close"),
        program("metric close = f1(answer)"),
    ),
)

_NAMES = (
    Code(
        204,
        "an unknown name",
        "A metric may name the fields of task and data and the metrics of the file, a gate a skill with a metric: "
        "`candidate.correct`. Where a name is wrong, what depends on it says nothing more.",
        program(goal="clamp(exact_match(answer) + lenght, 0, 1)"),
        program(
            "metric length = clamp(tokens(answer) / 20 tokens, 0, 1)", goal="clamp(exact_match(answer) - length, 0, 1)"
        ),
    ),
    Code(
        205,
        "an unknown function",
        "Before a `(` stands a function of the language, or a metric or gate with parameters, of this file or of a "
        "module: `gates.strict(correct)`.",
        program(goal="exactmatch(answer)"),
        program(goal="exact_match(answer)"),
    ),
    Code(
        206,
        "something is missing",
        "A program needs a task, a skill, data, a goal, a budget, a gate, and models for `target` and `optimizer`. "
        "None of these has a default, for they are what a compile is about. A file with none of task, skill, data, "
        "goal and gate is a library for others, and needs nothing.",
        program().replace("goal correct = ", "metric correct = "),
        program(),
    ),
    Code(
        212,
        "a circle",
        "A metric may read others, but none that reads it in turn. A function may call others, but none that calls it.",
        program("metric a = clamp(b, 0, 1)\nmetric b = clamp(a, 0, 1)"),
        program("metric a = f1(answer)\nmetric b = clamp(a, 0, 1)"),
    ),
    Code(
        213,
        "a name from outside of a body",
        "The body of a metric or gate with parameters sees those parameters, functions, skills and modules, and "
        "nothing else, so that it means the same wherever it is called.",
        program("gate most(m: metric) = candidate.m > 0.5 and candidate.correct > 0.5", gate="most(correct)"),
        program(
            "gate most(m: metric, n: metric) = candidate.m > 0.5 and candidate.n > 0.5", gate="most(correct, correct)"
        ),
    ),
    Code(
        214,
        "a section that does not say whether it may be trained",
        "`frozen` is never changed, the optimizer edits the rules of a `trainable` section at every step, and "
        "rewrites a `slow` one at the end of an epoch.",
        program().replace("trainable section rules", "section rules"),
        program(),
    ),
    Code(
        215,
        "a parameter without a type",
        "A parameter says what may be given for it: `m: metric`, `most: share = 5%`, `by: field = none`.",
        program("gate most(m) = candidate.m >= 0.5"),
        program("gate most(m: metric) = candidate.m >= 0.5"),
    ),
    Code(
        216,
        "an unknown type",
        'Fields are `text`, `bool`, `number`, `integer`, `json`, `file`, `image`, `list[text]`, labels such as `"a" | '
        '"b"`, and any of these with `| none`. Parameters are `metric`, `claim`, `condition`, `text`, `texts`, '
        "`field`, `share`, `number` or a unit such as `tokens`.",
        program().replace("input question: text", "input question: string"),
        program(),
    ),
    Code(
        217,
        "a bare metric in a gate",
        "A metric measures one rollout. A gate speaks of skills: `candidate.correct` is the candidate's mean on the "
        "validation split.",
        program(gate="correct > 0.5"),
        program(gate="candidate.correct > 0.5"),
    ),
    Code(
        218,
        "a name that is too long",
        "Agents load skills by a name of at most 64 characters.",
        program().replace("answer_trivia", "answer_" + "very_" * 12 + "long_trivia"),
        program(),
    ),
    Code(
        220,
        "a name of the language",
        "The functions of the language are the same in every program, so no metric or gate with parameters has the "
        "name of one.",
        program("gate worst(m: metric) = candidate.m > 0.5", gate="worst(correct)"),
        program("gate lowest(m: metric) = candidate.m > 0.5", gate="lowest(correct)"),
    ),
    Code(
        222,
        "two goals",
        "One number is optimised. Make the others metrics, and join them in the goal or hold them by gates.",
        program("goal close = f1(answer)"),
        program("metric close = f1(answer)", goal="0.5 * exact_match(answer) + 0.5 * close"),
    ),
)

CODES: tuple[Code, ...] = (*_STATEMENTS, *_NAMES)
