"""The verb `evolve`: nights in which a skill learns from new sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from skillc.cli.arguments import ProgramPath, RunOptions, plan_options, progress_options
from skillc.cli.output import print_json, print_result
from skillc.errors import SkillcError


@click.command(epilog="Example: skillc evolve tickets.skill --init")
@click.argument("program", type=ProgramPath())
@click.option("--init", is_flag=True, help="Add an `evolve` block to PROGRAM, and stop.")
@click.option("--log", "only_log", is_flag=True, help="Print a table of all nights, and stop.")
@click.option("--cron", metavar="HH:MM", help="Print a line for crontab, and stop.")
@click.option("--systemd", type=click.Path(path_type=Path), metavar="DIR", help="Write a service and a timer there.")
@click.option("--at", default="03:00", show_default=True, metavar="HH:MM", help="The time of the timer.")
@click.option("--env-file", type=click.Path(path_type=Path), help="With --cron or --systemd: a file with the keys.")
@click.option("--again", is_flag=True, help="Run a second night on the same date, with a budget of its own.")
@plan_options
@progress_options
def evolve(
    program: Path,
    init: bool,
    only_log: bool,
    cron: str | None,
    systemd: Path | None,
    at: str,
    env_file: Path | None,
    again: bool,
    **values: Any,
) -> int:
    """Run one night of PROGRAM: learn from new sessions, and stage what is shown to be better.

    A night imports the sessions that the `evolve` block names and adds a row for each new labelled one to
    NAME.nights.jsonl. It measures the adopted skill on the new rows; if that has fallen below its lock's score by more
    than `drift`, it rolls back, once. If there is something to learn, it compiles from the adopted skill, and compares
    the result with it on test rows that no night has looked at, over as many nights as it takes. What passes is staged,
    and adopted if the policy in skills.toml admits it. All nights together accept a skill that is not better with a
    probability of at most `error`. The caps of the block hold for each night. A night that was killed is finished by
    the next call.

    Exit status: 0 done, 1 the skill has fallen below its lock's score, 2 an error, 3 a model stayed out of reach (the
    next call resumes), 130 interrupted (likewise).
    """
    import shlex
    from datetime import date

    from skillc.cli.running import night_opener, plan_measured
    from skillc.evolve.ledger import Ledger
    from skillc.evolve.night import prepare_night, run_night
    from skillc.evolve.report import log_json, log_table, night_report, night_status
    from skillc.evolve.schedule import add_block, crontab_line, schedule_of, write_units

    options = RunOptions(**values)
    if init:
        add_block(program)
        click.echo(f"added an `evolve` block to `{program}`", err=True)
        return 0
    planned = plan_measured(program, options)
    name = planned.plan.skill.artifact
    if cron is not None or systemd is not None:
        if cron is not None and systemd is not None:
            raise SkillcError("`--cron` and `--systemd` can't be used together", hint="leave one of them out")
        found = schedule_of(program, name, cron or at, env_file, planned.plan.evolve)
        written = write_units(found, systemd) if systemd is not None else []
        if options.as_json:
            print_json({"format_version": 1, "files": [str(each) for each in written], "line": crontab_line(found)})
        else:
            click.echo("\n".join(str(each) for each in written) or crontab_line(found))
        return 0
    if only_log:
        records = Ledger.of(planned.root, name).records()
        print_result(lambda: log_json(records), lambda: log_table(records), options, soft_wrap=False)
        return 0
    job = prepare_night(planned)
    record = run_night(job, night_opener(planned, options), date=date.today().isoformat(), again=again)
    folder = job.shelf.project
    where = "" if folder.samefile(Path.cwd()) else f"--project {shlex.quote(str(folder))}"
    print_result(lambda: record, lambda: night_report(record, where), options)
    return night_status(record)
