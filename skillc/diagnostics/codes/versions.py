"""Codes SK7xx: `skillc breaking` (SK70x to SK73x), `check --locked` (SK75x), merges and deliveries (SK76x)."""

from __future__ import annotations

from collections.abc import Mapping

from skillc.diagnostics.codes.code import Code

_EARLIER = """language 1
task {
  input  ticket: text
  output team: "billing" | "shipping" | "sales"
  output reply: text
}
skill route {
  about = "Route a ticket."
  frozen section role = "You route support tickets."
  trainable section rules { limit = 600 tokens }
}
model target    = "rulebook/v1"
model optimizer = "rulebook/v1"
data     { source = "tickets.jsonl"; group = shop; field shop: text; seed = 3 }
optimize { samples = 2; sees = [feedback] }
budget   { epochs = 2; cost = $2 }
goal    correct = exact_match(team)
metric  brief   = clamp(1 - tokens(reply) / 50 tokens, 0, 1)
require able    = initial.correct >= 10%
gate    better  = candidate.correct > incumbent.correct
gate    safe    = regressed(correct) <= 10%
"""

_CHANGES: Mapping[int, tuple[tuple[str, str], ...]] = {
    701: (("gate    safe    = regressed(correct) <= 10%\n", ""),),
    702: (("<= 10%", "<= 15%"),),
    703: (("regressed(correct)", "regressed(brief)"),),
    704: (("require able    = initial.correct >= 10%\n", ""),),
    705: ((">= 10%", ">= 5%"),),
    706: (("initial.correct", "initial.brief"),),
    707: (("samples = 2;", "samples = 2; accept = always;"),),
    708: (("samples = 2; ", ""),),
    709: (("epochs = 2", "epochs = 3"),),
    710: (("limit = 600", "limit = 900"),),
    711: (("[feedback]", "[gold, feedback]"),),
    712: (("goal    correct", "metric  correct"), ("metric  brief", "goal    brief")),
    713: (("exact_match(team)", "max(exact_match(team), brief)"),),
    714: (("seed = 3", "seed = 4"),),
    715: (("group = shop; ", ""),),
    716: (("  output reply: text\n", ""), ("tokens(reply)", "tokens(ticket)")),
    717: (("output reply: text", "output reply: text | none"),),
    718: ((' | "sales"', ""),),
    719: (("input  ticket: text", "input  ticket: text\n  input  product: text"),),
    720: (("input  ticket: text", "input  ticket: list[text]"),),
    721: (("support tickets", "tickets"),),
    722: (("frozen section role", "trainable section role"),),
    732: ((' | "sales"', ' | "sales" | "returns"'),),
    734: (('model target    = "rulebook/v1"', 'model target    = "openai/gpt-5.5-mini"'),),
}

_ROW = '{{"ticket": "ticket number {i}", "team": "{team}", "reply": "thanks", "shop": "s{shop}", "product": "lamp"}}\n'


_PROOF = (
    "Whether one expression is at least as strict as another is proved: for changed constants, a removed part of an "
    "`and`, an added part of an `or`, and `>=` instead of `>`, through sums, `min`, `max` and `clamp`."
)


def _version(number: int, title: str, explanation: str) -> Code:
    """Build a code whose example is `_EARLIER` with changes; without changes it has none."""
    if number not in _CHANGES:
        return Code(number, title, explanation)
    bad = _EARLIER
    for old, new in _CHANGES[number]:
        if bad.count(old) != 1:
            raise ValueError(f"the change `{old}` of SK{number} does not occur exactly once")
        bad = bad.replace(old, new)
    rows = (_ROW.format(i=i, team=("billing", "shipping")[i % 2], shop=i % 20) for i in range(60))
    files = {"earlier.skill": _EARLIER, "tickets.jsonl": "".join(rows)}
    return Code(number, title, explanation, bad, _EARLIER, files)


CODES: tuple[Code, ...] = (
    _version(
        701,
        "gate removed (`gate-removed`)",
        "A candidate no longer has to pass this gate, and no other gate requires the same. Renaming or splitting a "
        "gate is not reported if the gates together are as strict. " + _PROOF,
    ),
    _version(
        702,
        "gate weakened (`gate-loosened`)",
        "Every candidate that passed the gate still passes, and some pass that did not: a threshold moved, a condition "
        "was dropped, or the gate now holds for slow updates only. " + _PROOF,
    ),
    _version(
        703,
        "gate changed and not provably as strict (`gate-changed`)",
        "The gate may be stricter in one way and weaker in another. To make it stricter, add a second gate. " + _PROOF,
    ),
    _version(
        704,
        "require removed (`require-removed`)",
        "A condition on the baseline is gone. Without `require improved`, a skill is delivered with any verdict.",
    ),
    _version(
        705,
        "require weakened (`require-loosened`)",
        "A condition on the baseline before the first step is easier to meet. " + _PROOF,
    ),
    _version(
        706,
        "require changed and not provably as strict (`require-changed`)",
        "The condition on the baseline may be stricter in one way and weaker in another. " + _PROOF,
    ),
    _version(
        707,
        "gates disabled (`accept-always`)",
        "With `accept = always` every candidate is accepted, whatever the gates decide.",
    ),
    _version(
        708,
        "fewer samples (`samples-lowered`)",
        "The mean over fewer rollouts of each example varies more by chance, so gates accept more false gains.",
    ),
    _version(
        709,
        "budget raised (`budget-raised`)",
        "A cap was raised or removed, `patience` is longer, or `min_gain` is lower, so a compile may spend more. More "
        "decisions also give candidates more chances to pass a gate by luck.",
    ),
    _version(
        710,
        "section limit raised (`limit-raised`)",
        "The limit of a section was raised or removed. The target reads the whole skill with each example, so each "
        "additional token is paid for each time.",
    ),
    _version(
        711,
        "optimizer sees more (`sees-widened`)",
        "`sees` includes more than before. `gold` is the right answers, which the optimizer can copy into the skill.",
    ),
    _version(
        712,
        "goal changed (`goal-changed`)",
        "Scores, gains and verdicts refer to another metric than before.",
    ),
    _version(
        713,
        "deciding metric redefined (`metric-redefined`)",
        "A metric that the goal, a gate or a require reads has another definition, range, unit, rubric, judge or "
        "`python(...)` code, apart from comments and layout. Its scores are not comparable. Renaming is not reported.",
    ),
    _version(
        714,
        "test split changed (`test-split-changed`)",
        "Test examples were moved, removed or edited. If they moved to train or validation, the next skill is trained "
        "on the examples that the last one was tested on. Both versions of the data are compared example by example; "
        "if one can't be read, the lock lists what was tested. New test examples are not reported.",
    ),
    _version(
        715,
        "group removed (`group-dropped`)",
        "Examples of a group were kept in one split, and the test counted each group once. Without the group, the same "
        "customer may be in train and test, and the test claims more than it can show.",
    ),
    _version(
        716,
        "output removed (`output-removed`)",
        "Callers that read this output fail.",
    ),
    _version(
        717,
        "output type changed (`output-changed`)",
        "The skill may return values that callers do not expect. A narrower type is not reported.",
    ),
    _version(
        718,
        "output label removed (`labels-removed`)",
        "The skill can no longer return this answer.",
    ),
    _version(
        719,
        "input added (`input-added`)",
        "Every caller must supply it. An optional input, `type | none`, is not reported.",
    ),
    _version(
        720,
        "input type narrowed (`input-changed`)",
        "Values that callers supply today may be rejected. A wider type is not reported.",
    ),
    _version(
        721,
        "frozen section changed (`frozen-changed`)",
        "Frozen text is written and approved by a person, and no optimizer may change it. It was edited or removed.",
    ),
    _version(
        722,
        "frozen text made trainable (`section-thawed`)",
        "The optimizer may now change a section, or `about`, that was frozen.",
    ),
    _version(
        723,
        "program removed (`program-removed`)",
        "The program existed in the other version. A moved file is recognized by the name of its skill.",
    ),
    _version(
        731,
        "data not compared (`data-not-compared`)",
        "It is unknown whether the test split is the same: one version of the data is not in git, is outside the "
        "repository, or is in Git LFS and not on this machine, and no lock lists what was tested.",
    ),
    _version(
        732,
        "output label added (`labels-added`)",
        "The skill may return an answer that callers do not handle yet.",
    ),
    _version(
        733,
        "data changed (`data-changed`)",
        "Examples were added, or training and validation examples changed. The test split lost nothing.",
    ),
    _version(
        734,
        "model changed (`model-changed`)",
        "The skill was compiled for another model or other parameters. `skillc eval` measures it with the new one.",
    ),
    _version(
        751,
        "skill not compiled",
        "`check --locked` compares a program with the lock of its compiled skill. There is no `skills/<name>.lock` "
        "beside the program, and no lock with this name below its folder that names this program.",
    ),
    _version(
        752,
        "program changed since the compile",
        "The plan differs from the one that the skill was compiled from, so the results in the lock do not apply to "
        "this program. Comments and layout are not part of the plan. The options of the compile (`--set`, `--model`, "
        "`--offline`) are read from the lock.",
    ),
    _version(
        753,
        "data changed since the compile",
        "The examples or their splits differ from those that the skill was compiled with and tested on.",
    ),
    _version(
        754,
        "training examples in the test split",
        "The test split contains examples that the skill was trained or selected on, so its gain is overstated.",
    ),
    _version(
        755,
        "skill file changed",
        "The file differs from the one that the compile wrote, so what agents load was never tested. Converted "
        "line endings are ignored.",
    ),
    _version(
        756,
        "skill file missing",
        "The lock lists a file that does not exist.",
    ),
    _version(
        757,
        "unknown file in the skill's folder",
        "A Python or markdown file beside `SKILL.md` is not from the compile. An agent may load it, and it was not "
        "tested. Put your own files in folders such as `references/`, `scripts/` and `assets/`.",
    ),
    _version(
        758,
        "history does not match the lock",
        "`<name>.history.jsonl` lacks decisions of the run that produced the skill, or contains others.",
    ),
    _version(
        759,
        "skill compiled with command-line options",
        "The compile used `--set`, `--model` or `--offline`, so its plan differs from the program's: with `--offline` "
        "the models are the embedded `rulebook`. The lock lists the options.",
    ),
    _version(
        760,
        "unresolved merge of a compiled skill",
        "Two branches compiled the same skill. git can't merge two skills line by line, because no gate has evaluated "
        "the mixture. `skillc resolve PROGRAM --keep ours` (or `theirs`, or `better`) writes one side, keeps the "
        "history and the test looks of both, and reports whether the merged program needs a new compile.",
    ),
    _version(
        761,
        "compiled skill of another program",
        "Two programs have a skill with the same name, so they would share a folder, a lock and its count of test "
        "looks. The lock names the program that compiled it. Rename one of the skills, or compile one with `--output`. "
        "After a rename the skill belongs to the new file, once the old one no longer declares it.",
    ),
    _version(
        762,
        "delivered skill without the required verdict",
        "The program declares `require improved`, but the lock of the delivered skill has another verdict: it was "
        "delivered before the declaration was added, or with `--require none`. The next compile replaces it only with "
        "a skill that shows a gain in the final test.",
    ),
    _version(
        763,
        "kept file changed since the compile",
        "The folder that the program names with `files` has files that differ from those in the compiled skill: the "
        "skill was measured and delivered with other scripts or references. Compile again, or revert the change.",
    ),
)
