"""Tasks in the format of Harbor, made for a test."""

from pathlib import Path

SETTINGS = """schema_version = "1.4"

[metadata]
difficulty = "easy"
tags = ["files"]

[agent]
timeout_sec = 20

[verifier]
timeout_sec = 10

[environment]
memory_mb = 256
storage = "50M"
"""
DOCKERFILE = "FROM python:3.13-slim\nWORKDIR /app\nCOPY files/ ./\n"
TEST = """#!/bin/bash
if [ "$(cat /app/out.txt)" = right ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
echo "checked out.txt"
"""
SOLUTION = "#!/bin/bash\necho right > out.txt\n"
INSTRUCTION = "Write the word right into /app/out.txt.\n"


def made(folder: Path, name="word", *, settings=SETTINGS, dockerfile=DOCKERFILE, test=TEST, solution=SOLUTION, **files):
    """Write a task below a folder, and return its folder. `files` are those of its environment."""
    path = folder / name
    written = {
        "task.toml": settings,
        "instruction.md": INSTRUCTION,
        "environment/Dockerfile": dockerfile,
        "environment/files/given.txt": "given\n",
        "tests/test.sh": test,
        "tests/secret.txt": "the word is right",
        "solution/solve.sh": solution,
        **{f"environment/{each}": text for each, text in files.items()},
    }
    for each, text in written.items():
        if text is not None:
            (path / each).parent.mkdir(parents=True, exist_ok=True)
            (path / each).write_text(text)
    return path
