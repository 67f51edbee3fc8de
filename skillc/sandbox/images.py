"""Images of containers: whether one is here, building it from a Dockerfile, and copying files out of it.

An image is never downloaded, except as the base of one that the user has built.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skillc.processes.command import last_line
from skillc.processes.command import run as run_command
from skillc.sandbox.container import LABEL, Engine, ask_engine, client_environment, failure_of


def has_image(engine: Engine, image: str) -> bool:
    """Return whether an image is on this machine."""
    return ask_engine(engine, "image", "inspect", image).returncode == 0


def build_command(engine: Engine, image: str, folder: Path) -> list[str]:
    """Return the command line that builds an image from the Dockerfile of a folder."""
    return [engine, "build", "--quiet", "--tag", image, str(folder)]


async def build(engine: Engine, image: str, folder: Path, seconds: float) -> str:
    """Build an image, and return why it failed; empty if it did not."""
    try:
        done = await run_command(
            build_command(engine, image, folder),
            folder=folder,
            environment=client_environment(),
            stdin=None,
            timeout=seconds,
        )
    except OSError as problem:
        return str(problem)
    if done.why != "ended":
        return f"it took longer than {seconds:g} s"
    return (last_line(done.stderr) or f"status {done.status}") if done.status else ""


def working_folder(engine: Engine, image: str) -> str:
    """Return the working folder of an image; `/` if it sets none."""
    done = ask_engine(engine, "image", "inspect", image)
    try:
        found: Any = json.loads(done.stdout)[0]["Config"].get("WorkingDir")
    except (ValueError, LookupError, AttributeError):
        found = None
    return str(found or "/")


def copy_out(engine: Engine, image: str, folders: Sequence[str], into: Path) -> str:
    """Copy folders of an image into a folder, below their absolute paths; return why it failed, empty if it did not.

    A folder that the image does not have is made empty.
    """
    name = f"{LABEL}-files-{uuid.uuid4().hex}"
    made = ask_engine(engine, "create", "--pull", "never", "--name", name, "--entrypoint", "true", image)
    if made.returncode:
        return failure_of(made)
    try:
        for folder in folders:
            target = into / folder.lstrip("/")
            target.mkdir(parents=True, exist_ok=True)
            copied = ask_engine(engine, "cp", f"{name}:{folder}/.", str(target))
            if copied.returncode and "o such" not in copied.stderr and "not find" not in copied.stderr:
                return failure_of(copied)
    finally:
        ask_engine(engine, "rm", "--force", "--volumes", name)
    return ""
