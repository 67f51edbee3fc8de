"""What rulebook says of the rules that decided the cases: lapses in following them, and whom they helped or misled."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from skillc.models.rulebook.briefs import Brief, Case
from skillc.models.rulebook.induce import deciding


def lapses_of(brief: Brief) -> list[tuple[str, str, list[Case]]]:
    """Cases that a rule decides rightly and that were answered otherwise, by rule: its id, its answer, the cases."""
    found: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in brief.cases:
        line = deciding(brief, case)
        if line and line[0] and case.gold is not None and line[1].answer == case.gold != case.answer:
            found[line[0], line[1].answer].append(case)
    return [(rule, answer, cases) for (rule, answer), cases in found.items()]


def lapse_replies(found: Sequence[tuple[str, str, list[Case]]]) -> list[dict[str, object]]:
    """The lapses as a reply holds them, each with a reminder that is no rule itself."""
    return [
        {
            "rule": rule,
            "cases": [case.tag for case in cases],
            "reminder": f"Go through the rules once more before you answer: the one for {answer} gets passed over.",
        }
        for rule, answer, cases in found
    ]


def marks_of(brief: Brief) -> list[dict[str, object]]:
    """For each rule that decided a case: where its answer was the right one, and where it led to a wrong one."""
    helped: dict[str, list[str]] = defaultdict(list)
    misled: dict[str, list[str]] = defaultdict(list)
    for case in brief.cases:
        line = deciding(brief, case)
        if line is None or not line[0] or case.gold is None:
            continue
        if line[1].answer == case.gold:
            helped[line[0]].append(case.tag)
        elif line[1].answer == case.answer:
            misled[line[0]].append(case.tag)
    rules = dict.fromkeys((*helped, *misled))
    return [{"rule": rule, "helped": helped.get(rule, []), "misled": misled.get(rule, [])} for rule in rules]
