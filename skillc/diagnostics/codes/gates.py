"""Codes SK5xx: gates, budgets and the plan."""

from __future__ import annotations

from skillc.diagnostics.codes.code import Code, Phase
from skillc.diagnostics.codes.samples import program, trivia

_TEXT = (
    Code(
        502,
        "a gate without a candidate",
        "A gate decides on a candidate, so it must look at one. What must hold once, before the first step, is a "
        "`require`.",
        program(gate="best.correct > initial.correct"),
        program(gate="candidate.correct > initial.correct"),
    ),
    Code(
        503,
        "a require that looks at a candidate",
        "A require is decided before the first step, when the only skill is `initial`.",
        program("require able = candidate.correct > 10%"),
        program("require able = initial.correct > 10%"),
    ),
    Code(
        504,
        "a gate that can't be decided early",
        "A gate is decided as soon as no result that is still missing could change the answer. Time has no upper "
        "bound, so a gate that reads a latency waits for the whole validation split, which a note says. What a rollout "
        "costs is bounded by the plan, but only where the target's price is known: without one a gate on `cost` is "
        "never decided, and `skillc plan` warns of it.",
        program(gate="latency(candidate) <= 1.1 * latency(incumbent)"),
        program(gate="cost(candidate) <= 1.1 * cost(incumbent)"),
        settled_by="plan",
    ),
    Code(
        506,
        "a cap on tokens that is kept anyway",
        "A note: frozen texts and the limits of the other sections already keep the skill below the cap.",
        program(gate="tokens(candidate) <= 2k tokens").replace("section rules", "section rules { limit = 800 tokens }"),
        program(gate="tokens(candidate) <= 2k tokens"),
    ),
    Code(
        507,
        "patience that never runs out",
        "`patience = n steps` ends a run after n steps without an accept. With fewer steps than that in the whole run "
        "it can never do so. A note where the text says how many steps there are, and a warning of the plan, which "
        "knows it from the data.",
        program().replace("epochs = 4", "steps = 4; patience = 8 steps"),
        program().replace("epochs = 4", "steps = 40; patience = 8 steps"),
        settled_by="plan",
    ),
    Code(
        508,
        "a budget that caps nothing",
        "Without a cap on epochs, steps, calls, tokens, cost or time a run has no end.",
        program().replace("epochs = 4", "patience = 4 steps"),
        program(),
    ),
    Code(
        509,
        "answers that may be copied into the skill",
        "A note: `sees` shows the optimizer the right answers, they are texts, and no gate looks at what it copies of "
        "them. A skill that repeats its training examples does well on those and on nothing else. "
        "`overlap(candidate)` is the share of the words of the trainable and slow sections that stand, five or more in "
        "a row, in a training example's inputs or answers.",
        program("optimize { sees = [gold, feedback] }"),
        program("optimize { sees = [gold, feedback] }", gate="overlap(candidate) <= 20%"),
    ),
)


_BETTER = "gate better = candidate.correct > incumbent.correct"


def _many(count: int) -> str:
    return "\n".join(f"gate g{i} = candidate.correct >= incumbent.correct - {i + 1}%" for i in range(count))


_CONTRADICTIONS = (
    Code(
        510,
        "a gate that can never hold",
        "No candidate can meet it, so a run would spend its budget and keep the first skill. The same "
        "quantity is asked to be above and below something, each alternative of an `or` excludes itself, or what is "
        "asked lies outside of what the quantities can be together: `worst(candidate.m, by = f)` is never above "
        "`candidate.m`, a skill never has fewer tokens than its frozen sections, `improved(m) - regressed(m)` is what "
        "the mean grew by. The answer is exact for sums and differences of quantities; of products and quotients only "
        "the ranges are known. Where one alternative of several can never hold, a note says so.\n\n"
        "`change(candidate) <= 0` lets no edit through but one that moves a rule or adds to an empty section.",
        program(gate="candidate.correct > 90% and not candidate.correct > 50%"),
        program(gate="candidate.correct > 50% and not candidate.correct > 90%"),
    ),
    Code(
        511,
        "a gate that always holds",
        "Every candidate meets it, so it protects nothing. Most often a sign is the wrong way round, or "
        "both sides of an `or` together leave nothing out. Where one condition of several always holds, a "
        "note says so.",
        program(gate="candidate.correct + 1% > candidate.correct"),
        program(gate="candidate.correct + 1% > incumbent.correct and regressed(correct) <= 5%"),
    ),
    Code(
        512,
        "gates that exclude each other",
        "All gates must hold, and these can't hold together, so no candidate is ever accepted. The hint "
        "names the comparisons. Each gate alone is possible. Gates `for slow` are looked at together, the others "
        "together, each with what a `require` says of the initial skill.",
        program(gate="incumbent.correct >= candidate.correct"),
        program(gate="candidate.correct >= initial.correct"),
    ),
    Code(
        513,
        "a gate that another one implies",
        "Wherever the other gates hold, this one does too, so it decides nothing. A gate that was meant to ask "
        "for less is not needed; one that was meant to ask for more does not.",
        program(gate="candidate.correct >= incumbent.correct - 5%"),
        program(gate="regressed(correct) <= 5%"),
    ),
    Code(
        514,
        "a goal that no gate reads",
        "The gates ask for something else alone, such as tokens, so a candidate is accepted however much "
        "worse it is by the goal. The goal counts as read where a gate speaks of it, or of a metric that it is made "
        "of. With `accept = always` no gate decides, and nothing is said.",
        program().replace(_BETTER, "gate compact = tokens(candidate) <= 900 tokens"),
        program(gate="tokens(candidate) <= 900 tokens"),
    ),
    Code(
        516,
        "a cap that no run fits into",
        "The text alone shows that a run would end before it has a result. It scores the first skill on the "
        "validation split, asks the optimizer at least once, and tests two skills; where `split` counts examples, they "
        "are counted. A cap of `$0` admits models that cost nothing, and no others. `skillc plan` reckons with the "
        "data and writes the whole sum out.",
        program().replace("epochs = 4", "epochs = 4; calls = 3"),
        program().replace("epochs = 4", "epochs = 4; calls = 3k"),
    ),
    Code(
        517,
        "a gain that no accept can reach",
        "An accept that adds less than `min_gain` to the goal does not reset the patience, and the goal's "
        "range is narrower than that. Most often a `%` is missing.",
        program().replace("epochs = 4", "epochs = 4; patience = 8 steps; min_gain = 2"),
        program().replace("epochs = 4", "epochs = 4; patience = 8 steps; min_gain = 2%"),
    ),
    Code(
        518,
        "more gates than are held against each other",
        "`check` holds each gate against all others together, to find what excludes or repeats what. That takes time "
        "which grows faster than the number of gates, so it ends after the first 64; the others are checked alone. "
        "People write a handful of gates: hundreds of them are made by a program, and one expression says the same.",
        program(_many(65)),
        program(_many(4)),
    ),
)


_DATA = "trivia.jsonl"
_BUDGET = "epochs = 4"
_TARGET = 'model target    = "rulebook/v1"'
_SMALL = "optimize { batch = 20 }"
_CLOSE = "optimize { batch = 20 }\nmetric close = f1(answer)"
_OWN = 'model target    = "openai/own"'


def _planned(
    number: int,
    title: str,
    explanation: str,
    bad: str = "",
    good: str = "",
    *,
    lines: int = 100,
    mended: int = 0,
    found_by: Phase = "plan",
) -> Code:
    """A code whose examples have so many lines of data beside them, and so many beside the mended one."""
    files = {_DATA: trivia(lines)} if bad else {}
    others = {_DATA: trivia(mended)} if mended else {}
    return Code(number, title, explanation, bad, good, files, others, found_by)


def _with(target: str, budget: str = _BUDGET) -> str:
    return program(_SMALL).replace(_TARGET, target).replace(_BUDGET, budget)


def _cheap(target: str) -> str:
    return program(_SMALL, gate="cost(candidate) <= 1.1 * cost(incumbent)").replace(_TARGET, target)


def _gold(split: str) -> str:
    return program(_SMALL).replace('source = "trivia.jsonl"', f'source = "trivia.jsonl"; {split}')


_PLAN = (
    _planned(
        501,
        "the budget can't pay for a run with a result",
        "A run with a result needs at least the baseline (the initial skill on the whole validation split), three "
        "whole decisions, and the final test of two skills. A cap on calls, tokens or cost below that ends the run "
        "before it shows anything, so nothing is spent. The message writes the sum out: raise the cap, or make the "
        "splits or the batch smaller.",
        program(_SMALL).replace(_BUDGET, "epochs = 4; calls = 100"),
        program(_SMALL).replace(_BUDGET, "epochs = 4; calls = 4k"),
    ),
    _planned(
        551,
        "the estimate is above the budget",
        "The budget will probably end the run before its epochs do. That harms nothing: a run that a cap ends is "
        "the beginning of the longer one, and its best skill is tested and written. Raise the cap to let it go on.",
        program(_SMALL).replace(_BUDGET, "epochs = 4; calls = 400"),
        program(_SMALL).replace(_BUDGET, "epochs = 4; calls = 4k"),
    ),
    _planned(
        553,
        "a batch larger than the training split",
        "A step takes `batch` training examples. With fewer in the training split each step sees all of them, and an "
        "epoch has one step.",
        program("optimize { batch = 64 }"),
        program(_SMALL),
    ),
    _planned(
        554,
        "a small group behind `by`",
        "`by = field` looks at each group alone, and the worst one decides. In a small group one example weighs much: "
        "with 6 examples one regression is 17 %. Groups with fewer than 20 examples are pooled as `other`. A "
        "limit below the weight of one example forbids any regression in that group.",
        program(_SMALL, gate="regressed(correct, by = topic) <= 10%"),
        program(_SMALL, gate="regressed(correct, by = topic) <= 10%"),
        lines=50,
        mended=1000,
    ),
    _planned(
        555,
        "one sample of a target that answers with chance",
        "With a temperature above 0 a skill regresses against itself on 6 to 11 % of the examples, and a gate takes "
        "that for a change. `samples = 2` in `optimize` runs each example twice and compares means.",
        _with(f"{_TARGET} {{ temperature = 0.7 }}"),
        _with(f"{_TARGET} {{ temperature = 0 }}"),
    ),
    _planned(
        557,
        "what the gates let through by chance",
        "Many candidates are compared on the same validation split, so some pass by luck, and the best validation "
        "score is too high. The note says how often that would happen if no candidate were worth anything. "
        "The final test is not affected: it sees the two skills once, on examples that decided nothing. A gate on "
        "`confidence(...)`, or a larger validation split, lets less through.",
        program(_SMALL),
        program(_SMALL).replace(_BETTER, f"{_BETTER}  # skillc: ignore[SK557] the final test tells"),
    ),
    _planned(
        559,
        "nothing to compile",
        "A compile needs a task, a skill, data, the models `target` and `optimizer`, a goal and at least one gate. "
        "None of these has a default. A file without them is a library: `use` it in a program.",
        "language 1\ngate most(m: metric) = candidate.m >= incumbent.m\n",
        program(_SMALL),
    ),
    _planned(
        560,
        "more than one skill",
        "This version trains one skill of a program. Write a program for each; they can share models, budgets and "
        "sections by `use`. `check` says so before, as SK605, so no program shows it.",
    ),
    _planned(
        561,
        "no test that could show a gain",
        "The verdict comes from a paired test on examples that decided nothing. Without a test split, or with fewer "
        "than six groups on it, the result is `unverified`. With `require improved` this is an error, because no skill "
        "could be delivered.",
        _gold("split = 2 : 1"),
        _gold("split = 2 : 1 : 2"),
    ),
    _planned(
        562,
        "the budget admits few calls at once",
        "Each call reserves the most that it could cost before it is sent, so that a cap is never passed. With a small "
        "budget and a large `max_reply` few calls fit beside each other, and the run is slow.",
        _with(f"{_OWN} {{ price {{ input = $1; output = $4 }}; max_reply = 100k tokens }}", "epochs = 1; cost = $1"),
        _with(f"{_OWN} {{ price {{ input = $1; output = $4 }}; max_reply = 1k tokens }}", "epochs = 1; cost = $30"),
    ),
    _planned(
        563,
        "a name that no agent can load",
        "By the Agent Skills rules a skill's name has at most 64 characters, the letters a to z, digits and hyphens. "
        "`route_tickets` becomes `route-tickets`.",
        program(_SMALL).replace("answer_trivia", "répondre"),
        program(_SMALL),
        found_by="check",
    ),
    _planned(
        567,
        "a wave that is as large as the split",
        "Gates are decided between waves of rollouts. Small waves end bad candidates early: at a tenth of the "
        "validation split a rejected candidate needs about half of it, at two thirds nearly all.",
        program("optimize { batch = 20; wave = 16 }"),
        program("optimize { batch = 20; wave = 4 }"),
    ),
    _planned(
        568,
        "a tolerance that adds up",
        "`candidate.m >= incumbent.m - 1%` lets each accepted candidate lose a point, and the next is compared with "
        "what is left: twenty accepts may lose twenty points. A second gate against `initial` or `best` bounds that.",
        program(_CLOSE, gate="candidate.close >= incumbent.close - 1%"),
        program(_CLOSE, gate="candidate.close >= initial.close - 1%"),
    ),
    _planned(
        569,
        "a setting that another one leaves without effect",
        "`rollback` goes back to the best skill after `accept = always` has let a worse one through: behind gates none "
        "comes through.",
        program("optimize { batch = 20; rollback = 5% }"),
        program("optimize { batch = 20; rollback = 5%; accept = always }"),
    ),
    _planned(
        651,
        "a cap on cost, and a model without a price",
        "A cap can be kept only if each call's price is known before it is sent. Prices come from the program, "
        "`price { input = $1; output = $4 }` in dollars per million tokens, else from litellm's table; local models "
        "cost nothing.",
        _with(_OWN, "epochs = 1; cost = $30"),
        _with(f"{_OWN} {{ price {{ input = $1; output = $4 }} }}", "epochs = 1; cost = $30"),
    ),
    _planned(
        605,
        "what a later version brings",
        "The language is whole from its first version, but some of it needs parts that this skillc does not have yet: "
        "environments, agents, code, judges, several skills, skills that the target opens on demand. Such a program "
        "is checked like any other; it can't be planned or compiled by this version, and the message names the "
        "version that can. A library may hold such declarations: the program that uses them is told.",
        program(_SMALL).replace("output answer: text", "output answer: text; rollout = codex"),
        program(_SMALL).replace("output answer: text", "output answer: text; rollout = chain_of_thought"),
        found_by="check",
    ),
)

CODES: tuple[Code, ...] = (*_TEXT, *_CONTRADICTIONS, *_PLAN)
