"""The verbs on installed skills: `installed`, `update`, `adopt`, `reject`, `rollback` and `uninstall`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillc.cli.arguments import json_option
from skillc.cli.output import print_json
from skillc.errors import SkillcError

if TYPE_CHECKING:
    from skillc.publish.manifest import Scope
    from skillc.publish.staging import Edits

_project = click.option(
    "--project", type=click.Path(path_type=Path), default=".", help="The folder of `skills.toml` (default: this one)."
)
_person = click.option("--person", metavar="NAME", help="Who decides, for the log (default: the login name).")


def login() -> str:
    """Return the name of the present user."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"


@click.command(epilog="Example: skillc installed --versions")
@_project
@click.option("--versions", is_flag=True, help="With the log of each skill: adoptions, rejections, rollbacks.")
@json_option
def installed(project: Path, versions: bool, as_json: bool) -> int:
    """List the skills of `skills.toml`: version, verdict, what is staged, and the state of each destination.

    A destination is up to date, missing, another version, or changed by hand.

    Exit status: 0 every destination is up to date, 1 one is not, 2 an error.
    """
    import os

    from skillc.publish.report import list_json, list_skills, list_text

    found = list_skills(project, os.environ)
    if as_json:
        print_json(list_json(project, found))
    else:
        click.echo(list_text(project, found, versions=versions))
    well = all(each.state in ("up to date", "update staged") for each in found)
    return 0 if well and all(place.state == "up to date" for each in found for place in each.places) else 1


@click.command(epilog="Example: skillc update route-tickets")
@click.argument("names", nargs=-1, metavar="[SKILL]...")
@click.option("--adopt", "adopts", is_flag=True, help="Adopt what the policy of each skill admits; hold the rest.")
@click.option("--again", is_flag=True, help="Stage a version that was rejected or rolled back before.")
@click.option("--brief", is_flag=True, help="Without the text difference.")
@_person
@_project
@json_option
def update(
    names: tuple[str, ...], adopts: bool, again: bool, brief: bool, person: str | None, project: Path, as_json: bool
) -> int:
    """Stage newly compiled versions of the SKILLs of `skills.toml` (default: all), and show what they change.

    A skill from a git repository is fetched anew, at its branch or tag, and always waits for a person.

    Agents still read the adopted version: `skillc adopt` installs a staged one, `skillc reject` drops it. What may run
    is listed first, then rules, then the text, the verdict of the compile, and why the policy holds it for a person.

    Exit status: 0 nothing waits for a person, 1 something does, 2 an error.
    """
    from skillc.publish.git_source import compiled_from
    from skillc.publish.manifest import read_manifest
    from skillc.publish.report import update_json, update_of, update_text
    from skillc.publish.staging import adopt_by_policy, stage

    manifest = read_manifest(project)
    entries = [manifest.entry(name) for name in names] or list(manifest.entries.values()) or [manifest.entry("")]
    by, updates = person or login(), []
    for entry in entries:
        paths, commit = compiled_from(project, entry)
        found = stage(project, entry.name, paths, by=by, again=again, commit=commit)
        done = adopt_by_policy(project, entry.name, by=by) if adopts and found is not None else None
        updates.append(update_of(project, entry, found, done))
    if as_json:
        print_json({"format_version": 1, "skills": [update_json(each) for each in updates]})
    else:
        click.echo("\n\n".join(update_text(project, each, diff=not brief) for each in updates))
    return 1 if any(each.found is not None and each.done is None for each in updates) else 0


@click.command(epilog="Example: skillc adopt route-tickets")
@click.argument("name", metavar="SKILL")
@click.option("--yes", is_flag=True, help="Do not ask. Needed where there is no terminal.")
@click.option("--digest", metavar="DIGEST", help="Adopt only this version, or the one that begins so.")
@click.option("--why", default="", metavar="TEXT", help="The reason, for the log.")
@click.option("--take-edits", is_flag=True, help="Write edits made by hand at the destinations into the program.")
@click.option("--keep-edits", is_flag=True, help="Merge edits made by hand into this and later versions.")
@click.option("--drop-edits", is_flag=True, help="Replace edits made by hand; a copy is kept.")
@_person
@_project
@json_option
def adopt(
    name: str,
    yes: bool,
    digest: str | None,
    why: str,
    take_edits: bool,
    keep_edits: bool,
    drop_edits: bool,
    person: str | None,
    project: Path,
    as_json: bool,
) -> int:
    """Install the staged version of SKILL at all its destinations, after showing what it changes.

    All destinations get it or none. Destinations that were changed by hand are shown and not overwritten: --take-edits
    writes the edits into the program, whose next compile starts from them and tests them; --keep-edits merges them,
    rule by rule, into this version and every later one; --drop-edits replaces them. Where nobody can be asked, --yes
    is needed, and --digest makes sure that what is adopted is what was reviewed.

    Exit status: 0 done, 1 declined, 2 an error.
    """
    from skillc.publish import staging
    from skillc.publish.edits import take
    from skillc.publish.report import adoption_json, adoption_text, conflict_lines, prepared_text

    if take_edits + keep_edits + drop_edits > 1:
        raise SkillcError("`--take-edits`, `--keep-edits` and `--drop-edits` can't be used together", hint="name one")
    by = person or login()
    if take_edits:
        taken = take(project, name, by=by)
        if as_json:
            print_json({"format_version": 1, "skill": name, "program": str(taken.program), "parts": list(taken.parts)})
            return 0
        click.echo(taken.difference, nl=False)
        parts = ", ".join(f"`{part}`" for part in taken.parts) or "nothing new"
        click.echo(f"took {parts} into `{taken.program}`; next: skillc compile {taken.program}")
        return 0
    edits: Edits = "keep" if keep_edits else "drop" if drop_edits else "refuse"
    try:
        ready = staging.prepare(project, name, edits=edits)
        if ready is None:
            raise SkillcError(f"nothing is staged for `{name}`", hint=f"compile it, then `skillc update {name}`")
        if not as_json:
            click.echo(prepared_text(ready))
        if not yes and not _asked(
            f"adopt {ready.digest[:12]}?", f"skillc adopt {name} --yes --digest {ready.digest[:12]}"
        ):
            click.echo("not adopted")
            return 1
        # What was shown is what is adopted, even if another version is staged meanwhile.
        wanted = digest or ready.digest
        done = staging.adopt(project, name, by=by, why=why, digest=wanted, edits=edits)
    except staging.ConflictError as problem:
        click.echo("\n".join(conflict_lines(problem.conflicts)), err=True)
        raise
    if as_json:
        print_json(adoption_json(done))
    else:
        click.echo(adoption_text(done))
    return 0


@click.command(epilog='Example: skillc reject route-tickets --why "the refund rule is wrong"')
@click.argument("name", metavar="SKILL")
@click.option("--why", required=True, metavar="TEXT", help="The reason, for the log.")
@_person
@_project
@json_option
def reject(name: str, why: str, person: str | None, project: Path, as_json: bool) -> int:
    """Drop the staged version of SKILL. It is not staged again, unless `skillc update --again` asks for it.

    Exit status: 0 done, 2 an error.
    """
    from skillc.publish import staging

    found = staging.reject(project, name, by=person or login(), why=why)
    if as_json:
        print_json({"format_version": 1, "skill": name, "rejected": found.version.digest, "why": why})
    else:
        click.echo(f"{name}   rejected {found.version.short}; it is not staged again")
    return 0


@click.command(epilog="Example: skillc rollback route-tickets")
@click.argument("name", metavar="SKILL")
@click.option("--to", metavar="VERSION", help="This adopted version (default: the one before the present one).")
@click.option("--why", default="", metavar="TEXT", help="The reason, for the log.")
@click.option("--drop-edits", is_flag=True, help="Replace edits made by hand at the destinations; a copy is kept.")
@_person
@_project
@json_option
def rollback(
    name: str, to: str | None, why: str, drop_edits: bool, person: str | None, project: Path, as_json: bool
) -> int:
    """Go back to the version of SKILL before the present one, at all destinations or at none.

    The version that is left is not staged again. `skillc installed --versions` lists the adopted ones.

    Exit status: 0 done, 2 an error.
    """
    from skillc.publish import staging
    from skillc.publish.report import adoption_json, adoption_text

    edits: Edits = "drop" if drop_edits else "refuse"
    done = staging.rollback(project, name, to=to, by=person or login(), why=why, edits=edits)
    if as_json:
        print_json(adoption_json(done))
    else:
        click.echo(adoption_text(done, "rolled back to"))
    return 0


@click.command(epilog="Example: skillc uninstall route-tickets")
@click.argument("name", metavar="SKILL")
@click.option("--to", "agents", multiple=True, metavar="AGENT", help="Only from this agent. Repeatable.")
@click.option("--scope", type=click.Choice(("project", "user")), help="Only from the project's, or your own, folders.")
@click.option("--force", is_flag=True, help="Remove what was changed by hand too; a copy is kept.")
@click.option("--dry-run", is_flag=True, help="Only print what would be removed.")
@click.option("--why", default="", metavar="TEXT", help="The reason, for the log.")
@_person
@_project
@json_option
def uninstall(
    name: str,
    agents: tuple[str, ...],
    scope: Scope | None,
    force: bool,
    dry_run: bool,
    why: str,
    person: str | None,
    project: Path,
    as_json: bool,
) -> int:
    """Remove SKILL from the folders of the agents that `skills.toml` names, from all of them or from none.

    With its last destination SKILL leaves the manifest. Its versions and its log stay in `skills.adopted`. A folder
    that was changed by hand is not removed, and the difference is shown. Files that somebody else put there stay.

    Exit status: 0 done, 2 an error.
    """
    from skillc.publish.report import uninstalled_json, uninstalled_text
    from skillc.publish.uninstalling import uninstall as remove

    by = person or login()
    done = remove(project, name, agents, scope, by=by, why=why, force=force, dry_run=dry_run)
    if as_json:
        print_json(uninstalled_json(done, dry_run=dry_run))
    else:
        click.echo(uninstalled_text(done, dry_run=dry_run))
    return 0


def _asked(question: str, command: str) -> bool:
    """Ask a person on the terminal.

    Raises:
        SkillcError: there is no terminal.
    """
    import sys

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise SkillcError("nobody can be asked here", hint=f"adopt the reviewed version: `{command}`")
    return click.confirm(question, default=False)
