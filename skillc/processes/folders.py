"""Folders that last as long as what runs in them."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path


@asynccontextmanager
async def temporary_folder() -> AsyncIterator[Path]:
    """Yield a new folder, which a thread removes afterwards.

    Nobody waits for that: a workspace can have many thousand files. The end of the event loop waits for its threads.
    """
    folder = tempfile.TemporaryDirectory(prefix="skillc-", ignore_cleanup_errors=True)
    try:
        yield Path(folder.name).resolve()
    finally:
        asyncio.get_running_loop().run_in_executor(None, folder.cleanup)
