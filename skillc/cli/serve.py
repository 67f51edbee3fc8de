"""`skillc serve`: the servers that a program declares, and nothing else."""

from __future__ import annotations

from pathlib import Path

import click

from skillc.cli.arguments import ProgramPath
from skillc.cli.output import print_json


@click.command(short_help="start the models that a program serves itself", epilog="Example: skillc serve tickets.skill")
@click.argument("program", type=ProgramPath())
@click.option(
    "--model", "models", multiple=True, metavar="ROLE=NAME", help="Change a model: target=hosted_vllm/Qwen/Qwen3.5-4B."
)
@click.option("--stop", is_flag=True, help="Stop the servers that run on beside the program.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; progress goes to standard error.")
def serve(program: Path, models: tuple[str, ...], stop: bool, as_json: bool) -> int:
    """Start the servers of PROGRAM's `serve` blocks, say where they are, and stay until Ctrl-C.

    A compile of the same program finds them by itself. One with `keep = on` that a compile left is stopped by --stop.

    Exit status: 0 ended by Ctrl-C, 2 an error, 130 interrupted before the servers answered.
    """
    from rich.console import Console

    from skillc.cli.running import Lines, run_servers, stop_servers
    from skillc.frontend import plan_file

    console = Console(stderr=True, highlight=False)
    planned = plan_file(program, models=models, runnable=True)
    if stop:
        ended = stop_servers(planned.root)
        for name in ended:
            console.print(f"stopped {name}", markup=False)
        if as_json:
            print_json({"format_version": 1, "stopped": ended}, indent=None)
        elif not ended:
            console.print("no server runs")
        return 0

    def tell(servers: list[dict[str, object]]) -> None:
        if as_json:
            print_json({"format_version": 1, "servers": servers}, indent=None)
            return
        for each in servers:
            click.echo(f"served    {each['model']} at {each['url']}")
            click.echo(f"names     {', '.join(str(name) for name in each['names'])}")  # type: ignore[attr-defined]
            click.echo(f"key       {each['key']}")
            if each["log"] is not None:
                click.echo(f"log       {each['log']}")

    with Lines(console) as lines:
        run_servers(planned, lines, tell)
    return 0
