"""The verbs `sessions label` and `sessions agreement`: what sessions exercised, whether it worked, and who says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillc.cli.arguments import ProgramPath, json_option, plan_options, store_option
from skillc.cli.output import print_json, print_table
from skillc.errors import SkillcError
from skillc.text import counted

if TYPE_CHECKING:
    from skillc.labels.judging import SessionJudge
    from skillc.sessions.store import SessionStore


@click.command(short_help="label sessions", epilog="Example: skillc sessions label --signals --skill tickets.skill")
@click.option(
    "--skill",
    "skills",
    multiple=True,
    metavar="SKILL",
    help="A known skill: a program, the folder of a skill, or only its name. Repeatable.",
)
@click.option("--signals", is_flag=True, help="Label all usable sessions by what they record, without a model.")
@click.option("--judge", "program", metavar="PROGRAM", type=ProgramPath(), help="Label by the judge of this program.")
@click.option(
    "--check",
    is_flag=True,
    help="With --judge: measure it against a person's labels, three questions a session; label nothing.",
)
@click.option("--person", metavar="NAME", help="Who labels in the terminal; by default the login name.")
@plan_options
@store_option
@json_option
def label(
    skills: tuple[str, ...],
    signals: bool,
    program: Path | None,
    check: bool,
    person: str | None,
    models: tuple[str, ...],
    settings: tuple[str, ...],
    offline: bool,
    store: Path,
    as_json: bool,
) -> int:
    """Label which skill each stored session exercised, and whether it worked.

    Without `--signals` or `--judge` a terminal view opens, for a person (needs `pip install "skillc[label]"`).
    `--signals` reads exit statuses, tests, undone changes, the user's next words, scores and the end of each session.
    `--judge` asks the judge over `session` in PROGRAM, which must have passed `--check` against a person's labels: two
    plain questions on each of these sessions, and one with a text that asks for the wrong outcome. The caps of its
    budget hold. A label has its source and its certainty: measured on made sessions at first, against the labels of
    persons once there are enough.

    Exit status: 0 done; 1 the judge did not pass its check; 2 an error; 3 stopped by the budget or because a model
    stayed out of reach (run the same command to resume).
    """
    from skillc.labels.skills import known_skills
    from skillc.sessions.store import SessionStore

    used = [f"`--{name}`" for name, given in (("signals", signals), ("judge", program), ("person", person)) if given]
    if len(used) > 1:
        raise SkillcError(f"{used[0]} and {used[1]} can't be used together", hint="leave one of them out")
    if program is None and (check or models or settings or offline):
        raise SkillcError("`--check`, `--model`, `--set` and `--offline` are for a judge", hint="add `--judge PROGRAM`")
    known = known_skills(skills)
    with SessionStore(store) as opened:
        if signals:
            _label_by_signals(opened, known, as_json)
        elif program is not None:
            from skillc.labels.judging import load_judge

            judge = load_judge(program, models=models, settings=settings, offline=offline)
            return _check(opened, judge, offline, as_json) if check else _judge(opened, judge, known, offline, as_json)
        else:
            _label_view(opened, tuple(known), person, as_json)
    return 0


def _check(store: SessionStore, judge: SessionJudge, offline: bool, as_json: bool) -> int:
    from skillc.labels.judging import check_judge
    from skillc.labels.report import record_json, record_text

    record = check_judge(store, judge, offline=offline)
    if as_json:
        print_json(record_json(record))
    else:
        print_table(record_text(record))
    return 1 if record.problems else 0


def _judge(store: SessionStore, judge: SessionJudge, skills: Mapping[str, str], offline: bool, as_json: bool) -> int:
    from skillc.labels.judging import label_by_judge
    from skillc.labels.report import judging_json, judging_text

    found = label_by_judge(store, judge, skills, offline=offline)
    if as_json:
        print_json(judging_json(found))
    else:
        print_table(judging_text(found))
    return 0 if found.stopped is None else 3


def _label_by_signals(store: SessionStore, skills: Mapping[str, str], as_json: bool) -> None:
    from skillc.labels.report import signals_json, signals_table
    from skillc.sessions.labelling import label_by_signals

    found = label_by_signals(store, skills)
    if as_json:
        print_json(signals_json(found))
    else:
        print_table(signals_table(found))


def _label_view(store: SessionStore, skills: Sequence[str], person: str | None, as_json: bool) -> None:
    from getpass import getuser

    from skillc.labels.view import run_view

    who = person or getuser()
    given = run_view(store, skills, who)
    if as_json:
        print_json({"format_version": 1, "person": who, "labelled": given})
    else:
        click.echo(f"labelled {counted(given, 'session')} as {who}")


@click.command(
    short_help="how far the sources of labels agree", epilog="Example: skillc sessions agreement --skill route-tickets"
)
@click.option("--skill", metavar="NAME", help="Only labels for this skill.")
@store_option
@json_option
def agreement(skill: str | None, store: Path, as_json: bool) -> None:
    """Report how far persons, judges and signals agree on whether sessions worked, and how often each is right.

    For each two sources: the share of equal outcomes and Cohen's kappa, with 95 % intervals. For each signal and judge
    with ten sessions or more that a person has labelled too: the measured rate, which becomes the certainty of its
    labels.

    Exit status: 0 done, 2 an error.
    """
    from skillc.labels.report import agreement_json, agreement_table
    from skillc.sessions.labelling import measure_certainties
    from skillc.sessions.store import SessionStore

    with SessionStore(store) as opened:
        found = measure_certainties(opened, skill)
    if not found.sessions:
        of = f" for `{skill}`" if skill else ""
        raise SkillcError(f"no session has a label{of}", hint="label them with `skillc sessions label --signals`")
    if as_json:
        print_json(agreement_json(found))
    else:
        print_table(agreement_table(found))
