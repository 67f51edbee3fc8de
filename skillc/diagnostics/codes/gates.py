"""Codes SK5xx: gates, budgets and the plan; SK605 and SK651, which concern the plan too."""

from __future__ import annotations

from skillc.diagnostics.codes.code import TARGET, Code, Phase, program, trivia

_BETTER = "gate better = candidate.correct > incumbent.correct"


def _many(count: int) -> str:
    return "\n".join(f"gate g{i} = candidate.correct >= incumbent.correct - {i + 1}%" for i in range(count))


_DECLARED = (
    Code(
        502,
        "gate without a candidate",
        "A gate decides on a candidate, so it must read one. Use `require` for a condition before the first step.",
        program(gate="best.correct > initial.correct"),
        program(gate="candidate.correct > initial.correct"),
    ),
    Code(
        503,
        "require that reads a candidate",
        "A `require` is decided before the first step, when `initial` is the only skill.",
        program("require able = candidate.correct > 10%"),
        program("require able = initial.correct > 10%"),
    ),
    Code(
        504,
        "gate that can't be decided early",
        "A gate is decided as soon as no missing result can change the outcome. Latency has no upper bound, so a gate "
        "on it waits for the whole validation split (a note). The cost of a rollout is bounded only if the target's "
        "price is known; without one a gate on `cost` is never decided (a warning of `skillc plan`).",
        program(gate="latency(candidate) <= 1.1 * latency(incumbent)"),
        program(gate="cost(candidate) <= 1.1 * cost(incumbent)"),
        settled_by="plan",
    ),
    Code(
        506,
        "token cap that always holds",
        "A note: the frozen texts and the limits of the other sections already keep the skill below the cap.",
        program(gate="tokens(candidate) <= 2k tokens").replace("section rules", "section rules { limit = 800 tokens }"),
        program(gate="tokens(candidate) <= 2k tokens"),
    ),
    Code(
        507,
        "patience longer than the run",
        "`patience = n steps` ends a run after n steps without an accept, but the whole run has fewer steps. It is a "
        "note if the program states the number of steps, and a warning if `skillc plan` computes it from the data.",
        program().replace("epochs = 4", "steps = 4; patience = 8 steps"),
        program().replace("epochs = 4", "steps = 40; patience = 8 steps"),
        settled_by="plan",
    ),
    Code(
        508,
        "budget without a cap",
        "A run without a cap on epochs, steps, calls, tokens, cost or time never ends.",
        program().replace("epochs = 4", "patience = 4 steps"),
        program(),
    ),
    Code(
        509,
        "answers that the optimizer can copy into the skill",
        "A note: `sees` shows the optimizer the gold answers, which are texts, and no gate limits copying. A skill "
        "that repeats training examples helps with nothing else. `overlap(candidate)` is the share of words in "
        "trainable and slow sections that occur, five or more in a row, in inputs or answers of training examples.",
        program("optimize { sees = [gold, feedback] }"),
        program("optimize { sees = [gold, feedback] }", gate="overlap(candidate) <= 20%"),
    ),
    Code(
        510,
        "gate that never holds",
        "No candidate can pass, so a run would spend its budget and keep the initial skill. The conditions contradict "
        "each other, or a value is out of reach: `worst(candidate.m, by = f)` is at most `candidate.m`, a skill has at "
        "least the tokens of its frozen sections, and `improved(m) - regressed(m)` is the gain of the mean. The proof "
        "is exact for sums and differences, and uses ranges for products and quotients. If one alternative of several "
        "never holds, it is a note.\n\n"
        "`change(candidate) <= 0` permits only edits that move a rule or add to an empty section.",
        program(gate="candidate.correct > 90% and not candidate.correct > 50%"),
        program(gate="candidate.correct > 50% and not candidate.correct > 90%"),
    ),
    Code(
        511,
        "gate that always holds",
        "Every candidate passes, so the gate protects nothing. Usually a comparison is reversed, or the two sides of "
        "an `or` cover everything. If one condition of several always holds, it is a note.",
        program(gate="candidate.correct + 1% > candidate.correct"),
        program(gate="candidate.correct + 1% > incumbent.correct and regressed(correct) <= 5%"),
    ),
    Code(
        512,
        "contradictory gates",
        "Each gate can hold alone, but not all together, so no candidate is ever accepted. The hint names the "
        "comparisons that conflict. Gates `for slow` are checked together, and all others together, both with what "
        "`require` guarantees for the initial skill.",
        program(gate="incumbent.correct >= candidate.correct"),
        program(gate="candidate.correct >= initial.correct"),
    ),
    Code(
        513,
        "gate implied by other gates",
        "If the other gates hold, this one holds too, so it never decides. Remove it if it should be weaker than the "
        "others; tighten it if it should be stricter.",
        program(gate="candidate.correct >= incumbent.correct - 5%"),
        program(gate="regressed(correct) <= 5%"),
    ),
    Code(
        514,
        "goal that no gate reads",
        "The gates read only other values, such as tokens, so a candidate is accepted however low its goal is. A gate "
        "reads the goal if it reads a metric that the goal is made of. It is not reported with `accept = always`.",
        program().replace(_BETTER, "gate compact = tokens(candidate) <= 900 tokens"),
        program(gate="tokens(candidate) <= 900 tokens"),
    ),
    Code(
        516,
        "cap too small for any run",
        "A run scores the initial skill on the validation split, calls the optimizer at least once, and tests two "
        "skills; if `split` counts examples, they are included. The cap ends the run before it has a result. A cap of "
        "`$0` works only with free models. `skillc plan` prints the full sum for the data.",
        program().replace("epochs = 4", "epochs = 4; calls = 3"),
        program().replace("epochs = 4", "epochs = 4; calls = 3k"),
    ),
    Code(
        517,
        "`min_gain` wider than the goal's range",
        "No accept can gain `min_gain`, so none resets the patience. Usually a `%` is missing.",
        program().replace("epochs = 4", "epochs = 4; patience = 8 steps; min_gain = 2"),
        program().replace("epochs = 4", "epochs = 4; patience = 8 steps; min_gain = 2%"),
    ),
    Code(
        518,
        "too many gates to compare",
        "`check` compares gates with each other to find contradictions and implications. Because the time grows faster "
        "than the number of gates, it compares the first 64 and checks the others alone. Combine generated gates.",
        program(_many(65)),
        program(_many(4)),
    ),
)


_DATA = "trivia.jsonl"
_BUDGET = "epochs = 4"
_SMALL = "optimize { batch = 20 }"
_CLOSE = "optimize { batch = 20 }\nmetric close = f1(answer)"
_OWN = 'model target    = "openai/own"'
_OWN_PRICED = f"{_OWN} {{ price {{ input = $1; output = $4 }}"


_SECOND = 'skill write_poems { about = "Write a poem."; load = on_demand; trainable section rhymes }'


def _planned(
    number: int,
    title: str,
    explanation: str,
    bad: str = "",
    good: str = "",
    *,
    lines: int = 100,
    fixed_lines: int = 0,
    found_by: Phase = "plan",
) -> Code:
    """Build a code with `lines` lines of data beside its examples, or `fixed_lines` beside the fixed one."""
    files = {_DATA: trivia(lines)} if bad else {}
    fixed_files = {_DATA: trivia(fixed_lines)} if fixed_lines else {}
    return Code(number, title, explanation, bad, good, files, fixed_files, found_by)


def _with(target: str, budget: str = _BUDGET) -> str:
    return program(_SMALL).replace(TARGET, target).replace(_BUDGET, budget)


def _split(split: str) -> str:
    return program(_SMALL).replace('source = "trivia.jsonl"', f'source = "trivia.jsonl"; split = {split}')


_PLAN = (
    _planned(
        501,
        "budget too small for a result",
        "A result needs at least the baseline (the initial skill on the whole validation split), three full decisions, "
        "and the final test of two skills. A smaller cap on calls, tokens or cost would end the run without one, so "
        "nothing is spent. The message lists the sum: raise the cap, or reduce the splits or the batch.",
        _with(TARGET, "epochs = 4; calls = 100"),
        _with(TARGET, "epochs = 4; calls = 4k"),
    ),
    _planned(
        551,
        "estimate above the budget",
        "The budget will probably end the run before its epochs do. The best skill so far is then tested and written, "
        "and a compile with a higher cap resumes the run.",
        _with(TARGET, "epochs = 4; calls = 400"),
        _with(TARGET, "epochs = 4; calls = 4k"),
    ),
    _planned(
        553,
        "batch larger than the training split",
        "A step takes `batch` training examples. Here each step takes all of them, and an epoch has one step.",
        program("optimize { batch = 64 }"),
        program(_SMALL),
    ),
    _planned(
        554,
        "small group",
        "`by = field` evaluates each group alone, and the worst one decides. In a group of 6 examples one regression "
        "is 17 %, and a threshold below the weight of one example forbids any regression. Groups below 20 "
        "examples are pooled as `other`.",
        program(_SMALL, gate="regressed(correct, by = topic) <= 10%"),
        program(_SMALL, gate="regressed(correct, by = topic) <= 10%"),
        lines=50,
        fixed_lines=1000,
    ),
    _planned(
        555,
        "one sample of a nondeterministic target",
        "With a temperature above 0 an unchanged skill regresses on 6 to 11 % of the examples, which a gate takes for "
        "a change. `samples = 2` in `optimize` runs each example twice and compares means.",
        _with(f"{TARGET} {{ temperature = 0.7 }}"),
        _with(f"{TARGET} {{ temperature = 0 }}"),
    ),
    _planned(
        557,
        "expected false accepts",
        "Many candidates are compared on the same validation split, so some pass by chance and the best validation "
        "score is too high. The note estimates how many would pass if no candidate helped. The final test is "
        "unaffected: it compares two skills once, on held-out examples. A gate on `confidence(...)`, or a larger "
        "validation split, reduces false accepts.",
        program(_SMALL),
        program(_SMALL).replace(_BETTER, f"{_BETTER}  # skillc: ignore[SK557] the final test decides"),
    ),
    _planned(
        559,
        "nothing to compile",
        "A compile needs a task, a skill, data, the models `target` and `optimizer`, a goal and at least one gate; "
        "none has a default. A file without them is a library, to be imported with `use`.",
        "language 1\ngate most(m: metric) = candidate.m >= incumbent.m\n",
        program(_SMALL),
    ),
    _planned(
        560,
        "skill that this compile does not train",
        "A note: a compile trains one skill of a program, the first with a trainable part. The target reads or opens "
        "the others unchanged, so that a gain is due to one skill. `--set skill.train=NAME` trains another.",
        program(_SECOND),
        program(_SECOND.replace("trainable section rhymes", 'frozen section rhymes = "Rhyme."')),
    ),
    _planned(
        561,
        "no test that can show a gain",
        "The verdict is a paired test on held-out examples. Without a test split, or with fewer than six groups in it, "
        "the result is `unverified`. With `require improved` this is an error, because no skill could be delivered.",
        _split("2 : 1"),
        _split("2 : 1 : 2"),
    ),
    _planned(
        562,
        "budget limits concurrency",
        "Each call reserves its maximum cost before it is sent, so that a cap is never exceeded. With a small budget "
        "and a large `max_reply` few calls can be in flight, and the run is slow.",
        _with(f"{_OWN_PRICED}; max_reply = 100k tokens }}", "epochs = 1; cost = $1"),
        _with(f"{_OWN_PRICED}; max_reply = 1k tokens }}", "epochs = 1; cost = $30"),
    ),
    _planned(
        563,
        "invalid skill name",
        "The Agent Skills specification allows names of at most 64 characters: the letters a to z, digits and hyphens. "
        "`route_tickets` becomes `route-tickets`.",
        program(_SMALL).replace("answer_trivia", "répondre"),
        program(_SMALL),
        found_by="check",
    ),
    _planned(
        567,
        "wave almost as large as the split",
        "Gates are evaluated between waves of rollouts, so small waves reject bad candidates early. With a wave of a "
        "tenth of the validation split a rejected candidate runs about half of it; with two thirds, nearly all.",
        program("optimize { batch = 20; wave = 16 }"),
        program("optimize { batch = 20; wave = 4 }"),
    ),
    _planned(
        568,
        "tolerance that accumulates",
        "`candidate.m >= incumbent.m - 1%` lets each accepted candidate lose a point, and the next is compared "
        "with the lower score: twenty accepts may lose twenty points. Add a gate against `initial` or `best`.",
        program(_CLOSE, gate="candidate.close >= incumbent.close - 1%"),
        program(_CLOSE, gate="candidate.close >= initial.close - 1%"),
    ),
    _planned(
        569,
        "setting without effect",
        "`rollback` restores the best skill after `accept = always` has accepted a worse one. Gates reject worse "
        "candidates, so there is nothing to restore.",
        program("optimize { batch = 20; rollback = 5% }"),
        program("optimize { batch = 20; rollback = 5%; accept = always }"),
    ),
    _planned(
        651,
        "cost cap with a model of unknown price",
        "A cap can be kept only if the price of each call is known before it is sent. Prices are declared in the "
        "program, `price { input = $1; output = $4 }` in dollars per million tokens, or come from litellm's table.",
        _with(_OWN, "epochs = 1; cost = $30"),
        _with(f"{_OWN_PRICED} }}", "epochs = 1; cost = $30"),
    ),
    _planned(
        605,
        "feature of a later version",
        "The language is complete, but this skillc does not support all of it yet: `latency` is missing. Such a "
        "program can be checked, but not planned or compiled; the message names the version that can. In a library it "
        "is reported at its first use.",
        program(_SMALL) + "gate quick = latency(candidate) <= 1.1 * latency(incumbent)\n",
        program(_SMALL),
        found_by="check",
    ),
)

CODES: tuple[Code, ...] = (*_DECLARED, *_PLAN)
