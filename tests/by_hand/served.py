"""A program's models, served from folders or recordings for a while."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.by_hand.recording import Recording
from benchmarks.by_hand.server import Folder, Server

Sources = Mapping[int, Folder | Recording]
"""What answers in place of the server at each port of a program."""


@contextmanager
def served(program: Path, sources: Sources) -> Iterator[None]:
    """Answer the models of a program from these sources; the program is as it was afterwards."""
    servers = {port: Server(source).start() for port, source in sources.items()}
    written = program.read_text(encoding="utf-8")
    try:
        text = written
        for port, server in servers.items():
            address = f"http://127.0.0.1:{port}/v1"
            assert address in text
            text = text.replace(address, server.url)
        program.write_text(text, encoding="utf-8")
        yield
    finally:
        program.write_text(written, encoding="utf-8")
        for server in servers.values():
            server.shutdown()
            server.server_close()
