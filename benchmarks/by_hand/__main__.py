"""Serve, show and answer calls by hand.

python -m benchmarks.by_hand serve PORT FOLDER            serve a model whose replies are files
python -m benchmarks.by_hand replay PORT FOLDER           serve the replies of a finished folder
python -m benchmarks.by_hand wait FOLDER [--seconds N]    block until prompts wait, or print `finished`
python -m benchmarks.by_hand pending FOLDER [MOST]        print the waiting prompts
python -m benchmarks.by_hand answer FOLDER [--field F]    read replies from standard input
python -m benchmarks.by_hand run FOLDER [--ports T O] -- COMMAND
                                                          serve FOLDER/target and FOLDER/optimizer during COMMAND
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.by_hand import calls
from benchmarks.by_hand.recording import Recording, pack
from benchmarks.by_hand.server import Folder, Server

ROLES = ("target", "optimizer")
_ANSWER = """Read replies from standard input: a line for a call with one output field, a block for any other.

0007: K4
0008: W1
@@@ 0009
the whole reply, in the form that its prompt asks for
"""


def main(arguments: list[str]) -> int:
    """Run a command; return its exit status."""
    command: list[str] = []
    if "--" in arguments:
        cut = arguments.index("--")
        arguments, command = arguments[:cut], arguments[cut + 1 :]
    given = _parser().parse_args(arguments)
    folder: Path = given.folder
    match given.action:
        case "serve":
            Server(Folder(folder), given.port).serve_forever()
        case "replay":
            Server(Recording.read(folder, near=given.near), given.port).serve_forever()
        case "record":
            print(f"recorded {pack(folder, given.file)} calls")
        case "wait":
            print(calls.wait(folder, given.seconds))
        case "pending":
            print("\n".join(calls.show(calls.waiting(folder), given.most, given.known)))
        case "answer":
            return _answer(folder, given.field)
        case "run":
            return _run(folder, given, command)
    return 0


def _answer(folder: Path, field: str | None) -> int:
    answered, problems = calls.answer(folder, sys.stdin.read(), field)
    for problem in problems:
        print("not taken:", problem)
    left = calls.waiting(folder)
    print(f"answered {len(answered)}, {len(left)} still wait" + "".join(f" {call.number:04}" for call in left[:20]))
    return 1 if problems else 0


def _run(folder: Path, given: argparse.Namespace, command: list[str]) -> int:
    if not command:
        print("no command is given: write it after `--`", file=sys.stderr)
        return 2
    recordings: dict[str, Recording] = {}
    folder.mkdir(parents=True, exist_ok=True)
    for role, port in zip(ROLES, given.ports, strict=True):
        if given.replay is not None:
            place = given.replay / role
            place = place if place.is_dir() else place.with_suffix(".jsonl")
            recordings[role] = Recording.read(place, near=given.near)
            Server(recordings[role], port).start()
        else:
            Server(Folder(folder / role, reuse=given.reuse), port).start()
            (folder / role / calls.DONE).unlink(missing_ok=True)
    try:
        with (folder / "log.txt").open("a", encoding="utf-8") as log:
            log.write(f"$ {' '.join(command)}\n")
            log.flush()
            environment = {"FAKE_KEY": "none", **os.environ}
            status = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, env=environment, check=False)
            log.write(f"exit status {status.returncode}, {time.strftime('%H:%M:%S')}\n")
    finally:
        if given.replay is None:
            for role in ROLES:
                (folder / role / calls.DONE).touch()
    for role, recording in recordings.items():
        print(f"{role}: {len(recording.unknown)} unknown prompts, {len(recording.guessed)} answered like a similar one")
    print(f"exit status {status.returncode}; output in {folder / 'log.txt'}")
    return status.returncode


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.by_hand", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    actions = parser.add_subparsers(dest="action", required=True)
    for name in ("serve", "replay"):
        action = actions.add_parser(name)
        action.add_argument("port", type=int)
        action.add_argument("folder", type=Path)
        if name == "replay":
            action.add_argument("--near", action="store_true", help="answer unknown prompts like the most similar one")
    action = actions.add_parser("record")
    action.add_argument("folder", type=Path)
    action.add_argument("file", type=Path)
    action = actions.add_parser("wait")
    action.add_argument("folder", type=Path)
    action.add_argument("--seconds", type=float, default=540)
    action = actions.add_parser("pending")
    action.add_argument("folder", type=Path)
    action.add_argument("most", type=int, nargs="?", default=64)
    action.add_argument("--known", nargs="*", default=[], help="ids of shared parts that are not printed again")
    action = actions.add_parser("answer", description=_ANSWER, formatter_class=argparse.RawDescriptionHelpFormatter)
    action.add_argument("folder", type=Path)
    action.add_argument("--field", help="refuse short replies to calls that ask for another field")
    action = actions.add_parser("run")
    action.add_argument("folder", type=Path)
    action.add_argument("--ports", type=int, nargs=2, default=(9101, 9102))
    action.add_argument("--reuse", action="store_true", help="answer prompts like identical ones of an earlier session")
    action.add_argument("--replay", type=Path, help="answer from the recordings in this folder")
    action.add_argument("--near", action="store_true", help="with --replay: unknown prompts like the most similar one")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
