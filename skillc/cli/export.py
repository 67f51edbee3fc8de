"""The verb `export`: a program and its runs in the formats of other tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillc.cli.arguments import ProgramPath, json_option
from skillc.cli.output import print_json
from skillc.errors import SkillcError

if TYPE_CHECKING:
    from skillc.export.session_chats import SessionChats

_run_option = click.option(
    "--run", metavar="ID", help="Another run than the last, by the beginning of its id; `history` lists them."
)


@click.group(epilog="Example: skillc export rollouts tickets.skill")
def export() -> None:
    """Write a program or its last run in the formats of other tools. No model is called.

    Secrets that the program declares are redacted, as far as this environment has their values.

    Exit status: 0 done, 2 an error.
    """


@export.command(
    short_help="write every recorded rollout, one row each",
    epilog="Example: skillc export rollouts tickets.skill --format parquet",
)
@click.argument("skill", type=ProgramPath())
@click.option(
    "--format",
    "style",
    type=click.Choice(("jsonl", "parquet")),
    help="Default: by the name of the file, else jsonl. Parquet needs `skillc[parquet]`.",
)
@click.option("--output", "-o", type=click.Path(path_type=Path), help="The file; `-` is standard output.")
@_run_option
@json_option
def rollouts(skill: Path, style: str | None, output: Path | None, run: str | None, as_json: bool) -> int:
    """Write every recorded rollout of the last compile of SKILL (a program, or the folder of a skill), one row each.

    A row has the run, the decision that proposed the skill, split and example, inputs and right answers, the output,
    the score of each metric or why it was not measured, calls, tokens, cost and seconds, and the messages. By
    default it is written to NAME.rollouts.jsonl or .parquet in the current folder. docs/guides/formats.md lists the
    columns.

    The record of the run, `.skillc`, is on the machine that compiled.

    Exit status: 0 done, 2 an error.
    """
    from skillc.export.rollouts import SCHEMA, Rollouts
    from skillc.export.tables import write_rows
    from skillc.text import counted

    found = Rollouts(skill, run)
    chosen = style or ("parquet" if output is not None and output.suffix == ".parquet" else "jsonl")
    place = output or Path(f"{found.view.name}.rollouts.{chosen}")
    number = write_rows(found, found.metrics, place, chosen)  # type: ignore[arg-type]  # click has checked it
    missing = list(found.view.missing)
    if as_json and str(place) != "-":
        print_json({"file": str(place), "rows": number, "schema": SCHEMA, "run": found.view.run, "missing": missing})
        return 0
    for line in missing:
        click.echo(f"note: {line}", err=True)
    if str(place) != "-":
        click.echo(f"wrote {counted(number, 'rollout')} to {place}")
    return 0


@export.command(
    short_help="write evals.json, grading.json and benchmark.json of Agent Skills",
    epilog="Example: skillc export evals tickets.skill --output evaluation",
)
@click.argument("skill", type=ProgramPath())
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), default=Path(), help="The folder (default: the current one)."
)
@click.option(
    "--split",
    type=click.Choice(("all", "train", "validation", "test")),
    help="The examples. Default: all as evals; in the benchmark those of the final test.",
)
@_run_option
@click.option("--force", is_flag=True, help="Replace an evals.json with other evals.")
@json_option
def evals(skill: Path, output: Path, split: str | None, run: str | None, force: bool, as_json: bool) -> int:
    """Write the examples of SKILL (a program, or the folder of a skill) and its last run in the layout of Agent Skills.

    NAME/evals/evals.json has a prompt, an expected output, files and assertions for each example. After a compile,
    NAME-workspace/iteration-N has grading.json, timing.json and outputs of each recorded rollout with the compiled
    skill, without a skill and with the initial one, and benchmark.json. No figure counts an unmeasured rollout.

    An evals.json is data too: `data { source = "evals/evals.json" }`.

    Exit status: 0 done, 2 an error.
    """
    from skillc.export.agent_skills import export_evals
    from skillc.text import counted

    done = export_evals(skill, output, split=split, run=run, force=force)  # type: ignore[arg-type]  # click checked it
    if as_json:
        runs = len(done.benchmark.runs) if done.benchmark is not None else 0
        iteration = str(done.iteration) if done.iteration is not None else None
        found = {"evals": str(done.evals), "number": done.number, "iteration": iteration, "runs": runs}
        print_json({**found, "missing": list(done.missing)})
        return 0
    for line in done.missing:
        click.echo(f"note: {line}", err=True)
    click.echo(f"wrote {counted(done.number, 'eval')} to {done.evals}")
    if done.benchmark is not None:
        number = counted(len(done.benchmark.runs), "graded rollout")
        click.echo(f"wrote {number} and benchmark.json to {done.iteration}")
    return 0


@export.command(
    short_help="log the last compile to MLflow",
    epilog="Example: skillc export mlflow tickets.skill --tracking-uri http://localhost:5000",
)
@click.argument("skill", type=ProgramPath())
@click.option("--tracking-uri", "tracking", metavar="URI", help="The server or store (default: MLFLOW_TRACKING_URI).")
@click.option("--experiment", metavar="NAME", help="Default: MLFLOW_EXPERIMENT_NAME, else the name of the skill.")
@_run_option
@json_option
def mlflow(skill: Path, tracking: str | None, experiment: str | None, run: str | None, as_json: bool) -> int:
    """Log the last compile of SKILL (a program, or the folder of a skill) to MLflow, by its own client.

    Parameters are the models, the settings and the data; metrics have the number of the decision as their step; the
    files are the skill with its lock and history, the program and the report. A run that was logged before is left as
    it is, or replaced if it has changed. Needs `skillc[mlflow]`.

    Exit status: 0 done, 2 an error.
    """
    from skillc.export.mlflow import log_run
    from skillc.text import counted

    done = log_run(skill, run=run, experiment=experiment, tracking=tracking)
    if as_json:
        found = {"experiment": done.experiment, "run_id": done.run_id, "known": done.known}
        print_json({**found, "metrics": done.metrics, "files": done.files})
        return 0
    what = f"run {done.run_id} of the experiment `{done.experiment}`"
    if done.known:
        click.echo(f"{what} has this compile already")
    else:
        click.echo(f"logged {counted(done.metrics, 'value')} and {counted(done.files, 'file')} to {what}")
    return 0


@export.command(
    short_help="add the last compile to a knowledge base in markdown",
    epilog="Example: skillc export kb tickets.skill --to knowledge",
)
@click.argument("skill", type=ProgramPath())
@click.option("--to", "base", type=click.Path(path_type=Path, file_okay=False), required=True, help="Its folder.")
@_run_option
@json_option
def kb(skill: Path, base: Path, run: str | None, as_json: bool) -> int:
    """Add the last compile of SKILL (a program, or the folder of a skill) to a knowledge base in markdown.

    entries/ gets a page with tags, labels, score, interval, steps, tokens and date in its front matter, and a line for
    each rule with what it cured; references/NAME/DIGEST/ a copy of the skill; INDEX.md a line. An entry that is there
    stays as it is. `skillc compile --kb DIR` does the same after a compile.

    Exit status: 0 done, 2 an error.
    """
    from skillc.export.knowledge_base import export_entry

    done = export_entry(skill, base, run=run)
    if as_json:
        places = {"entry": str(done.entry), "reference": str(done.reference), "index": str(done.index)}
        print_json({**places, "known": done.known, "missing": list(done.missing)})
        return 0
    for line in done.missing:
        click.echo(f"note: {line}", err=True)
    click.echo(f"{done.entry} is there already" if done.known else f"wrote {done.entry}")
    return 0


_session_options = (
    click.option("--from-sessions", is_flag=True, help="From labelled sessions in place of a compile."),
    click.option("--store", type=click.Path(path_type=Path), help="With --from-sessions: default .skillc/sessions.db."),
    click.option("--project", metavar="TEXT", help="With --from-sessions: only sessions whose project has this text."),
    click.option(
        "--labels", metavar="SKILL", help="With --from-sessions: labels for this skill (default: SKILL's name)."
    ),
    click.option(
        "--certainty",
        type=click.FloatRange(0.5, 1),
        help="With --from-sessions: the least certainty of a session's outcome (default: 0.9).",
    ),
)


def _chat_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options of `sft` and `dpo`."""
    for option in reversed(
        (
            click.argument("skill", type=ProgramPath()),
            click.option(
                "--out",
                "-o",
                "output",
                required=True,
                type=click.Path(path_type=Path, dir_okay=False),
                help="The file; its manifest is written beside it.",
            ),
            click.option(
                "--skill",
                "text",
                type=click.Choice(("drop", "keep")),
                default="drop",
                show_default=True,
                help="Prompts without the skill's text, which trains its content into the weights, or with it.",
            ),
            click.option(
                "--split",
                "splits",
                type=click.Choice(("train", "validation", "test")),
                multiple=True,
                default=("train",),
                show_default=True,
                help="Can be repeated. `test` is refused.",
            ),
            click.option(
                "--threshold",
                type=click.FloatRange(min=0, min_open=True),
                help="The lowest score of the goal at which an answer is right (default: 1).",
            ),
            _run_option,
            *_session_options,
            json_option,
        )
    ):
        command = option(command)
    return command


@export.command(
    short_help="write chat examples for supervised fine-tuning (SFT)",
    epilog="Example: skillc export sft tickets.skill --out sft.jsonl",
)
@_chat_options
@click.option("--max-tokens", type=click.IntRange(min=1), help="With --from-sessions: leave out later turns.")
@click.option(
    "--by-turn", is_flag=True, help="With --from-sessions: a row for each message of the agent, not for each session."
)
def sft(
    skill: Path,
    output: Path,
    text: str,
    splits: tuple[str, ...],
    threshold: float | None,
    run: str | None,
    as_json: bool,
    from_sessions: bool,
    max_tokens: int | None,
    by_turn: bool,
    **values: Any,
) -> int:
    """Write a chat example for each training example that a rollout of SKILL's last compile got right, for TRL.

    A row has `prompt`, the messages as the target got them, and `completion`, the best right reply; of an agent with
    tools, a row for each turn, with calls, results and `tools` as chat templates read them. Test examples are never
    written. FILE.manifest.json beside the file has its digest, counts, sources and the examples used.

    With --from-sessions: the sessions of the store whose labels say that they worked, up to the first objection of the
    user. Sessions that are set apart, whose labels contradict each other, or whose request is one of the held-out
    examples or nearly, are left out and counted.

    Exit status: 0 done, 2 an error.
    """
    from skillc.export.chat import RunChats
    from skillc.export.manifest import write_chats

    _refuse_test(splits)
    if from_sessions:
        _refuse_options("cannot be used with `--from-sessions`", threshold=threshold, run=run)
        with _session_chats(skill, text, splits, values, max_tokens) as made:
            chats = made.sft(by_turn=by_turn)
            manifest = write_chats(chats, output, models=made.models, source=made.source)
        return _report_chats(manifest, output, as_json)
    _refuse_options("needs `--from-sessions`", **values, max_tokens=max_tokens, by_turn=by_turn or None)
    found = RunChats(skill, run, skill=text, splits=splits, threshold=threshold or 1.0)  # type: ignore[arg-type]  # click checked
    return _report_chats(write_chats(found.sft(), output, found.view), output, as_json)


@export.command(
    short_help="write preference pairs (DPO): right against wrong on the same example",
    epilog="Example: skillc export dpo tickets.skill --out dpo.jsonl",
)
@_chat_options
@click.option("--margin", type=float, help="How much lower the goal of the rejected answer has to be (default: 0.5).")
def dpo(
    skill: Path,
    output: Path,
    text: str,
    splits: tuple[str, ...],
    threshold: float | None,
    run: str | None,
    as_json: bool,
    from_sessions: bool,
    margin: float | None,
    **values: Any,
) -> int:
    """Write a preference pair for each training example that SKILL's last compile has right and wrong rollouts of.

    A row has `prompt`, `chosen` and `rejected`; of an agent with tools, the replies where a right and a wrong rollout
    part. With --from-sessions: the messages where a session that worked and one that failed part, both with the same
    request or nearly. Mean lengths of both are reported, with a warning where they differ so
    much that DPO may learn the length. Test examples are never written; the manifest is that of `export sft`.

    Exit status: 0 done, 2 an error.
    """
    from skillc.export.chat import RunChats
    from skillc.export.manifest import write_chats

    _refuse_test(splits)
    if from_sessions:
        _refuse_options("cannot be used with `--from-sessions`", threshold=threshold, run=run, margin=margin)
        with _session_chats(skill, text, splits, values) as made:
            manifest = write_chats(made.dpo(), output, models=made.models, source=made.source)
        return _report_chats(manifest, output, as_json)
    _refuse_options("needs `--from-sessions`", **values)
    found = RunChats(skill, run, skill=text, splits=splits, threshold=threshold or 1.0)  # type: ignore[arg-type]  # click checked
    chats = found.dpo(0.5 if margin is None else margin)
    return _report_chats(write_chats(chats, output, found.view), output, as_json)


@contextmanager
def _session_chats(
    skill: Path, text: str, splits: tuple[str, ...], values: Mapping[str, Any], most: int | None = None
) -> Iterator[SessionChats]:
    """Open the store for an export."""
    from skillc.export.session_chats import CERTAINTY, SessionChats
    from skillc.sessions.store import DEFAULT, SessionStore

    with SessionStore(values["store"] or DEFAULT) as store:
        yield SessionChats(
            skill,
            store,
            skill=values["labels"],
            project=values["project"],
            keep=text,  # type: ignore[arg-type]  # click checked
            splits=splits,  # type: ignore[arg-type]  # click checked
            certainty=CERTAINTY if values["certainty"] is None else values["certainty"],
            most=most,
        )


def _refuse_options(why: str, **options: object) -> None:
    for name, value in options.items():
        if value is not None:
            shown = f"--{name.replace('_', '-')}"
            raise SkillcError(f"`{shown}` {why}", hint=f"leave out `{shown}`")


def _refuse_test(splits: Sequence[str]) -> None:
    if "test" in splits:
        raise SkillcError(
            "`--split test` is refused: a model trained on test examples cannot be measured on them",
            hint="use `train`, and `validation` if nothing is selected on it any more",
        )


def _report_chats(manifest: Mapping[str, Any], file: Path, as_json: bool) -> int:
    from skillc.text import counted

    if as_json:
        print_json({**manifest, "file": str(file)})
        return 0
    name = "chat example" if manifest["kind"] == "sft" else "preference pair"
    used = ", ".join(f"{number} of {split}" for split, number in manifest["splits"].items())
    click.echo(f"wrote {counted(manifest['rows'], name)} to {file}" + (f": {used}" if used else ""))
    left = [f"{number} {reason}" for reason, number in manifest["left_out"].items()]
    if left:
        click.echo(f"left out: {', '.join(left)}")
    lengths = ", ".join(f"{name} {value:.0f}" for name, value in manifest["lengths"].items())
    click.echo(f"mean characters: {lengths}")
    for warning in manifest["warnings"]:
        click.echo(f"warning: {warning}", err=True)
    click.echo(f"note: {manifest['licence']}: {', '.join(manifest['models'])}", err=True)
    return 0
