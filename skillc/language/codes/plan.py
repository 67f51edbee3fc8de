"""Codes of the plan, which show only when a program is resolved or its data is known: SK501, SK55x, SK651."""

from __future__ import annotations

from skillc.language.codes.code import Code

CODES: tuple[Code, ...] = (
    Code(
        "SK501",
        "gates",
        "the budget can't pay for a run with a result",
        "A run with a result needs at least the baseline (the initial skill on the whole validation split), three "
        "whole decisions, and the final test of two skills. A cap on calls, tokens or cost below that ends the run "
        "before it shows anything, so nothing is spent. The message writes the sum out: raise the cap, or make the "
        "splits or the batch smaller.",
    ),
    Code(
        "SK551",
        "gates",
        "the estimate is above the budget",
        "The budget will probably end the run before its epochs do. That harms nothing: a run that a cap ends is "
        "the beginning of the longer one, and its best skill is tested and written. Raise the cap to let it go on.",
    ),
    Code(
        "SK552",
        "gates",
        "patience above the steps there are",
        "`patience = n steps` ends a run after n steps without an accept. With fewer steps than that in the whole "
        "run it can never do so.",
    ),
    Code(
        "SK553",
        "gates",
        "a batch larger than the training split",
        "A step takes `batch` training examples. With fewer in the training split each step sees all of them, and an "
        "epoch has one step.",
    ),
    Code(
        "SK554",
        "gates",
        "a small group behind `by`",
        "`by = field` looks at each group alone, and the worst one decides. In a small group one example weighs much: "
        "with 6 examples one regression is 17 %. Groups with fewer than 20 examples are pooled as `other`. A "
        "limit below the weight of one example forbids any regression in that group.",
    ),
    Code(
        "SK555",
        "gates",
        "one sample of a target that answers with chance",
        "With a temperature above 0 a skill regresses against itself on 6 to 11 % of the examples, and a gate takes "
        "that for a change. `samples = 2` in `optimize` runs each example twice and compares means.",
    ),
    Code(
        "SK556",
        "gates",
        "a gate over a quantity without an upper bound",
        "A gate is decided as soon as no result that is still missing could change the answer. Time has no upper "
        "bound, so a gate that reads it can be decided on complete evidence only. What a rollout costs is bounded by "
        "the plan, but only where the target's price is known: without one a gate on `cost` is never decided.",
    ),
    Code(
        "SK557",
        "gates",
        "what the gates let through by chance",
        "Many candidates are compared on the same validation split, so some pass by luck, and the best validation "
        "score is too high. The note says how often that would happen if no candidate were worth anything. "
        "The final test is not affected: it sees the two skills once, on examples that decided nothing. A gate on "
        "`confidence(...)`, or a larger validation split, lets less through.",
    ),
    Code(
        "SK558",
        "gates",
        "a metric without a finite range",
        "What was not measured may be anything in a metric's range, so the range must be finite. It follows from the "
        "expression, or is given by `clamp(x, low, high)`, or by `low` and `high` of `python(...)`.",
    ),
    Code(
        "SK559",
        "gates",
        "nothing to compile",
        "A compile needs a task, a skill, data, the models `target` and `optimizer`, a goal and at least one gate. "
        "None of these has a default. A file without them is a library: `use` it in a program.",
    ),
    Code(
        "SK560",
        "gates",
        "more than one skill",
        "This version trains one skill of a program. Write a program for each; they can share models, budgets and "
        "sections by `use`.",
    ),
    Code(
        "SK561",
        "gates",
        "no test that could show a gain",
        "The verdict comes from a paired test on examples that decided nothing. Without a test split, or with fewer "
        "than six groups on it, the result is `unverified`.",
    ),
    Code(
        "SK562",
        "gates",
        "the budget admits few calls at once",
        "Each call reserves the most that it could cost before it is sent, so that a cap is never passed. With a small "
        "budget and a large `max_reply` few calls fit beside each other, and the run is slow.",
    ),
    Code(
        "SK563",
        "gates",
        "a name that no agent can load",
        "By the Agent Skills rules a skill's name has at most 64 characters, the letters a to z, digits and hyphens. "
        "`route_tickets` becomes `route-tickets`.",
    ),
    Code(
        "SK564",
        "gates",
        "a description that is too long",
        "By the Agent Skills rules the description, `about`, has at most 1,024 characters. An agent reads it for each "
        "task to decide whether to load the skill, so it says what the skill is for and when to use it.",
    ),
    Code(
        "SK565",
        "gates",
        "data without a file",
        "The data is one `source` that is split, or the files `train` and `validation`, and `test` where there is one.",
    ),
    Code(
        "SK566",
        "gates",
        "a split that is none",
        "`split` gives the sides train : validation : test, either as shares, `2 : 1 : 2`, or as counts, "
        "`80 examples : 40 examples : 280 examples`. Test may be left out; train and validation may not be empty.",
    ),
    Code(
        "SK567",
        "gates",
        "a wave that is as large as the split",
        "Gates are decided between waves of rollouts. Small waves end bad candidates early: at a tenth of the "
        "validation split a rejected candidate needs about half of it, at two thirds nearly all.",
    ),
    Code(
        "SK568",
        "gates",
        "a tolerance that adds up",
        "`candidate.m >= incumbent.m - 1%` lets each accepted candidate lose a point, and the next is compared with "
        "what is left: twenty accepts may lose twenty points. A second gate against `initial` or `best` bounds that.",
    ),
    Code(
        "SK569",
        "gates",
        "a setting that another one leaves without effect",
        "`merge` joins two skills that grew apart, which needs the pool of `parents = pareto`: incumbents alone form "
        "one line. `rollback` goes back to the best skill after `accept = always` has let a worse one through: behind "
        "gates none comes through, and with a pool of parents each step starts from a skill that is drawn anew.",
    ),
    Code(
        "SK651",
        "models",
        "a cap on cost, and a model without a price",
        "A cap can be kept only if each call's price is known before it is sent. Prices come from the program, "
        "`price { input = $1; output = $4 }` in dollars per million tokens, else from litellm's table; local models "
        "cost nothing.",
    ),
    Code(
        "SK605",
        "models",
        "what a later version brings",
        "The language is whole from its first version, but some of it needs parts that this skillc does not have yet: "
        "environments, agents, code, judges, other optimizers. Such a program can be checked and "
        "planned; compiling it names the version that runs it.",
    ),
)
