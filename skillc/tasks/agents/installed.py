"""An agent's program on this machine: where it is, its version, and the folders that a sandbox must let it read.

In a container the program is that of the image, unless it is written as a path beside the skillc program.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from skillc.errors import SkillcError
from skillc.language.commands import fill_placeholders, split_command
from skillc.plan.schema import Plan
from skillc.sandbox.container import ENGINE_FAILED, ENGINES, ask_in_container, failure_of
from skillc.sandbox.policy import SYSTEM, WORK, DeclaredSandbox, Mount, declared_sandbox

PATH = "/usr/local/bin:/usr/bin:/bin"
_VERSION_SECONDS = 60
_EXECUTABLES = {"codex": "codex", "opencode": "opencode", "hermes": "hermes", "claude_code": "claude"}
_HEAD = 256


def words_of(plan: Plan) -> tuple[str, ...]:
    """Return the words of `command(...)`: of a single text those of a POSIX shell, else the texts themselves."""
    given = tuple(map(str, plan.task.rollout.arguments))
    return split_command(given[0]) if len(given) == 1 else given


def program_of(plan: Plan, root: Path, environ: Mapping[str, str]) -> str:
    """Return the path of the program of a plan's agent; in a container a program of the image keeps its name.

    Raises:
        SkillcError: it is not installed, cannot be executed, or has another version than the declared one.
    """
    rollout = plan.task.rollout
    what = f"`rollout = {rollout.kind}`"
    name = _written(plan)
    version = rollout.settings.get("version")
    sandbox = declared_sandbox(rollout.settings.get("sandbox"))
    filled = fill_placeholders(name, lambda _: str(root.resolve()))
    if sandbox.kind in ENGINES and not _is_beside(name):
        _require_in_image(filled, sandbox, what)
        program = filled
    else:
        program = find_program(filled, root, environ, what)
    if version is not None:
        if sandbox.kind in ENGINES:
            done = _in_container([program, "--version"], sandbox, program_files(plan, program))
            printed = done.stdout + done.stderr
        else:
            printed = _version_here(program, what)
        _check_version(program, printed, str(version), what)
    return program


def program_files(plan: Plan, program: str) -> list[Path]:
    """Return the files of this machine that a plan's program consists of."""
    if declared_sandbox(plan.task.rollout.settings.get("sandbox")).kind in ENGINES:
        # Its interpreter is that of the image.
        return [Path(program)] if _is_beside(_written(plan)) else []
    return folders_of(program)


def _written(plan: Plan) -> str:
    """Return the program of a plan's agent as it is written."""
    rollout = plan.task.rollout
    if rollout.kind == "command":
        return words_of(plan)[0]
    return str(rollout.settings.get("executable") or _EXECUTABLES[rollout.kind])


def _is_beside(name: str) -> bool:
    """Whether a program is written as a path that begins at the skillc program's folder."""
    return "{here}" in name or ("/" in name and not name.startswith("/"))


def _require_in_image(name: str, sandbox: DeclaredSandbox, what: str) -> None:
    done = _in_container(["sh", "-c", 'command -v "$1"', "sh", name], sandbox)
    if done.returncode == ENGINE_FAILED:
        raise SkillcError(f"{what}: the image `{sandbox.image}` cannot be asked for `{name}`: {failure_of(done)}")
    if done.returncode:
        raise SkillcError(
            f"{what}: the image `{sandbox.image}` has no program `{name}`",
            hint='install it in the image, or set its path there: `executable = "/path/to/it"`',
        )


def _in_container(
    command: Sequence[str], sandbox: DeclaredSandbox, reads: Iterable[Path] = ()
) -> subprocess.CompletedProcess[str]:
    assert sandbox.kind in ENGINES
    with tempfile.TemporaryDirectory(prefix="skillc-", ignore_cleanup_errors=True) as folder:
        short = replace(sandbox, limits=replace(sandbox.limits, time=_VERSION_SECONDS))
        policy = short.policy(Path(folder).resolve(), mounts_of(reads))
        return ask_in_container(sandbox.kind, policy, command, {"HOME": WORK})


def find_program(name: str, root: Path, environ: Mapping[str, str], what: str) -> str:
    """Return the path of a program; a relative path with a slash begins at the program's folder.

    Raises:
        SkillcError: it is not installed, or cannot be executed; `what` says whose it is.
    """
    written = str(root.resolve() / Path(name).expanduser()) if "/" in name else name
    found = shutil.which(written, path=environ.get("PATH", PATH))
    if found is None and "/" in written and Path(written).exists():
        raise SkillcError(f"{what}: `{name}` cannot be executed", hint=f"`chmod +x {written}`")
    if found is None:
        raise SkillcError(
            f"{what}: the program `{name}` was not found",
            hint='install it, or set its path: `executable = "/path/to/it"`',
        )
    return str(_real(Path(found)))


def _version_here(program: str, what: str) -> str:
    with tempfile.TemporaryDirectory(prefix="skillc-", ignore_cleanup_errors=True) as home:
        environment = {"PATH": search_path(program), "HOME": home}
        try:
            done = subprocess.run(
                [program, "--version"], capture_output=True, timeout=_VERSION_SECONDS, check=False, env=environment
            )
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise SkillcError(f"{what}: `{program} --version` failed: {problem}") from None
    return (done.stdout + done.stderr).decode(errors="replace")


def _check_version(program: str, said: str, wanted: str, what: str) -> None:
    """Raise `SkillcError` if a program printed another version."""
    printed = " ".join(said.split())
    if not re.search(rf"(?<![\d.]){re.escape(wanted)}(?!\.?\d)", printed):
        raise SkillcError(
            f"{what}: version {wanted} is declared, and `{program}` reports `{printed[:80]}`",
            hint=f"install {wanted}, or change `version`",
        )


def folders_of(program: str) -> list[Path]:
    """Return the files and folders outside the system's that a program consists of, its interpreter included."""
    found = [each for path in _programs(Path(program)) for each in _installation(path) if not _is_system(each)]
    return [each for each in dict.fromkeys(found) if not any(each != o and each.is_relative_to(o) for o in found)]


def declared_reads(names: Iterable[str], root: Path, what: str) -> list[Path]:
    """Return the files and folders of the setting `reads`; a relative path begins at the program's folder.

    Raises:
        SkillcError: one does not exist; `what` says whose setting it is.
    """
    paths = [root / Path(name).expanduser() for name in names]
    for path in paths:
        if not path.exists():
            raise SkillcError(f"{what}: `{path}` does not exist", hint="create it, or change `reads`")
    return paths


def mounts_of(paths: Iterable[Path]) -> tuple[Mount, ...]:
    """Return read-only mounts of files and folders at their own paths."""
    return tuple(Mount(path.resolve(), str(path)) for path in dict.fromkeys(paths))


def _real(program: Path) -> Path:
    """Follow the link that an installer made; links of the system and of virtual environments have a meaning."""
    linked = _is_system(program) or any((parent / "pyvenv.cfg").is_file() for parent in program.parents)
    return program if linked else program.resolve()


def search_path(program: str) -> str:
    """Return the `PATH` of an agent: the folders of its program and its interpreter, and the system's."""
    own = [str(path.parent) for path in _programs(Path(program))]
    return ":".join(dict.fromkeys([*own, *PATH.split(":")]))


def _programs(program: Path) -> Iterator[Path]:
    """Yield a program, and the interpreters that its first line names."""
    yield program
    try:
        with program.open("rb") as file:
            head = file.read(_HEAD).split(b"\n")[0]
    except OSError:
        return
    if not head.startswith(b"#!"):
        return
    words = [word for word in head[2:].decode(errors="replace").split() if not word.startswith("-")]
    if words and Path(words[0]).name == "env":
        words = words[1:]
    found = shutil.which(words[0]) if words else None
    if found is not None and Path(found) != program:
        yield _real(Path(found))


def _installation(program: Path) -> list[Path]:
    """The folder that a program was installed into, by npm or as a virtual environment of Python; else its file."""
    for parent in program.parents:
        if (parent / "pyvenv.cfg").is_file():
            # With the Python that the environment belongs to, unless it is the system's.
            interpreter = (parent / "bin" / "python").resolve()
            return [parent] if _is_system(interpreter) else [parent, interpreter.parent.parent]
    modules = [parent for parent in program.parents if parent.name == "node_modules"]
    if modules:
        # A prefix has its programs in `bin`, beside `lib/node_modules`.
        return [modules[-1]]
    return [program]


def _is_system(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in SYSTEM)
