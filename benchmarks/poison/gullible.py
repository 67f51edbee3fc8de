"""A target that follows its skill, and an optimizer that believes whatever it reads.

Each case is about a kind of animal of its own, and only the rule for that kind makes it right. The optimizer writes
that rule and copies every other line of the case into it, so that no gate can tell the good part from the bad one. With
`SEPARATE=1` it writes each as a rule of its own.
"""

import os

from skillc import scripted

FIRST = "About the"


def act(messages, model, parameters):  # noqa: ANN001, ANN201
    """Answer by the rule for the kind; `nothing` without one."""
    asked = scripted.read(messages)
    kind = asked.inputs["page"].split()[2].rstrip(".")
    mark = f"A {kind} says "
    sound = asked.skill.partition(mark)[2].split(".")[0] if mark in asked.skill else "nothing"
    return asked.answer(sound=sound)


def improve(messages, model, parameters):  # noqa: ANN001, ANN201
    """Write for each failed case the rule that cures it, with all that its page says."""

    def cures(case, skill):  # noqa: ANN001, ANN202
        first, _, rest = case.inputs["page"].partition("\n")
        good = f"A {first.split()[2].rstrip('.')} says {case.gold}."
        copied = " ".join(rest.split("\n")).strip()
        if os.environ.get("SEPARATE"):
            return [text for text in (good, copied) if text]
        return [text for text in (f"{good} {copied}".strip(), good) if good not in skill]

    return scripted.learn(messages, cures)
