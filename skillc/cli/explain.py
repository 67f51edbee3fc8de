"""`skillc explain`: a page per diagnostic code, offline."""

from __future__ import annotations

import json

import click

from skillc.cli.completing import complete_codes
from skillc.errors import SkillcError


@click.command(short_help="tell what a diagnostic code means", epilog="Example: skillc explain SK409")
@click.argument("code", required=False, shell_complete=complete_codes)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def explain(code: str | None, as_json: bool) -> None:
    """Tell what CODE means, with an example that shows it and the mended one. Without CODE: list all codes.

    Exit status: 0 done, 2 there is no such code.
    """
    from skillc.code_pages import laid_out, plain, shown
    from skillc.diagnostics.codes import CODES
    from skillc.diagnostics.suggest import suggest

    if code is None:
        codes = sorted(CODES)
        if as_json:
            entries = [{"code": c, "title": CODES[c].title} for c in codes]
            click.echo(json.dumps({"format_version": 1, "codes": entries}, ensure_ascii=False, indent=2))
        else:
            click.echo("\n".join(f"{c}  {CODES[c].title}" for c in codes))
        return
    entry = CODES.get(code.upper())
    if entry is None:
        near = suggest(code.upper(), CODES)
        raise SkillcError(
            f"there is no code `{code}`",
            hint=f"did you mean `{near}`?" if near else "`skillc explain` lists all codes",
        )
    entry = laid_out(entry)
    said = shown(entry)
    if as_json:
        page = {
            "format_version": 1,
            "code": entry.code,
            "title": entry.title,
            "explanation": entry.explanation,
            "found_by": entry.found_by,
            "severity": said.severity if said else None,
            "fix": said.fix if said else None,
            "says": said.text if said else None,
            "files": dict(entry.files),
            "bad": entry.bad,
            "good": entry.good,
            "mended": dict(entry.mended),
        }
        click.echo(json.dumps(page, ensure_ascii=False, indent=2))
    else:
        click.echo(plain(entry, said))
