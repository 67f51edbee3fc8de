"""Schedule nights by a cron line or by a systemd service and timer; add the `evolve` block of `--init`.

No schedule contains a key: each reads an environment file that only its owner should be able to read.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.frontend import check_file, check_source
from skillc.language.loop import EvolvePlan
from skillc.syntax.source import Source

_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_WITHOUT_LIMIT = 8 * 3600
# Time that a night may take beyond its cap: import, and the end of a decision.
_GRACE = 1800
NICE = 10
# Lines of the log that cron mails: the result of a night and what to do next, or an error and its fix.
_MAILED = 4


@dataclass(frozen=True, slots=True)
class Schedule:
    """When and how the nights of a program run.

    Attributes:
        program: its file, absolute.
        name: the skill's.
        hour: and
        minute: local time.
        environment: a file with `NAME=value` lines; it need not exist.
        seconds: after which a night is interrupted, as by Ctrl-C; the next one resumes it.
        python: the interpreter that has skillc.
    """

    program: Path
    name: str
    hour: int
    minute: int
    environment: Path
    seconds: int
    python: str = sys.executable

    @property
    def log(self) -> Path:
        """The log of the nights that cron runs."""
        return self.program.parent / ".skillc" / "nights" / self.name / "cron.log"

    @property
    def command(self) -> list[str]:
        """The words of the command."""
        return [self.python, "-m", "skillc", "evolve", str(self.program), "--quiet"]


def schedule_of(program: Path, name: str, at: str, environment: Path | None, settings: EvolvePlan | None) -> Schedule:
    """Return the schedule of a program at a time such as `03:00`.

    Raises:
        SkillcError: the time cannot be read, or a path contains a line break.
    """
    match = _TIME.fullmatch(at)
    if match is None:
        raise SkillcError(f"`{at}` is no time of day", hint="write hours and minutes, such as `03:00`")
    file = (environment or Path.home() / ".config" / "skillc" / f"{name}.env").expanduser().absolute()
    for path in (program, file):
        if any(sign in str(path) for sign in "\n\r\0"):
            raise SkillcError(f"the path `{str(path)!r}` has a line break, which neither cron nor systemd can read")
    limit = settings.time if settings is not None else None
    seconds = _WITHOUT_LIMIT if limit is None else int(limit) + _GRACE
    return Schedule(program.absolute(), name, int(match[1]), int(match[2]), file, seconds)


def crontab_line(found: Schedule) -> str:
    """Return the line for `crontab -e`; on a failure cron mails the end of the log."""
    log, file = shlex.quote(str(found.log)), shlex.quote(str(found.environment))
    parts = [
        f"cd {shlex.quote(str(found.program.parent))}",
        f"mkdir -p {shlex.quote(str(found.log.parent))}",
        f"{{ [ ! -r {file} ] || {{ set -a; . {file}; set +a; }}; }}",
        f"{{ nice -n {NICE} timeout -s INT -k 300 {found.seconds} {shlex.join(found.command)} >> {log} 2>&1 "
        f"|| {{ s=$?; tail -n {_MAILED} {log}; exit $s; }}; }}",
    ]
    # cron ends a command at a percent sign.
    return f"{found.minute} {found.hour} * * * " + " && ".join(parts).replace("%", r"\%")


def unit_texts(found: Schedule) -> dict[str, str]:
    """Return the texts of the service and of the timer by file name."""
    name = f"skillc-evolve-{found.name}"
    service = f"""# Keys are in the environment file, which only its owner should be able to read.
[Unit]
Description=One night of the skill {found.name}
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
WorkingDirectory={_specifiers(str(found.program.parent))}
EnvironmentFile=-{_specifiers(str(found.environment))}
ExecStart={" ".join(_quoted(word) for word in found.command)}
Nice={NICE}
IOSchedulingClass=idle
TimeoutStartSec={found.seconds}
# As Ctrl-C: the night keeps what it has, and the next one resumes it.
KillSignal=SIGINT
KillMode=mixed
TimeoutStopSec=300
"""
    timer = f"""# A night that was missed while the machine was off runs once at the next start.
[Unit]
Description=Nights of the skill {found.name}

[Timer]
OnCalendar=*-*-* {found.hour:02d}:{found.minute:02d}:00
Persistent=true
RandomizedDelaySec=300

[Install]
WantedBy=timers.target
"""
    return {f"{name}.service": service, f"{name}.timer": timer}


def write_units(found: Schedule, folder: Path) -> list[Path]:
    """Write the service and the timer into a folder, and return their paths.

    Raises:
        SkillcError: one exists with another text, or cannot be written.
    """
    written = []
    texts = unit_texts(found)
    for name, text in texts.items():
        path = folder / name
        if path.exists() and path.read_text(encoding="utf-8") != text:
            raise SkillcError(f"`{path}` exists with another text", hint="move it away, or name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            write_atomically(folder / name, text)
            written.append(folder / name)
    except OSError as problem:
        raise SkillcError(f"`{folder}` cannot be written: {problem.strerror}") from problem
    return written


def _specifiers(text: str) -> str:
    """Escape a path for a unit, where a percent sign begins a specifier."""
    return text.replace("%", "%%")


def _quoted(word: str) -> str:
    """Quote a word of `ExecStart`."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return escaped if re.fullmatch(r"[\w@+=:,./-]+", escaped) else f'"{escaped}"'


# ---- the first settings ----------------------------------------------------------------------------

_BLOCK = """
# What a night of `skillc evolve` reads, may spend and must prove.
evolve {
  sessions = ["claude-code"]  # where new sessions are: agents, files, folders
  calls    = 2_000            # of one night, all models together
  time     = 2 h
  error    = 5%               # the probability of a single false accept over all nights together
  drift    = 5%               # a fall of the goal below the lock's score that rolls back
}
"""


def add_block(program: Path) -> None:
    """Add an `evolve` block to a program.

    Raises:
        SkillcError: it has one, has errors, or cannot be written.
    """
    checked = check_file(program)
    if checked.failed:
        raise SkillcError(f"`{program}` has errors", hint=f"`skillc check {program}` shows them")
    if any(entity.kind == "evolve" for entity in checked.entities):
        raise SkillcError(f"`{program}` has an `evolve` block", hint="change its settings there")
    text = program.read_text(encoding="utf-8").rstrip("\n") + "\n" + _BLOCK
    if check_source(Source(str(program), text), program.parent).failed:
        raise SkillcError(f"an `evolve` block cannot be added to `{program}`", hint="add it by hand")
    try:
        write_atomically(program, text)
    except OSError as problem:
        raise SkillcError(f"`{program}` cannot be written: {problem.strerror}") from problem
