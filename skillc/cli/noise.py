"""The verb `noise`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from skillc.cli.arguments import ProgramPath, RunOptions, plan_options, progress_options
from skillc.cli.output import print_result, show_diagnostics


class Counts(click.ParamType[tuple[int, ...]]):
    """Whole numbers from 1, with commas between them."""

    name = "counts"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Return the numbers."""
        if isinstance(value, tuple):
            return value
        parts = [part.strip() for part in str(value).split(",")]
        if not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
            self.fail(f"`{value}` is no list of whole numbers above 0 such as `1,16`", param, ctx)
        return tuple(int(part) for part in parts)


@click.command(epilog="Example: skillc noise tickets.skill --repeats 5 --concurrency 1,16,64")
@click.argument("program", type=ProgramPath())
@click.option("--skill", type=click.Path(path_type=Path), help="Measure the skill in this file instead.")
@click.option(
    "--repeats",
    type=click.IntRange(min=2),
    help="Rollouts of each example at each concurrency. Default: 3, or twice the program's `samples`.",
)
@click.option(
    "--concurrency", type=Counts(), default="1,16", show_default=True, help="Rollouts in flight, a measurement each."
)
@click.option(
    "--split",
    type=click.Choice(("validation", "train")),
    default="validation",
    show_default=True,
    help="The examples to run.",
)
@click.option("--examples", type=click.IntRange(min=1), help="How many of them, evenly spread. Default: all.")
@click.option("--fresh", is_flag=True, help="Call the model again, even where an earlier measurement is cached.")
@plan_options
@progress_options
def noise(
    program: Path,
    skill: Path | None,
    repeats: int | None,
    concurrency: tuple[int, ...],
    split: str,
    examples: int | None,
    **values: Any,
) -> int:
    """Measure how much a skill of PROGRAM differs from itself: the same skill on the same examples, several times.

    The compiled skill runs, or the initial one before the first compile. The report has the share of repeats in which
    an example scores differently, the standard deviation of the mean, the same between concurrencies, the gain that
    chance alone exceeds in 5 % of comparisons, and how often the program's gates accept the skill against itself. No
    repeat is answered from another one's replies. The caps of the program's budget hold.

    Exit status: 0 done, 2 an error, 3 stopped by the budget or because a model stayed out of reach, 130 interrupted
    (run the same command to resume).
    """
    from skillc.cli.running import run_noise
    from skillc.frontend import plan_file
    from skillc.noise.job import NoiseOptions, prepare_noise
    from skillc.noise.report import noise_json, noise_table

    options = RunOptions(**values)
    planned = plan_file(
        program,
        models=options.models,
        settings=options.settings,
        offline=options.offline,
        runnable=True,
        complete=False,
        every_model=False,
    )
    if not options.quiet:
        show_diagnostics(planned.diagnostics)
    asked = NoiseOptions(split, repeats, concurrency, examples, skill, options.offline)  # type: ignore[arg-type]  # click has checked it
    found = run_noise(planned, prepare_noise(planned, asked), options)
    print_result(lambda: noise_json(found), lambda: noise_table(found), options)
    if found.stopped is None:
        return 0
    return 130 if found.stopped == "interrupted" else 3
