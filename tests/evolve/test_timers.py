"""The line for cron and the units for systemd are valid, have no key, and make a failure visible."""

import shutil
import subprocess
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from skillc.errors import SkillcError
from skillc.evolve.schedule import add_block, crontab_line, schedule_of, unit_texts, write_units
from skillc.frontend import plan_file
from skillc.language.loop import EvolvePlan
from tests.evolve.nights import NAME, PROGRAM


def schedule(folder, at="03:05"):
    return schedule_of(folder / "a b 100%.skill", NAME, at, folder / "keys.env", EvolvePlan(time=Fraction(3600)))


def run_as_cron(line):
    """Run the command of a line as cron does: a bare environment, and percent signs unescaped."""
    command = line.split(" ", 5)[5].replace(r"\%", "%")
    return subprocess.run(
        ["/bin/sh", "-c", command],
        env={"PATH": "/usr/bin:/bin", "HOME": "/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )


def stand_in(folder, text):
    """An interpreter that runs a shell script in place of skillc."""
    path = folder / "python stand-in"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_the_line_runs_with_the_keys_and_keeps_a_log(tmp_path):
    (tmp_path / "keys.env").write_text("KEY='value of a key'\n")
    python = stand_in(tmp_path, 'echo "$KEY in $PWD: $*"')
    line = crontab_line(replace(schedule(tmp_path), python=python))
    assert line.startswith("5 3 * * * ") and "value of a key" not in line and "\n" not in line
    done = run_as_cron(line)
    assert done.returncode == 0 and done.stdout == ""
    log = (tmp_path / ".skillc/nights" / NAME / "cron.log").read_text()
    assert log == f"value of a key in {tmp_path}: -m skillc evolve {tmp_path}/a b 100%.skill --quiet\n"


def test_a_failed_night_has_its_status_and_its_last_lines_in_the_mail(tmp_path):
    python = stand_in(tmp_path, "echo 1; echo 2; echo 3; echo 4; echo 'error: no key' >&2; exit 2")
    done = run_as_cron(crontab_line(replace(schedule(tmp_path), python=python)))
    assert (done.returncode, done.stdout) == (2, "2\n3\n4\nerror: no key\n")


@pytest.mark.skipif(shutil.which("crontab") is None, reason="needs cron")
def test_cron_accepts_the_line(tmp_path):
    file = tmp_path / "tab"
    file.write_text(crontab_line(schedule(tmp_path)) + "\n")
    help_text = subprocess.run(["crontab", "-h"], capture_output=True, text=True, check=False)
    if "-n" not in help_text.stdout + help_text.stderr:
        pytest.skip("this crontab has no dry run")
    done = subprocess.run(["crontab", "-n", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_systemd_accepts_the_units(tmp_path):
    folder = tmp_path / "units"
    written = write_units(schedule(tmp_path), folder)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *map(str, written)], capture_output=True, text=True, check=False
    )
    own = [line for line in done.stderr.splitlines() if "skillc-evolve" in line]
    assert not own, own


def test_the_units_run_a_missed_night_once_and_have_no_key(tmp_path):
    service, timer = unit_texts(schedule(tmp_path)).values()
    assert "Persistent=true" in timer and "OnCalendar=*-*-* 03:05:00" in timer
    assert f"EnvironmentFile=-{tmp_path}/keys.env" in service and "TimeoutStartSec=5400" in service
    assert '100%%.skill"' in service and "Type=oneshot" in service and "Nice=10" in service


def test_units_of_somebody_else_are_not_overwritten(tmp_path):
    folder = tmp_path / "units"
    written = write_units(schedule(tmp_path), folder)
    assert write_units(schedule(tmp_path), folder) == written
    written[0].write_text("[Unit]\n")
    with pytest.raises(SkillcError, match="exists with another text"):
        write_units(schedule(tmp_path, "04:00"), folder)
    assert written[0].read_text() == "[Unit]\n"


@pytest.mark.parametrize("at", ["3", "24:00", "03:60", "noon", "03:00 * *"])
def test_a_time_that_is_none_is_refused(tmp_path, at):
    with pytest.raises(SkillcError, match="is no time of day"):
        schedule(tmp_path, at)
    with pytest.raises(SkillcError, match="has a line break"):
        schedule_of(Path("a\nb.skill"), NAME, "03:00", None, None)


def test_init_adds_a_block_that_plans_and_refuses_a_second_one(tmp_path):
    program = tmp_path / "requests.skill"
    program.write_text(PROGRAM.replace("MODEL", '"rulebook/v1"').partition("evolve {")[0])
    add_block(program)
    found = plan_file(program, complete=False).plan.evolve
    assert (found.sessions, found.calls, found.error) == (("claude-code",), 2000, Fraction(1, 20))
    with pytest.raises(SkillcError, match="has an `evolve` block"):
        add_block(program)
