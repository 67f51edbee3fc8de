"""The verb `emit`: a compiled skill in the forms that hosts read."""

from __future__ import annotations

from pathlib import Path

import click

from skillc.cli.arguments import ProgramPath, json_option
from skillc.cli.output import print_json
from skillc.errors import SkillcError

_FORMS = ("claude-plugin", "codex", "gemini", "gemini-context", "hermes", "mcp", "agents-md")


@click.command(epilog="Example: skillc emit tickets.skill --form codex --out dist")
@click.argument("skill", type=ProgramPath())
@click.option("--form", required=True, type=click.Choice(_FORMS), help="The form of a host.")
@click.option("--out", "output", type=click.Path(path_type=Path, file_okay=False), help="The folder of its files.")
@click.option("--serve", is_flag=True, help="With --form mcp: serve the skill on standard input and output.")
@click.option("--force", is_flag=True, help="Overwrite files that were changed.")
@click.option("--dry-run", is_flag=True, help="Only print what would be written.")
@json_option
def emit(skill: Path, form: str, output: Path | None, serve: bool, force: bool, dry_run: bool, as_json: bool) -> int:
    """Write the compiled SKILL (a program, or the folder of a skill) in the form that a host reads.

    The body of SKILL.md is copied unchanged; what a form cannot say is reported. A file that was changed, or that
    skillc did not write, is not overwritten, and the difference is shown. The same skill gives the same bytes.

    With --form mcp --serve the skill is served over MCP, as the resources skill://NAME/SKILL.md and the files beside
    it, by the Skills extension (SEP-2640). Needs `skillc[mcp]`.

    Exit status: 0 done, 2 an error.
    """
    from skillc.emit.write import emit_json, emit_skill, emit_text, read_compiled

    if serve:
        from skillc import __version__
        from skillc.emit.serve import serve_stdio

        if form != "mcp" or output is not None:
            raise SkillcError(
                "`--serve` needs `--form mcp` and no `--out`", hint="`skillc emit SKILL --form mcp --serve`"
            )
        serve_stdio(read_compiled(skill)[1], __version__)
        return 0
    if output is None:
        raise SkillcError("no folder is named for the files", hint="name it: `--out DIR`")
    done = emit_skill(skill, form, output, force=force, dry_run=dry_run)
    if as_json:
        print_json(emit_json(done, dry_run=dry_run))
    else:
        click.echo(emit_text(done, dry_run=dry_run))
    return 0
