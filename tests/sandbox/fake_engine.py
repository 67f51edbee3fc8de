"""Plays the command lines of Docker and Podman: refuses options that they do not have, and runs commands here.

It is copied as `docker` or `podman` beside a file `engine.json`: `rootless`, `images`, `limits` (whether it enforces
them), `down` (an error), `broken` (an error of each start), `remote` (mounts are those of another machine). What it was
asked is added to `asked.jsonl`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
STATE = json.loads((HERE / "engine.json").read_text())
NAME = Path(__file__).name
WITH_VALUE = {
    *("--name", "--pull", "--network", "--log-driver", "--cap-drop", "--security-opt", "--hostname", "--user"),
    *("--memory", "--memory-swap", "--pids-limit", "--ulimit", "--tmpfs", "--mount", "--workdir", "--env"),
    *("--entrypoint", "--label"),
}
ALONE = {"--read-only", "--interactive"}


def main(words):
    with (HERE / "asked.jsonl").open("a") as file:
        file.write(json.dumps({"words": words, "environment": sorted(os.environ)}) + "\n")
    if STATE.get("down"):
        return refuse(STATE["down"], 1)
    match words:
        case ["info", *_]:
            print({"docker": "[name=rootless]", "podman": "true"}[NAME] if STATE["rootless"] else "[]")
        case ["image", "inspect", image]:
            return 0 if image in STATE["images"] else refuse(f"No such image: {image}", 1)
        case ["ps", "--all", "--filter", "label=skillc", "--format", "{{.Names}}"]:
            print(*STATE.get("left", ()), sep="\n")
        case ["run", *rest]:
            return run(rest)
        case ["inspect", "--type", "container", "--format", _, name]:
            state = HERE / name
            return print(state.read_text()) if state.exists() else refuse(f"no such container {name}", 1)
        case ["rm", "--force", "--volumes", *rest]:
            assert rest[:-1] == (["--time", "0"] if NAME == "podman" else []), rest
            (HERE / rest[-1]).unlink(missing_ok=True)
        case _:
            return refuse(f"unknown command {words}", 125)
    return 0


def refuse(text, status):
    print(f"{NAME}: {text}", file=sys.stderr)
    return status


def run(words):
    options, i = [], 0
    while words[i].startswith("-"):
        if words[i] in ALONE:
            options.append((words[i], ""))
            i += 1
        elif words[i] in WITH_VALUE:
            options.append((words[i], words[i + 1]))
            i += 2
        else:
            return refuse(f"unknown flag: {words[i]}", 125)
    image, command = words[i], words[i + 1 :]
    given = dict(options)
    if image not in STATE["images"]:
        return refuse(f"No such image: {image}", 125)
    if STATE.get("broken"):
        return refuse(STATE["broken"], 125)
    mounts = [
        dict(part.partition("=")[::2] for part in value.split(",")) for name, value in options if name == "--mount"
    ]
    folders = {mount["target"]: mount["source"] for mount in mounts}
    environment = {"PATH": os.environ["PATH"]}
    for name, value in options:
        if name == "--env":
            variable, is_set, text = value.partition("=")
            environment[variable] = text if is_set else os.environ[variable]
    program = [given["--entrypoint"], *command]
    if any("> probe" in word for word in program):
        if not STATE.get("remote"):
            (Path(folders["/sandbox"]) / "probe").touch()
        print(*([given["--memory"], given["--pids-limit"]] if STATE["limits"] else ["max", "max"]), sep="\n")
        return 0
    if "/run/skillc/forward.py" in program:
        # It would listen at ports of this machine.
        at = next(i for i, word in enumerate(program) if word.startswith("/run/skillc/"))
        program[at : program.index("/run/skillc/forward.py") + 4] = []
    for target, source in folders.items():
        program = [source + word.removeprefix(target) if word.startswith(target) else word for word in program]
    done = subprocess.run(program, cwd=folders[given["--workdir"]], env=environment, check=False)
    status = done.returncode if done.returncode >= 0 else 128 - done.returncode
    killed = str(STATE.get("out_of_memory", False)).lower()
    (HERE / given["--name"]).write_text(f"exited {killed}\n")
    return status


sys.exit(main(sys.argv[1:]))
