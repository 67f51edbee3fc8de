"""An editor for tests: pygls's own client, speaking to a spawned `skillc lsp` over its standard streams."""

import asyncio
import sys
from pathlib import Path

from lsprotocol import types
from pygls import uris
from pygls.lsp.client import LanguageClient

LONG = 600
"""Seconds after which something is taken to never come."""


class Editor:
    """Sends what an editor sends, one thing after the other."""

    def __init__(self, folder, *, encodings=None, command=None):
        self.folder = Path(folder)
        self.loop = asyncio.new_event_loop()
        self.client = LanguageClient("editor", "1")
        self.shown = {}
        self.versions = {}
        self.messages = []
        self.encodings = encodings
        self.command = command or [sys.executable, "-m", "skillc", "lsp"]
        self.arrived = asyncio.Event()

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params):
            self.shown[params.uri] = params
            self.arrived.set()

        @self.client.feature(types.WINDOW_SHOW_MESSAGE)
        def told(params):
            self.messages.append(params.message)

        @self.client.feature(types.CLIENT_REGISTER_CAPABILITY)
        def registered(params):
            self.registrations = params.registrations

    # ---- the session ----

    def start(self):
        self.run(self.client.start_io(*self.command))
        self.process = self.client._server
        workspace = types.WorkspaceClientCapabilities(
            did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(dynamic_registration=True)
        )
        item = types.ClientCompletionItemOptions(snippet_support=True)
        document = types.TextDocumentClientCapabilities(
            completion=types.CompletionClientCapabilities(completion_item=item)
        )
        general = types.GeneralClientCapabilities(position_encodings=self.encodings)
        capabilities = types.ClientCapabilities(workspace=workspace, text_document=document, general=general)
        folders = [types.WorkspaceFolder(uri=self.folder.as_uri(), name="tests")]
        params = types.InitializeParams(capabilities=capabilities, workspace_folders=folders)
        self.initialized = self.run(self.client.initialize_async(params))
        self.client.initialized(types.InitializedParams())
        return self

    def stop(self):
        self.run(self.client.shutdown_async(None))
        self.client.exit(None)
        self.errors = self.run(self.process.stderr.read()).decode()
        self.run(self.process.wait())
        self.run(self.client.stop())
        self.loop.close()
        return self.process.returncode

    def run(self, awaitable):
        return self.loop.run_until_complete(asyncio.wait_for(awaitable, LONG))

    # ---- documents ----

    def uri(self, name):
        return name if ":" in name else uris.from_fs_path(str(self.folder / name))

    def write(self, name, text):
        place = self.folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        return place

    def open(self, name, text=None):
        text = (self.folder / name).read_text(encoding="utf-8") if text is None else text
        uri = self.uri(name)
        self.versions[uri] = self.versions.get(uri, 0) + 1
        document = types.TextDocumentItem(uri, "skill", self.versions[uri], text)
        self.shown.pop(uri, None)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(document))
        return uri

    def change(self, name, text):
        uri = self.uri(name)
        self.versions[uri] += 1
        document = types.VersionedTextDocumentIdentifier(self.versions[uri], uri)
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))
        return uri

    def close(self, name):
        uri = self.uri(name)
        params = types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri))
        self.client.text_document_did_close(params)
        return uri

    def diagnostics(self, name, wanted=None):
        """The diagnostics of the newest version of a document; `wanted` says which of them are waited for."""
        uri = self.uri(name)

        def ready():
            shown = self.shown.get(uri)
            if shown is None or (shown.version is not None and shown.version < self.versions.get(uri, 0)):
                return False
            return wanted is None or wanted(shown.diagnostics)

        async def wait():
            while not ready():
                self.arrived.clear()
                await self.arrived.wait()

        self.run(wait())
        return self.shown[uri].diagnostics

    # ---- questions ----

    def ask(self, method, params):
        async def asked():
            return await self.client.protocol.send_request_async(method, params)

        return self.run(asked())

    def at(self, name, line, character, cls=types.TextDocumentPositionParams, **more):
        document = types.TextDocumentIdentifier(self.uri(name))
        return cls(text_document=document, position=types.Position(line, character), **more)

    def completion(self, name, line, character):
        found = self.ask("textDocument/completion", self.at(name, line, character, types.CompletionParams))
        return {item.label: item for item in found.items} if found else {}

    def hover(self, name, line, character):
        found = self.ask("textDocument/hover", self.at(name, line, character, types.HoverParams))
        return found.contents.value if found else None

    def definition(self, name, line, character):
        return self.ask("textDocument/definition", self.at(name, line, character, types.DefinitionParams))

    def references(self, name, line, character, *, declaration=True):
        context = types.ReferenceContext(include_declaration=declaration)
        params = self.at(name, line, character, types.ReferenceParams, context=context)
        return self.ask("textDocument/references", params) or []

    def rename(self, name, line, character, new):
        params = self.at(name, line, character, types.RenameParams, new_name=new)
        return self.ask("textDocument/rename", params)

    def actions(self, name, range_, only=None):
        document = types.TextDocumentIdentifier(self.uri(name))
        context = types.CodeActionContext(diagnostics=[], only=only)
        return self.ask("textDocument/codeAction", types.CodeActionParams(document, range_, context)) or []

    def about(self, method, name, cls, **more):
        return self.ask(method, cls(text_document=types.TextDocumentIdentifier(self.uri(name)), **more))


def place_of(text, marked):
    """Line and character of a `|` in a piece of the text that stands there without it."""
    piece = marked.replace("|", "")
    assert text.count(piece) == 1, f"{piece!r} stands {text.count(piece)} times"
    offset = text.index(piece) + marked.index("|")
    line = text.count("\n", 0, offset)
    start = text.rfind("\n", 0, offset) + 1
    return line, len(text[start:offset].encode("utf-16-le")) // 2


def offset_of(text, position):
    """The character at a position, counted independently of the server."""
    lines = text.replace("\r\n", "\n").split("\n")
    assert "\r" not in text
    before = sum(len(line) + 1 for line in lines[: position.line])
    units = lines[position.line].encode("utf-16-le")[: position.character * 2]
    return before + len(units.decode("utf-16-le"))


def cut(text, range_):
    """What stands in a range."""
    return text[offset_of(text, range_.start) : offset_of(text, range_.end)]


def applied(text, edits):
    """A text after edits, as an editor applies them."""
    spans = [(offset_of(text, e.range.start), offset_of(text, e.range.end), e.new_text) for e in edits]
    for start, end, new in sorted(spans, reverse=True):
        text = text[:start] + new + text[end:]
    return text
