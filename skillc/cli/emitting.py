"""The verb `emit`: a compiled skill in the forms that hosts read."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from skillc.cli.arguments import ProgramPath, RunOptions, progress_options, setting_options, split_option
from skillc.cli.output import print_json
from skillc.errors import SkillcError

_FORMS = ("claude-plugin", "codex", "gemini", "gemini-context", "hermes", "mcp", "agents-md")


@click.command(epilog="Example: skillc emit tickets.skill --form codex --out dist")
@click.argument("skill", type=ProgramPath())
@click.option("--form", required=True, type=click.Choice(_FORMS), help="The form of a host.")
@click.option("--out", "output", type=click.Path(path_type=Path, file_okay=False), help="The folder of its files.")
@click.option("--serve", is_flag=True, help="With --form mcp: serve the skill on standard input and output.")
@click.option("--test", is_flag=True, help="Write the form only if it is not worse than the plain form, paired.")
@click.option(
    "--margin",
    type=click.FloatRange(min=0, max=100, min_open=True, max_open=True),
    default=5.0,
    show_default=True,
    metavar="POINTS",
    help="With --test, the loss that is accepted, in points.",
)
@split_option("validation", "test", help="With --test, the examples; the lock counts each look at test.")
@click.option("--samples", type=click.IntRange(min=1), help="With --test, rollouts per example.")
@click.option(
    "--model",
    metavar="MODEL",
    help="With --test, the model to use as the target: a role of the program, provider/name, or role=provider/name.",
)
@click.option("--force", is_flag=True, help="Overwrite files that were changed, and write a form that is refused.")
@click.option("--dry-run", is_flag=True, help="Only print what would be written.")
@setting_options
@progress_options
def emit(
    skill: Path,
    form: str,
    output: Path | None,
    serve: bool,
    test: bool,
    margin: float,
    split: str,
    samples: int | None,
    model: str | None,
    force: bool,
    dry_run: bool,
    **values: Any,
) -> int:
    """Write the compiled SKILL (a program, or the folder of a skill) in the form that a host reads.

    The body of SKILL.md is copied unchanged; what a form cannot say is reported. A file that was changed, or that
    skillc did not write, is not overwritten, and the difference is shown. The same skill gives the same bytes.

    With --test the target gets the skill in the plain form and as the host would give it, on the same examples. The
    form is written only if a one-sided paired test shows that it is not worse by more than --margin. A form that puts
    the same bytes in front of the target needs no test.

    With --form mcp --serve the skill is served over MCP, as the resources skill://NAME/SKILL.md and the files beside
    it, by the Skills extension (SEP-2640). Needs `skillc[mcp]`.

    Exit status: 0 done, 1 with --test if the form is not kept, 2 an error, 3 stopped by the budget or because a model
    stayed out of reach, 130 interrupted (run the same command to resume).
    """
    from skillc.emit.write import emit_json, emit_skill, emit_text, read_compiled

    options = RunOptions(**values)
    if serve:
        from skillc import __version__
        from skillc.emit.serve import serve_stdio

        if form != "mcp" or output is not None or test:
            raise SkillcError("`--serve` needs `--form mcp`, and neither `--out` nor `--test`")
        serve_stdio(read_compiled(skill)[1], __version__)
        return 0
    if output is None and not test:
        raise SkillcError("no folder is named for the files", hint="name it: `--out DIR`")
    tested, shown, lines, status = None, None, list[str](), 0
    if test:
        status, tested, shown, lines = _tested(
            skill, form, Fraction(str(margin)) / 100, split, samples=samples, model=model, options=options
        )
    kept = status == 0 or (status == 1 and force)
    done = None
    if output is not None and kept:
        done = emit_skill(skill, form, output, tested=tested, force=force, dry_run=dry_run)
    if options.as_json or options.json_lines:
        written = emit_json(done, dry_run=dry_run) if done is not None else {"form": form, "files": []}
        found = {**written, **({"tested": shown} if test else {})}
        if options.json_lines:
            print_json({"event": "result", **found}, indent=None)
        else:
            print_json(found)
    else:
        lines += [emit_text(done, dry_run=dry_run)] if done is not None else []
        if output is not None and done is None:
            lines.append("nothing is written" + ("; `--force` writes the form anyway" if status == 1 else ""))
        click.echo("\n".join(lines))
    return 0 if done is not None and status == 1 else status


def _tested(
    skill: Path,
    form: str,
    margin: Fraction,
    split: str,
    *,
    samples: int | None,
    model: str | None,
    options: RunOptions,
) -> tuple[int, Mapping[str, Any], Mapping[str, Any], list[str]]:
    """Test a form; return the exit status, the entry for the record, the object for JSON, and the lines."""
    from skillc.artifacts.loading import program_and_skill
    from skillc.cli.running import exit_status_measured, plan_measured, run_measured
    from skillc.emit import paired
    from skillc.emit.forms import FORMS
    from skillc.emit.write import read_compiled

    paths, compiled = read_compiled(skill)
    program, _ = program_and_skill(skill, "name the program: `skillc emit PROGRAM.skill --test`")
    job = paired.prepare_form_test(
        plan_measured(program, options),
        paths.skill,
        compiled,
        FORMS[form],
        split=split,  # type: ignore[arg-type]  # click has checked it
        margin=margin,
        samples=samples,
        model=model,
        offline=options.offline,
    )
    if job.same:
        record = paired.record_of(job, None)
        return 0, record, record, [paired.identical_line(job)]
    found = run_measured("emit", job, paired.preview_lines(job), options, paired.measure_form)
    status = exit_status_measured(found) or (0 if found.result == "kept" else 1)
    return status, paired.record_of(job, found), paired.tested_json(found), paired.tested_lines(found)
