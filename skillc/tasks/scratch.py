"""Python in the sandbox for a tool of an agent: each call runs one program in a new folder.

```python
SCRATCH = Scratch(Path(__file__).parent)

async def run_python(code: str, file: str = "") -> str:
    ...
    return await SCRATCH.run(code, [FILES / file] if file else [])
```
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path
from weakref import WeakKeyDictionary

from skillc.errors import SkillcError
from skillc.processes.command import temporary_folder
from skillc.sandbox.policy import declared_sandbox
from skillc.tasks.agents.workspace import Workspace
from skillc.tasks.programs import Programs, SandboxFailed, default_limits

OUTPUT = 2_000
"""Tokens of what one program prints; a longer text is cut in its middle."""
_PROGRAM = "program.py"


class Scratch:
    """Runs programs in the best sandbox that works on this machine, without network.

    Args:
        root: the program's folder, for messages.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        # Programs wait for each other by a lock of their event loop.
        self._programs: WeakKeyDictionary[asyncio.AbstractEventLoop, Programs] = WeakKeyDictionary()

    async def run(self, code: str, files: Sequence[Path] = ()) -> str:
        """Run a program beside copies of some files, and return what it printed and why it failed.

        Raises:
            ConnectionError: no sandbox works, so that the rollout is unmeasured.
            OSError: a file cannot be copied.
        """
        try:
            programs = self._found()
        except SkillcError as problem:
            raise ConnectionError(problem.message) from None
        async with temporary_folder() as place:
            workspace = Workspace.make(place, programs.kind)
            for file in files:
                shutil.copy2(file, workspace.folder)
            try:
                words = [programs.python, workspace.write(_PROGRAM, code)]
                result = await programs.run(workspace, words, workspace.seen)
            except SandboxFailed as problem:
                raise ConnectionError(problem.detail) from None
            return programs.observed(result, workspace, OUTPUT)

    def _found(self) -> Programs:
        loop = asyncio.get_running_loop()
        if loop not in self._programs:
            sandbox = declared_sandbox(None, default_limits())
            self._programs[loop] = Programs(sandbox, self._root, what="the tool")
        return self._programs[loop]
