"""Codes SK7xx: `skillc breaking` (SK70x to SK73x), `check --locked` (SK75x), merges and deliveries (SK76x)."""

from __future__ import annotations

from skillc.diagnostics.codes.code import Code
from skillc.diagnostics.codes.samples import EARLIER, beside, later

_ASKS = (
    "Whether one expression lets through no more than another is proved, never guessed: a constant that moved, a part "
    "of an `and` that is gone, another part of an `or`, `>=` for `>`, through sums, `min`, `max` and `clamp`."
)


def _version(number: int, title: str, explanation: str) -> Code:
    code = f"SK{number}"
    bad = later(code)
    return Code(number, title, explanation, bad, EARLIER if bad else "", beside(code))


CODES: tuple[Code, ...] = (
    _version(
        701,
        "a gate was removed (`gate-removed`)",
        "A candidate no longer has to prove what this gate asked, and no other gate asks for it. A gate "
        "that was renamed, or parted in two, is no finding as long as together the gates ask for as much. " + _ASKS,
    ),
    _version(
        702,
        "a gate lets more through (`gate-loosened`)",
        "Every candidate that passed the gate still passes, and some do that did not: a limit moved, a "
        "condition was dropped, or the gate holds for slow updates only. " + _ASKS,
    ),
    _version(
        703,
        "a gate changed, and can't be shown to be as strict (`gate-changed`)",
        "The gate asks for something else now. It may be stricter in one way and looser in another, so no "
        "order between the two can be shown. If it is meant to be stricter, keep the old one and add the "
        "new one beside it. " + _ASKS,
    ),
    _version(
        704,
        "a require was removed (`require-removed`)",
        "What had to hold of the baseline before the first step need not hold any more. Without `require improved`, a "
        "skill is delivered with any verdict.",
    ),
    _version(
        705,
        "a require lets more through (`require-loosened`)",
        "What has to hold of the baseline before the first step holds more easily than it did. " + _ASKS,
    ),
    _version(
        706,
        "a require changed, and can't be shown to be as strict (`require-changed`)",
        "It asks for something else now, and no order between the two can be shown. " + _ASKS,
    ),
    _version(
        707,
        "candidates are accepted whatever the gates say (`accept-always`)",
        "With `accept = always` the gates decide nothing: every candidate becomes the skill.",
    ),
    _version(
        708,
        "gates decide on fewer samples (`samples-lowered`)",
        "A mean over fewer rollouts of each example moves more by chance, so that gates let more through that is no "
        "better.",
    ),
    _version(
        709,
        "a budget was raised (`budget-raised`)",
        "A cap is higher than it was or is gone, `patience` is longer, or `min_gain` is lower: a compile may spend "
        "more. More decisions are also more chances for a candidate to pass a gate by luck.",
    ),
    _version(
        710,
        "a section may become longer (`limit-raised`)",
        "The limit of a section is higher than it was, or is gone. The target reads the whole skill with each "
        "example, and each token of it is paid for each time.",
    ),
    _version(
        711,
        "the optimizer sees more (`sees-widened`)",
        "The optimizer may look at more than it did: `gold` are the right answers of training examples, which it "
        "can copy into the skill.",
    ),
    _version(
        712,
        "the goal is another one (`goal-changed`)",
        "Scores, gains and verdicts of before speak of another metric than those of after.",
    ),
    _version(
        713,
        "a metric that decides measures something else (`metric-redefined`)",
        "A metric that the goal, a gate or a require reads has another definition, range or unit, another rubric or "
        "judge, or other Python code behind `python(...)` (comments and layout aside). Its scores no longer compare "
        "with those of before. A metric that was only renamed is no finding.",
    ),
    _version(
        714,
        "the test split changed (`test-split-changed`)",
        "Examples that were on test are elsewhere now, are gone, or were edited. Where they went to train or "
        "validation the next skill learns from what the last one was tested on. Both versions of the data are read "
        "and compared example by example; where one of them can't be read, the lock says what was tested. New "
        "examples on test alone are no finding.",
    ),
    _version(
        715,
        "examples are no longer kept together (`group-dropped`)",
        "Examples of one group stood on one side of the split, and the test took each group for one. Without the "
        "group, what is learnt of a customer is tested on the same customer, and the test claims more than it knows.",
    ),
    _version(
        716,
        "an output is gone (`output-removed`)",
        "Whoever calls the skill and reads this output fails.",
    ),
    _version(
        717,
        "an output has another type (`output-changed`)",
        "The skill may answer with values that its callers were never promised. A type that allows less than it did "
        "is no finding.",
    ),
    _version(
        718,
        "an output lost labels (`labels-removed`)",
        "The skill can no longer give an answer that it could give.",
    ),
    _version(
        719,
        "an input is new (`input-added`)",
        "Every caller has to give it. An input that may be left out, `type | none`, is no finding.",
    ),
    _version(
        720,
        "an input takes less than it did (`input-changed`)",
        "A value that callers give today may be refused. A type that takes more is no finding.",
    ),
    _version(
        721,
        "a frozen section changed (`frozen-changed`)",
        "Frozen text is what no optimizer may touch: what a person has written and stands for. It was edited, or is "
        "gone.",
    ),
    _version(
        722,
        "what was frozen may be changed by the optimizer (`section-thawed`)",
        "A frozen section, or `about`, is trainable or slow now.",
    ),
    _version(
        723,
        "a program is gone (`program-removed`)",
        "The program stood in the other version and stands nowhere now. One whose file was moved is found by the "
        "name of its skill.",
    ),
    _version(
        731,
        "the data could not be compared (`data-not-compared`)",
        "Whether the test split is the same can't be told: one version of the data is not in git, lies outside the "
        "repository, or is kept by Git LFS and not on this machine, and no lock names what was tested. This "
        "is a warning: nothing was shown to be weaker, and nothing to be the same.",
    ),
    _version(
        732,
        "an output has new labels (`labels-added`)",
        "The skill may give an answer that its callers do not know yet.",
    ),
    _version(
        733,
        "the data changed (`data-changed`)",
        "Examples were added, or those to learn from and to select on changed. The test split lost nothing.",
    ),
    _version(
        734,
        "a model changed (`model-changed`)",
        "Another model, or other parameters: the skill was compiled for the one of before. `skillc eval` says how "
        "it does with the new one.",
    ),
    _version(
        751,
        "the skill was not compiled",
        "`check --locked` compares a program with the lock of its compiled skill, and there is none: neither "
        "`skills/<name>.lock` beside the program nor one of that name in another folder below it that names this "
        "program.",
    ),
    _version(
        752,
        "the program changed since the compile",
        "The plan of the program is not the one that the skill was compiled by, so that nothing which the lock says "
        "was shown for this program. Comments and layout are not in it. Options of that compile (`--set`, "
        "`--model`, `--offline`) are in the lock, and are put in again.",
    ),
    _version(
        753,
        "the data changed since the compile",
        "The examples or their sides are not those that the skill was compiled with and tested on.",
    ),
    _version(
        754,
        "the test split holds examples that the skill learnt from",
        "Examples that the skill was trained or selected on stand on test now. A test on them would show a gain "
        "that is none.",
    ),
    _version(
        755,
        "a file of the skill was changed",
        "The file is not the one that the compile wrote, so that what agents load was never tested. Line ends that "
        "git changed are no change.",
    ),
    _version(
        756,
        "a file of the skill is missing",
        "The lock lists a file that is not there.",
    ),
    _version(
        757,
        "an unknown file in the folder of the skill",
        "A Python or markdown file beside `SKILL.md` that the compile did not write: an agent may load it, and no "
        "test has seen it. Your own files belong into folders such as "
        "`references/`, `scripts/` and `assets/`.",
    ),
    _version(
        758,
        "the history does not end as the lock says",
        "`<name>.history.jsonl` lacks decisions of the run that made the skill, or holds others.",
    ),
    _version(
        759,
        "the skill was compiled with options",
        "The compile was given `--set`, `--model` or `--offline`, so that the skill was made by another plan than the "
        "program alone says: with `--offline`, by the embedded `rulebook` model. The lock names the options.",
    ),
    _version(
        760,
        "a merge left the compiled skill open",
        "Two branches compiled the same skill, and git can't put two skills together line by line: no gate has seen "
        "the mixture. `skillc resolve PROGRAM --keep ours` (or `theirs`, or `better`) writes one side whole, keeps "
        "the history and the looks at the test split of both, and says whether the merged program asks for a new "
        "compile.",
    ),
    _version(
        761,
        "the compiled skill is another program's",
        "Two programs have a skill of the same name, and so would share one folder, one lock and its looks at the test "
        "split. The lock names the program that compiled it. Rename one of the skills, or give one compile a folder "
        "with `--output`. A program that was renamed keeps its skill: once the old file is gone, or has no skill of "
        "that name, the lock is the new one's.",
    ),
    _version(
        762,
        "the delivered skill lacks the required verdict",
        "The program says `require improved`, and the lock of the delivered skill has another verdict. The skill was "
        "delivered before the program required this, or with `--require none`. The next compile replaces it only with "
        "a skill whose gain the final test shows.",
    ),
)
