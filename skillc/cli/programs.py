"""The verbs on the text of programs: `check` and `fmt`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillc.cli.arguments import ProgramPath, findings_options, json_option, programs
from skillc.cli.output import has_color, print_error, print_json, show_diagnostics
from skillc.errors import SkillcError
from skillc.text import counted

if TYPE_CHECKING:
    from skillc.frontend import CheckedFile, Fixes
    from skillc.syntax.formatting import FormattedFile

_STDIN = Path("-")


@click.command(epilog="Example: skillc check tickets.skill --format concise")
@click.argument("paths", metavar="PROGRAMS...", nargs=-1, required=True, type=ProgramPath())
@findings_options
@click.option("--fix", is_flag=True, help="Apply the safe fixes and report the remaining findings.")
@click.option("--unsafe-fixes", is_flag=True, help="With --fix: also apply fixes that may change a program's meaning.")
@click.option("--diff", is_flag=True, help="Show what --fix would change, and write nothing.")
@click.option("--data", is_flag=True, help="Read the data too, and check the program against its examples.")
@click.option("--locked", is_flag=True, help="Report where program, data or skill differ from the lock.")
def check(
    paths: tuple[Path, ...],
    style: str,
    as_json: bool,
    fix: bool,
    unsafe_fixes: bool,
    diff: bool,
    data: bool,
    locked: bool,
) -> int:
    """Find mistakes in PROGRAMS: files, and folders with all programs below them.

    Exit status: 0 clean or notes only, 1 findings, or a diff that is not empty, 2 a file that cannot be read or
    written.
    """
    from skillc.frontend import add_data_findings, check_and_fix, exit_status

    if unsafe_fixes and not (fix or diff):
        raise SkillcError("`--unsafe-fixes` needs `--fix` or `--diff`", hint="add one of them")
    if diff and (data or locked):
        other = "--data" if data else "--locked"
        raise SkillcError(f"`--diff` and `{other}` can't be used together", hint="leave one of them out")
    fixes: Fixes = "none" if not (fix or diff) else "unsafe" if unsafe_fixes else "safe"
    checked = [check_and_fix(path, fixes) for path in programs(paths)]
    if diff:
        _show_differences(checked)
        changed = any(each.after != each.before for each in checked)
        return max(changed, 0 if all(each.readable for each in checked) else exit_status(checked))
    _write_fixes(checked)
    checked = [add_data_findings(each) for each in checked] if data else checked
    if locked:
        from skillc.versions.locked import with_lock

        checked = [with_lock(each) for each in checked]
    show_findings(checked, "json" if as_json else style)
    return exit_status(checked)


def _write_fixes(checked: Sequence[CheckedFile]) -> None:
    """Write the fixed files, and report them on standard error.

    Raises:
        SkillcError: one of them can't be written; those before it were.
    """
    from skillc.syntax.files import write_source

    for each in checked:
        if each.after != each.before:
            write_source(each.path, each.after)
            click.echo(f"fixed {counted(each.fixed, 'finding')} in {each.path}", err=True)
        _report_refused(each)


def _show_differences(checked: Sequence[CheckedFile]) -> None:
    from skillc.diagnostics.render import concise, difference

    for each in checked:
        click.echo(difference(each.path.as_posix(), each.before, each.after), nl=False)
        if each.after != each.before:
            click.echo(f"would fix {counted(each.fixed, 'finding')} in {each.path}", err=True)
        elif not each.readable:
            click.echo(concise(each.diagnostics[0]), err=True)
        _report_refused(each)


def _report_refused(checked: CheckedFile) -> None:
    if checked.refused:
        fixes = counted(checked.refused, "fix", "fixes")
        click.echo(f"left out {fixes} in {checked.path}: the result would have a new error", err=True)


def show_findings(checked: Sequence[CheckedFile], style: str) -> None:
    """Print all findings in a format; standard output contains nothing else."""
    from skillc import __version__
    from skillc.diagnostics import formats, render

    found = [diagnostic for each in checked for diagnostic in each.diagnostics]
    suppressed = [one for each in checked for one in each.suppressed]
    if style == "json":
        print_json(formats.as_json(found, suppressed))
    elif style == "sarif":
        print_json(formats.log(found, suppressed, version=__version__))
    elif style in ("github", "concise"):
        line = formats.annotation if style == "github" else render.concise
        for diagnostic in found:
            click.echo(line(diagnostic))
    else:
        color = has_color()
        for each in checked:
            for diagnostic in each.diagnostics:
                click.echo(render.text(diagnostic, color=color) + "\n", err=not each.readable)
        click.echo(render.summary(found, len(suppressed)))


@click.command(epilog="Example: skillc fmt tickets.skill --check")
@click.argument("paths", nargs=-1, required=True, type=ProgramPath())
@click.option("--check", is_flag=True, help="Write nothing; print the names of the files that would change.")
@click.option("--diff", is_flag=True, help="Write nothing; print what would change.")
@json_option
def fmt(paths: tuple[Path, ...], check: bool, diff: bool, as_json: bool) -> int:
    """Format PATHS: files, all .skill files below folders, or `-` for standard input to standard output.

    The format has no options. Comments are kept, and a file is written only if the result is provably the same
    program. A file with a syntax error is left unchanged; the others are formatted.

    Exit status: 0 all files are formatted, 1 some would change (with --check or --diff), 2 a file that can't be read,
    written or parsed.
    """
    writes = not (check or diff)
    if _STDIN in paths:
        if len(paths) > 1 or as_json:
            raise SkillcError("`-` can't be used with other paths or `--json`: it prints the program")
        files = [_format_stdin(writes)]
    else:
        files = _format_files(paths, writes)
    if as_json:
        _print_files(files, writes)
    elif diff:
        _print_diff(files)
    elif check:
        for each in files:
            if each.changed:
                click.echo(each.name)
    _report(files, writes)
    if any(each.failed for each in files):
        return 2
    return 1 if not writes and any(each.changed for each in files) else 0


def _format_stdin(writes: bool) -> FormattedFile:
    from skillc.syntax.formatting import format_bytes

    formatted = format_bytes("<stdin>", sys.stdin.buffer.read())
    if writes and formatted.text is not None:
        # Bytes keep the line ends on every platform.
        sys.stdout.buffer.write(formatted.text.encode())
        sys.stdout.buffer.flush()
    return formatted


def _format_files(paths: Sequence[Path], writes: bool) -> list[FormattedFile]:
    from skillc.syntax.formatting import format_file, save

    formatted = []
    for path in programs(paths):
        file = format_file(path)
        formatted.append(save(path, file) if writes else file)
    return formatted


def _print_files(files: Sequence[FormattedFile], writes: bool) -> None:
    from skillc.diagnostics.formats import as_json

    changed = "reformatted" if writes else "would reformat"
    entries = [
        {
            "file": each.name,
            "status": "failed" if each.failed else changed if each.changed else "unchanged",
            "error": each.problem.message if each.problem else None,
        }
        for each in files
    ]
    found = as_json([diagnostic for each in files for diagnostic in each.diagnostics])
    print_json({**found, "format_version": 1, "files": entries})


def _print_diff(files: Sequence[FormattedFile]) -> None:
    from skillc.diagnostics.render import difference

    colors = {"@": "cyan", "+": "green", "-": "red"}
    for each in files:
        if not each.changed or each.text is None:
            continue
        # `splitlines` would also break at characters that end no line.
        diff = difference(each.name, each.before.decode("utf-8"), each.text)
        for line in diff.removesuffix("\n").split("\n"):
            is_head = line.startswith(("--- ", "+++ "))
            click.echo(click.style(line, bold=True) if is_head else click.style(line, fg=colors.get(line[:1])))


def _report(files: Sequence[FormattedFile], writes: bool) -> None:
    """Report errors, rewritten files and the totals on standard error."""
    for each in files:
        show_diagnostics(each.diagnostics)
        if each.problem:
            print_error(each.problem)
        elif writes and each.changed and each.name != "<stdin>":
            click.echo(f"reformatted {each.name}", err=True)
    failed = sum(each.failed for each in files)
    changed = sum(each.changed and not each.failed for each in files)
    counts = {
        "reformatted" if writes else "would be reformatted": changed,
        "left unchanged" if writes else "already formatted": len(files) - changed - failed,
        "could not be formatted": failed,
    }
    click.echo(", ".join(f"{counted(count, 'file')} {what}" for what, count in counts.items() if count), err=True)
