"""Compile the benchmarks on their samples: `python -m programs.frame.compile [NAME ...]`, which `make programs` runs.

Each program is compiled twice, with skillc's protocol and with that of SkillOpt's paper, and scripts play its models.
`--keep` writes what `ours.skill` gives into the program's own folder, for git.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

import click

from programs.frame.layout import PROGRAMS, PROTOCOLS, benchmarks, missing, variables

BUILD = PROGRAMS.parent / "build" / "programs"
_COLUMNS = (17, 8, 21, 21, 19, 6, 6)
_HEADER = ("program", "protocol", "initial skill", "compiled skill", "verdict", "calls", "time")


def compile_sample(name: str, protocol: str, *options: str) -> dict[str, Any]:
    """Compile a program, and return the summary that `compile --json` prints.

    Raises:
        click.ClickException: the compile failed.
    """
    command = [sys.executable, "-m", "skillc", "compile", f"{protocol}.skill", "--json", *options]
    environment = {**os.environ, **variables(name)}
    done = subprocess.run(command, cwd=PROGRAMS / name, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise click.ClickException(f"{name}/{protocol}.skill: {done.stderr.strip()}")
    return dict(json.loads(done.stdout))


def _line(cells: tuple[str, ...]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, _COLUMNS, strict=True)).rstrip()


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1)
@click.option("--keep", is_flag=True, help="Replace the compiled skills in the repository.")
def main(names: tuple[str, ...], keep: bool) -> None:
    """Compile the benchmarks NAMES, by default all, on their samples."""
    unknown = set(names) - set(benchmarks())
    if unknown:
        raise click.ClickException(f"there is no benchmark `{sorted(unknown)[0]}`; there are {', '.join(benchmarks())}")
    click.echo(_line(_HEADER))
    for name in names or benchmarks():
        reason = missing(name)
        if reason:
            click.echo(f"{name.ljust(_COLUMNS[0])}  skipped: {reason}")
            continue
        for protocol in PROTOCOLS:
            start = time.monotonic()
            if keep and protocol == "ours":
                shutil.rmtree(PROGRAMS / name / "skills", ignore_errors=True)
                summary = compile_sample(name, protocol, "--fresh")
            else:
                summary = compile_sample(name, protocol, "--output", str(BUILD / name / protocol / "skills"))
            click.echo(_line((name, protocol, *_results(summary), f"{time.monotonic() - start:.0f} s")))


def _results(summary: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Return the scores of the initial and the compiled skill, the verdict, and the calls.

    They are those of the test split; of the validation split where nothing was accepted, as then there is no test.
    """
    test = summary.get("test") or {}
    on, scores = ("test", test) if test.get("best") else ("validation", summary["validation"])
    shown = [f"{scores[each]['mean']:.1%} of {scores[each]['n']} {on}" for each in ("initial", "best")]
    return shown[0], shown[1], str(summary["verdict"]), f"{summary['spent']['charged']['total']['calls']:,}"


if __name__ == "__main__":
    main()
