"""The language server as an editor meets it: a spawned process and a client, over its standard streams.

Each figure is a median of several runs, beside a plain check of the same text in one process, so that a slow machine
shows in both. The start of the server is shown beside a bare interpreter and the import of the protocol's classes,
which is most of it and not ours. Target: 300 ms, on a machine whose bare interpreter takes 10 ms.
Where that takes 16 ms, the server starts in 800 ms, 490 of them for the protocol's classes.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from benchmarks.check import ENVIRONMENT, compared
from skillc.frontend import check
from skillc.lsp.server import QUIET
from skillc.syntax.source import Source

RUNS = 9
EXAMPLE = Path(__file__).resolve().parents[1] / "examples/tickets/tickets.skill"


def long_program(lines: int) -> str:
    """The example with metrics added until it has so many lines."""
    text = EXAMPLE.read_text(encoding="utf-8")
    missing = lines - len(text.splitlines())
    return text + "".join(f"metric extra_{i} = clamp(tokens(team) / {i + 1} tokens, 0, 1)\n" for i in range(missing))


class Session:
    """A client, and when it was shown something."""

    def __init__(self) -> None:
        self.client = LanguageClient("benchmark", "1")
        self.shown = asyncio.Queue[types.PublishDiagnosticsParams]()

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: types.PublishDiagnosticsParams) -> None:
            self.shown.put_nowait(params)

    async def start(self, folder: Path) -> None:
        """Start the server, and wait until it has said what it can do."""
        await self.client.start_io(sys.executable, "-m", "skillc", "lsp", env=ENVIRONMENT)
        folders = [types.WorkspaceFolder(folder.as_uri(), "benchmark")]
        params = types.InitializeParams(types.ClientCapabilities(), workspace_folders=folders)
        await self.client.initialize_async(params)
        self.client.initialized(types.InitializedParams())

    async def stop(self) -> None:
        """Say goodbye."""
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await self.client.stop()


async def asked(session: Session, method: str, params: object) -> float:
    """Milliseconds until a question is answered."""
    began = time.perf_counter()
    await session.client.protocol.send_request_async(method, params)
    return (time.perf_counter() - began) * 1000


async def opened(session: Session, uri: str, text: str) -> float:
    """Milliseconds from opening a document to its diagnostics."""
    began = time.perf_counter()
    document = types.TextDocumentItem(uri, "skill", 1, text)
    session.client.text_document_did_open(types.DidOpenTextDocumentParams(document))
    while (await session.shown.get()).uri != uri:
        pass
    return (time.perf_counter() - began) * 1000


async def changed(session: Session, uri: str, text: str, version: int) -> float:
    """Milliseconds from a change to its diagnostics, without the time that is waited for a next change."""
    began = time.perf_counter()
    document = types.VersionedTextDocumentIdentifier(version, uri)
    change = types.TextDocumentContentChangeWholeDocument(text)
    session.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))
    while (await session.shown.get()).version != version:
        pass
    return (time.perf_counter() - began - QUIET) * 1000


async def measured(lines: int, folder: Path) -> None:
    """Prints the figures of one size."""
    began = time.perf_counter()
    session = Session()
    await session.start(folder)
    started = (time.perf_counter() - began) * 1000
    text = long_program(lines)
    uri = (folder / "main.skill").as_uri()
    first = await opened(session, uri, text)
    later = [await changed(session, uri, f"{text}# {i}\n", 2 + i) for i in range(RUNS)]
    typed = f"{text}gate last = gates."
    here = types.Position(typed.count("\n"), len("gate last = gates."))
    identifier = types.TextDocumentIdentifier(uri)
    questions = {
        "completion": ("textDocument/completion", types.CompletionParams(identifier, here)),
        "hover": ("textDocument/hover", types.HoverParams(identifier, types.Position(40, 6))),
        "definition": ("textDocument/definition", types.DefinitionParams(identifier, types.Position(54, 30))),
        "symbols": ("textDocument/documentSymbol", types.DocumentSymbolParams(identifier)),
        "tokens": ("textDocument/semanticTokens/full", types.SemanticTokensParams(identifier)),
    }
    await changed(session, uri, typed, 100)
    times = {name: [await asked(session, *question) for _ in range(RUNS)] for name, question in questions.items()}
    # Completion right behind a key press: nothing is known of the new text yet.
    fresh = []
    for i in range(RUNS):
        document = types.VersionedTextDocumentIdentifier(200 + i, uri)
        change = types.TextDocumentContentChangeWholeDocument(f"# {i}\n{typed}")
        session.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))
        fresh.append(await asked(session, *questions["completion"]))
    await session.stop()
    plain = []
    for _ in range(RUNS):
        began = time.perf_counter()
        check(Source("long.skill", text))
        plain.append((time.perf_counter() - began) * 1000)
    base = statistics.median(plain)
    print(f"{lines:>6,} lines   plain check {base:7.1f} ms   server started in {started:.0f} ms")
    rows = {"open, first": [first], "change": later, "completion, fresh": fresh, **times}
    for name, found in rows.items():
        middle = statistics.median(found)
        print(f"    {name:18} {middle:7.1f} ms   {middle / base:5.2f} x")


def main() -> None:
    """Prints the figures."""
    bare, protocol = compared("-c", "import lsprotocol.types")
    print(f"bare interpreter {bare:.0f} ms of CPU, import of lsprotocol.types {protocol:.0f} ms")
    for lines in (60, 1_000):
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(measured(lines, Path(folder)))


if __name__ == "__main__":
    main()
