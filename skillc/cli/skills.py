"""The verbs on compiled skills and versions: `install`, `history`, `report`, `diff`, `breaking` and `resolve`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillc.cli.arguments import ProgramPath, findings_options, json_option
from skillc.cli.output import has_color, print_json
from skillc.errors import SkillcError

if TYPE_CHECKING:
    from skillc.publish.manifest import Scope

_AGENTS = ("claude-code", "codex", "opencode", "gemini", "hermes")


@click.command(epilog="Example: skillc install tickets.skill --to claude-code --to codex --project .")
@click.argument("skill", required=False, type=ProgramPath())
@click.option("--to", "agents", multiple=True, type=click.Choice(_AGENTS), help="The agent. Repeatable.")
@click.option("--git", "url", metavar="URL", help="From this git repository; SKILL is the skill's folder in it.")
@click.option("--ref", metavar="NAME", help="With --git: a branch, a tag or a commit (default: the default branch).")
@click.option("--project", type=click.Path(path_type=Path), help="Into this project (default: the current folder).")
@click.option("--user", is_flag=True, help="Into your user folder of the agent, for all projects.")
@click.option("--force", is_flag=True, help="Overwrite an installed skill that was changed.")
@click.option("--dry-run", is_flag=True, help="Only print what would be written.")
@click.option("--no-manifest", is_flag=True, help="Leave `skills.toml` alone; updates are not staged then.")
@json_option
def install(
    skill: Path | None,
    agents: tuple[str, ...],
    url: str | None,
    ref: str | None,
    project: Path | None,
    user: bool,
    force: bool,
    dry_run: bool,
    no_manifest: bool,
    as_json: bool,
) -> int:
    """Copy the compiled SKILL (a program, or the folder of a skill) to where an agent reads it.

    The folder is copied completely or not at all, with your files in it such as `references/`. One that was changed,
    that another tool wrote, or that came from another skill of that name is not overwritten, and the difference is
    shown. SKILL is added to the manifest `skills.toml` with its version. From then on a new compile is staged:
    `skillc update` shows it, `skillc adopt` installs it.

    With --git, SKILL is fetched from a repository and pinned to the commit; nothing of the repository is run, and a
    repository with one skill needs no SKILL.

    Without SKILL, all skills of `skills.toml` are brought to their versions there, as in a fresh clone.

    Exit status: 0 done, 2 an error.
    """
    import os

    from skillc.artifacts.install import install_json, install_skill, install_text, skill_of
    from skillc.provenance.quarantine import check_adoptable

    if user and project is not None:
        raise SkillcError("`--user` and `--project` can't be used together", hint="leave one of them out")
    if url is None and ref is not None:
        raise SkillcError("`--ref` names no repository", hint="add `--git URL`")
    if skill is None and url is None:
        if agents or user or no_manifest:
            raise SkillcError(
                "no skill is named", hint="name a program: `skillc install tickets.skill --to claude-code`"
            )
        return _install_manifest(project or Path(), force=force, dry_run=dry_run, as_json=as_json)
    if not agents:
        words = f"{skill or ''} --git {url}".strip() if url is not None else str(skill)
        raise SkillcError("no agent is named", hint=f"name one: `skillc install {words} --to claude-code`")
    if url is not None and no_manifest:
        raise SkillcError("`--git` and `--no-manifest` can't be used together", hint="the manifest pins the commit")
    if skill is not None and url is None:
        check_adoptable(skill_of(skill))
    if skill is not None and no_manifest:
        target = None if user else project or Path()
        done = install_skill(skill, agents, project=target, environment=os.environ, force=force, dry_run=dry_run)
        if as_json:
            print_json(install_json(done, dry_run=dry_run))
        else:
            click.echo(install_text(done, dry_run=dry_run))
        return 0
    from skillc.cli.publishing import login
    from skillc.publish.installing import add, add_from_git
    from skillc.publish.report import install_lines, installed_json

    root, by = project or Path(), login()
    scope: Scope = "user" if user else "project"
    if url is not None:
        folder = skill.as_posix() if skill is not None else None
        added = add_from_git(root, url, folder, ref, agents, scope, by=by, force=force, dry_run=dry_run)
    else:
        assert skill is not None
        added = add(root, skill, agents, scope, by=by, force=force, dry_run=dry_run)
    if as_json:
        print_json(installed_json(added, dry_run=dry_run))
    else:
        click.echo("\n".join(install_lines(added, dry_run=dry_run)))
    return 0


def _install_manifest(root: Path, *, force: bool, dry_run: bool, as_json: bool) -> int:
    """Bring all skills of a manifest to their versions."""
    from skillc.publish.installing import install_all
    from skillc.publish.report import install_lines, installed_json

    done = install_all(root, force=force, dry_run=dry_run)
    if as_json:
        skills = [installed_json(each, dry_run=dry_run) for each in done]
        print_json({"format_version": 1, "dry_run": dry_run, "skills": skills})
    else:
        click.echo("\n".join(line for each in done for line in install_lines(each, dry_run=dry_run)))
    return 0


@click.command(epilog="Example: skillc history tickets.skill")
@click.argument("skill", type=ProgramPath())
@click.option("--last", is_flag=True, help="Only the last compile.")
@click.option("--items", is_flag=True, help="What the last compile measured on each item, from its record.")
@click.option("--metric", metavar="NAME", help="With --items, the metric (default: the goal and those beside it).")
@json_option
def history(skill: Path, last: bool, items: bool, metric: str | None, as_json: bool) -> int:
    """Show the compiles of SKILL (a program, or the folder of a skill): each step, candidate, gate result and edit.

    Each proposed edit has its outcome, such as accepted, screened out, waiting or merged into another, and the counts
    that decided it: failures cured and right cases broken. `skillc log` is the short form, a line a step.

    With --items each example has a row: whether it was right in each epoch or under each version of the skill, how
    often that flips, and whether it was newly solved or lost; then how far judges go with a metric that code measures,
    and the gain on train, validation and test side by side. No model is called.

    Exit status: 0 done, 2 an error.
    """
    from rich.console import Console

    from skillc.artifacts.history_report import history_json, history_table, items_of_last, read_runs
    from skillc.review.run_view import confidence_of_skill

    if items:
        from skillc.items.report import items_json, items_table

        found = items_of_last(skill)
        if as_json:
            print_json(items_json(found, metric))
        else:
            Console(highlight=False).print(items_table(found, metric))
        return 0
    if metric is not None:
        raise SkillcError("`--metric` needs `--items`")

    runs = read_runs(skill)
    runs = runs[-1:] if last else runs
    sure = confidence_of_skill(skill)
    if as_json:
        print_json({**history_json(runs), "confidence": list(sure)})
    else:
        console = Console(highlight=False)
        console.print(history_table(runs))
        for line in sure:
            console.print(line, style="dim", markup=False)
    return 0


@click.command(epilog="Example: skillc report tickets.skill --output report.html")
@click.argument("skill", type=ProgramPath())
@click.option("--output", "-o", type=click.Path(path_type=Path), help="The file; `-` is standard output.")
@click.option(
    "--format",
    "style",
    type=click.Choice(("html", "md", "json")),
    default="html",
    show_default=True,
    help="A page for a browser, a short summary in markdown for a pull request, or all values as JSON.",
)
@click.option(
    "--run", metavar="ID", help="Another run than the last, by the beginning of its id; `history` lists them."
)
def report(skill: Path, output: Path | None, style: str, run: str | None) -> int:
    """Write a report of the last compile of SKILL (a program, or the folder of a skill). No model is called.

    The page is one file that needs no network: the score by step with intervals, each example by step, every candidate
    with its edits, screen, gates and fate, two rollouts of an example side by side, the origin of each line of the
    skill, and what was spent and saved. Without --output it is written to NAME.report.html in the current folder; the
    summary and the JSON go to standard output.

    The lock and the history are enough. Rollouts and the spend by stage need the record of the run, `.skillc`, which is
    on the machine that compiled; the report says what it lacks.

    Exit status: 0 done, 2 an error.
    """
    from skillc.files import write_atomically
    from skillc.review.run_view import read_run

    view = read_run(skill, run)
    if style == "md":
        from skillc.review.summary import markdown_report

        text, place = markdown_report(view), output or Path("-")
    elif style == "json":
        import json

        from skillc.review.as_json import report_json

        text, place = json.dumps(report_json(view), ensure_ascii=False, indent=2) + "\n", output or Path("-")
    else:
        from skillc.review.report import html_report

        text, place = html_report(view), output or Path(f"{view.name}.report.html")
    if str(place) == "-":
        click.echo(text, nl=False)
        return 0
    try:
        write_atomically(place, text)
    except OSError as problem:
        raise SkillcError(f"the report `{place}` cannot be written: {problem.strerror}") from problem
    click.echo(f"wrote {place}")
    return 0


@click.command(epilog="Example: skillc diff tickets.skill")
@click.argument("program", type=ProgramPath())
@click.argument("new", required=False, type=ProgramPath())
@click.option("--against", metavar="REF", help="A branch, tag or commit; HEAD by default.")
@click.option("--exit-code", is_flag=True, help="Exit with status 1 if something changed.")
@json_option
def diff(program: Path, new: Path | None, against: str | None, exit_code: bool, as_json: bool) -> int:
    """Show what changed in meaning in PROGRAM since REF, or between the two programs PROGRAM and NEW.

    A folder means all programs in it. Comments, layout, order, and defaults that are written out are no change.
    `(looser)` marks a change that asks less of a skill, `(stricter)` one that asks more.

    Exit status: 0 done, 1 with --exit-code if something changed, 2 an error.
    """
    from skillc.versions.findings import compare_programs, diff_json, diff_text

    if new is not None and against is not None:
        raise SkillcError("two programs and `--against` can't be used together", hint="leave one of them out")
    ref = str(program) if new is not None else against or "HEAD"
    compared = compare_programs([new or program], ref)
    here = str(new) if new is not None else "the working tree"
    if as_json:
        print_json(diff_json(compared, ref, here))
    else:
        click.echo(diff_text(compared, ref, here, color=has_color()))
    changed = any(each.changes or each.state != "compared" for each in compared)
    return 1 if exit_code and changed else 0


@click.command(epilog="Example: skillc breaking . --against origin/main")
@click.argument("programs", nargs=-1, required=True, type=ProgramPath())
@click.option(
    "--against", required=True, metavar="REF", help="A branch, tag or commit; or a file with the other version."
)
@findings_options
def breaking(programs: tuple[Path, ...], against: str, style: str, as_json: bool) -> int:
    """Report what got weaker in PROGRAMS since REF: gates, budgets, the test split, frozen sections, metrics.

    Each of PROGRAMS is a program, or a folder whose programs are all compared. The comparison is of meaning, not of
    text, and also reads the files that a program uses at REF; both sides use this version's `std`. Warnings report what
    could not be compared. `skillc diff` shows all changes.

    Exit status: 0 nothing got weaker, 1 something did, 2 an error.
    """
    from skillc.cli.programs import show_findings
    from skillc.frontend import CheckedFile
    from skillc.versions.findings import compare_programs, diff_json

    compared = compare_programs(programs, against)
    if as_json or style == "json":
        print_json(diff_json(compared, against, "the working tree"))
    else:
        for each in compared:
            if each.state == "new":
                click.echo(f"`{each.program}` is new since `{against}`: nothing to compare", err=True)
        show_findings([CheckedFile(Path(each.program), each.findings) for each in compared], style)
    return 1 if any(each.weaker for each in compared) else 0


@click.command(epilog="Example: skillc resolve tickets.skill --keep better")
@click.argument("program", type=ProgramPath())
@click.option(
    "--keep",
    required=True,
    type=click.Choice(["ours", "theirs", "better"]),
    help="The side to keep: `better` is the one with the higher goal on validation.",
)
@click.option("--force", is_flag=True, help="Overwrite files that were edited by hand since the merge.")
@json_option
def resolve(program: Path, keep: str, force: bool, as_json: bool) -> int:
    """Resolve the compiled skill of PROGRAM (or of a skill's folder) after two branches compiled it.

    SKILL.md, module and lock of one side are written, never a mixture that no gate has tested. The history and the
    looks at the test split of both sides are kept. Nothing is added to git's index: the output names the next command.
    In a rebase `ours` is the branch that is rebased onto, as everywhere in git.

    Exit status: 0 done, 2 an error.
    """
    from skillc.versions.resolve import merge_json, merge_text, resolve_merge

    resolved = resolve_merge(program, keep, force=force)  # type: ignore[arg-type]  # click has checked it
    if as_json:
        print_json(merge_json(resolved))
    else:
        click.echo(merge_text(resolved))
    return 0
