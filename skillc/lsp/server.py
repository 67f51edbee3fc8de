"""The server: dispatches the editor's requests to the modules that answer them.

Documents come whole with every change, for the lines of Python's `splitlines` are not the editor's. The
analysis of a document is kept until something that it was made from changes, so a request costs at most one check.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from skillc import __version__
from skillc.errors import SkillcError
from skillc.lsp import completion, document, findings, hover, names
from skillc.lsp.costs import Costs, Estimates
from skillc.lsp.workspace import UTF_16, Analysis, Encoding, Project, name_of

QUIET = 0.15
"""Seconds without a change before a document is checked."""

PATIENCE = 0.4
"""Seconds that a hover waits for the costs; afterwards it goes without, and the next one has them."""

_REQUEST_FAILED = -32803
_TRIGGERS = [".", '"', "/", "=", "(", ",", ":", " "]

log = logging.getLogger("skillc.lsp")

F = TypeVar("F", bound=Callable[..., Any])


def told_shortly(record: logging.LogRecord) -> bool:
    """Log a refused request, such as a rename, as its reason alone: it is no failure of the server."""
    problem = record.exc_info[1] if record.exc_info else None
    if isinstance(problem, JsonRpcException) and problem.code == _REQUEST_FAILED:
        record.msg, record.args = "refused: %s", (problem.message,)
        record.exc_info, record.exc_text = None, None
        record.levelno, record.levelname = logging.INFO, "INFO"
    return True


class SkillServer(LanguageServer):
    """The server with what it knows of the workspace."""

    def __init__(self) -> None:
        super().__init__("skillc", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full)
        logging.getLogger("pygls.protocol.json_rpc").addFilter(told_shortly)
        self.project = Project()
        self.findings = findings.Findings(self.project)
        self.estimates = Estimates()
        self.reckoning = ThreadPoolExecutor(max_workers=1, thread_name_prefix="costs")
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._reckoned: dict[str, Future[Costs | None]] = {}
        self._shown: set[str] = set()

    # ---- the workspace ----

    def begin(self, params: types.InitializeParams) -> None:
        """Read the editor's capabilities and folders."""
        encoding = self.workspace.position_encoding or UTF_16
        self.project = Project(Encoding(encoding))
        self.findings = findings.Findings(self.project)
        folders = [folder.uri for folder in params.workspace_folders or ()]
        if not folders and params.root_uri:
            folders = [params.root_uri]
        self.project.folders = tuple(Path(name_of(uri)) for uri in folders if uri.startswith("file:"))

    def changed_folders(self, event: types.WorkspaceFoldersChangeEvent) -> None:
        """Folders were added or taken away."""
        gone = {name_of(folder.uri) for folder in event.removed}
        kept = [folder for folder in self.project.folders if str(folder) not in gone]
        self.project.folders = tuple(kept + [Path(name_of(each.uri)) for each in event.added])

    def analysis(self, document: types.TextDocumentIdentifier) -> Analysis | None:
        """Analyse a document; None if it can't be read."""
        try:
            return self.project.analysis(name_of(document.uri))
        except SkillcError:
            return None

    # ---- diagnostics ----

    def check_soon(self, name: str, wait: float = QUIET) -> None:
        """Check a file, and the open programs that use it, once nothing has changed for a while."""
        waiting = self._timers.pop(name, None)
        if waiting is not None:
            waiting.cancel()
        self._timers[name] = asyncio.get_running_loop().call_later(wait, guarded(self._check), name)

    def _check(self, name: str) -> None:
        self._timers.pop(name, None)
        users = self.findings.users(name)
        if name in self.project.opened and name not in users:
            users.insert(0, name)
        touched: set[str] = set()
        for main in users:
            touched |= self.findings.check(main)
        self._publish(touched)

    def check_all(self) -> None:
        """Check every open program again: something on the disk has changed."""
        for name in self.project.opened:
            self.check_soon(name)

    def closed(self, name: str) -> None:
        """Drop the findings of a closed document, and check the programs that use its file."""
        waiting = self._timers.pop(name, None)
        if waiting is not None:
            waiting.cancel()
        self._publish(self.findings.drop(name), gone=name)
        for user in self.findings.users(name):
            self.check_soon(user)

    def _publish(self, names: Iterable[str], gone: str | None = None) -> None:
        for name in sorted(names):
            buffer = self.project.buffer(name)
            found = [] if name == gone else self.findings.of(name)
            if not found and buffer is None and name != gone and name not in self._shown:
                continue
            (self._shown.add if found else self._shown.discard)(name)
            version = buffer.version if buffer is not None else None
            uri = self.project.uri(name)
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, version))

    # ---- costs ----

    async def costs(self, analysis: Analysis) -> Costs | None:
        """What a program may spend, where that is known soon enough."""
        name = analysis.source.name
        running = self._reckoned.get(name)
        if running is None or running.done():
            # One at a time for each program: a hover that goes without leaves the answer to the next.
            running = self.reckoning.submit(self.estimates.of, analysis)
            self._reckoned[name] = running
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(running)), PATIENCE)
        except TimeoutError:
            return None


def guarded(handler: F) -> F:
    """Wrap a handler so that it logs exceptions and returns None instead of stopping the server."""

    @functools.wraps(handler)
    def quiet(*arguments: Any) -> Any:
        try:
            return handler(*arguments)
        except (JsonRpcException, KeyboardInterrupt):
            raise
        except Exception:
            log.exception("`%s` failed; this is a bug in skillc", getattr(handler, "__name__", handler))
            return None

    @functools.wraps(handler)
    async def quiet_later(*arguments: Any) -> Any:
        try:
            return await handler(*arguments)
        except (JsonRpcException, KeyboardInterrupt):
            raise
        except Exception:
            log.exception("`%s` failed; this is a bug in skillc", getattr(handler, "__name__", handler))
            return None

    return quiet_later if asyncio.iscoroutinefunction(handler) else quiet  # type: ignore[return-value]


Position = types.TextDocumentPositionParams
Asked = Callable[[SkillServer, Analysis, int], Any]


def build() -> SkillServer:
    """Build a server with every feature, not yet started."""
    server = SkillServer()
    for name, handler, options in (*_documents(), *_at_a_place(), *_of_a_document(), *_of_a_workspace()):
        server.feature(name, options)(guarded(handler))
    return server


Feature = tuple[str, Callable[..., Any], Any]


def _documents() -> Iterable[Feature]:
    """Notifications of the editor."""

    def initialize(ls: SkillServer, params: types.InitializeParams) -> None:
        ls.begin(params)

    def initialized(ls: SkillServer, params: types.InitializedParams) -> Awaitable[None] | None:
        _watch_files(ls)
        return None

    def opened(ls: SkillServer, params: types.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        ls.check_soon(ls.project.open(document.uri, document.text, document.version), wait=0)

    def changed(ls: SkillServer, params: types.DidChangeTextDocumentParams) -> None:
        if params.content_changes:
            document = params.text_document
            ls.check_soon(ls.project.open(document.uri, params.content_changes[-1].text, document.version))

    def closed(ls: SkillServer, params: types.DidCloseTextDocumentParams) -> None:
        ls.closed(ls.project.close(params.text_document.uri))

    def on_disk(ls: SkillServer, params: types.DidChangeWatchedFilesParams) -> None:
        ls.check_all()

    def saved(ls: SkillServer, params: types.DidSaveTextDocumentParams) -> None:
        ls.check_all()

    def folders(ls: SkillServer, params: types.DidChangeWorkspaceFoldersParams) -> None:
        ls.changed_folders(params.event)

    return (
        (types.INITIALIZE, initialize, None),
        (types.INITIALIZED, initialized, None),
        (types.TEXT_DOCUMENT_DID_OPEN, opened, None),
        (types.TEXT_DOCUMENT_DID_CHANGE, changed, None),
        (types.TEXT_DOCUMENT_DID_CLOSE, closed, None),
        (types.TEXT_DOCUMENT_DID_SAVE, saved, None),
        (types.WORKSPACE_DID_CHANGE_WATCHED_FILES, on_disk, None),
        (types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, folders, None),
    )


def _watch_files(ls: SkillServer) -> None:
    workspace = ls.client_capabilities.workspace
    watching = workspace.did_change_watched_files if workspace is not None else None
    if watching is None or not watching.dynamic_registration:
        return
    watchers = [types.FileSystemWatcher(pattern) for pattern in ("**/*.skill", "**/*.md")]
    options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
    registration = types.Registration("skillc-files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
    ls.client_register_capability(types.RegistrationParams([registration]))


def _asked(answer: Asked) -> Callable[[SkillServer, Any], Any]:
    """A handler for a request about a place."""

    def handler(ls: SkillServer, params: Any) -> Any:
        analysis = ls.analysis(params.text_document)
        if analysis is None:
            return None
        return answer(ls, analysis, ls.project.positions(analysis.source).offset(params.position))

    return handler


def _at_a_place() -> Iterable[Feature]:
    """Requests about a place in a document."""

    async def hovered(ls: SkillServer, params: types.HoverParams) -> types.Hover | None:
        analysis = ls.analysis(params.text_document)
        if analysis is None:
            return None
        positions = ls.project.positions(analysis.source)
        link = names.link_at(analysis, positions.offset(params.position))
        if link is None:
            return None
        told = hover.hover(analysis, link.symbol, await ls.costs(analysis))
        if told is None:
            return None
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, told), positions.range(link.span))

    def completed(ls: SkillServer, params: types.CompletionParams) -> types.CompletionList | None:
        try:
            source = ls.project.source(name_of(params.text_document.uri))
            analysis = ls.project.names(source.name)
        except SkillcError:
            return None
        offset = ls.project.positions(source).offset(params.position)
        return completion.completion(ls.project, analysis, source, offset, snippets=_knows_snippets(ls))

    def signature(ls: SkillServer, analysis: Analysis, offset: int) -> types.SignatureHelp | None:
        return hover.signature_help(analysis.work.module, analysis.source.text, offset)

    def defined(ls: SkillServer, analysis: Analysis, offset: int) -> types.Location | None:
        return names.definition(ls.project, analysis, offset)

    def highlighted(ls: SkillServer, analysis: Analysis, offset: int) -> list[types.DocumentHighlight]:
        return names.highlights(ls.project, analysis, offset)

    def referred(ls: SkillServer, params: types.ReferenceParams) -> list[types.Location]:
        analysis = ls.analysis(params.text_document)
        if analysis is None:
            return []
        offset = ls.project.positions(analysis.source).offset(params.position)
        declaration = params.context.include_declaration
        return names.references(ls.project, analysis, offset, declaration=declaration)

    def prepared(ls: SkillServer, analysis: Analysis, offset: int) -> types.PrepareRenamePlaceholder:
        try:
            link = names.renamable(ls.project, analysis, offset)
        except names.RefusedError as refused:
            raise JsonRpcException(refused.message, _REQUEST_FAILED) from None
        return types.PrepareRenamePlaceholder(ls.project.positions(analysis.source).range(link.span), link.symbol.name)

    def renamed(ls: SkillServer, params: types.RenameParams) -> types.WorkspaceEdit | None:
        analysis = ls.analysis(params.text_document)
        if analysis is None:
            return None
        offset = ls.project.positions(analysis.source).offset(params.position)
        try:
            return names.rename(ls.project, analysis, offset, params.new_name)
        except names.RefusedError as refused:
            raise JsonRpcException(refused.message, _REQUEST_FAILED) from None

    return (
        (types.TEXT_DOCUMENT_HOVER, hovered, None),
        (types.TEXT_DOCUMENT_COMPLETION, completed, types.CompletionOptions(trigger_characters=_TRIGGERS)),
        (types.TEXT_DOCUMENT_SIGNATURE_HELP, _asked(signature), types.SignatureHelpOptions(["(", ","])),
        (types.TEXT_DOCUMENT_DEFINITION, _asked(defined), None),
        (types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT, _asked(highlighted), None),
        (types.TEXT_DOCUMENT_REFERENCES, referred, None),
        (types.TEXT_DOCUMENT_PREPARE_RENAME, _asked(prepared), None),
        (types.TEXT_DOCUMENT_RENAME, renamed, types.RenameOptions(prepare_provider=True)),
    )


def _knows_snippets(ls: SkillServer) -> bool:
    document = ls.client_capabilities.text_document
    item = document.completion.completion_item if document is not None and document.completion is not None else None
    return bool(item is not None and item.snippet_support)


def _of_a_document() -> Iterable[Feature]:
    """Requests about a document as a whole, or a range of it."""

    def listed(answer: Callable[[Project, Analysis], Any]) -> Callable[[SkillServer, Any], Any]:
        def handler(ls: SkillServer, params: Any) -> Any:
            analysis = ls.analysis(params.text_document)
            return [] if analysis is None else answer(ls.project, analysis)

        return handler

    def acted(ls: SkillServer, params: types.CodeActionParams) -> list[types.CodeAction]:
        analysis = ls.analysis(params.text_document)
        if analysis is None:
            return []
        span = ls.project.positions(analysis.source).span(params.range)
        return findings.code_actions(ls.project, analysis, span, params.context.only)

    def coloured(ls: SkillServer, params: types.SemanticTokensParams) -> types.SemanticTokens:
        analysis = ls.analysis(params.text_document)
        return types.SemanticTokens([]) if analysis is None else document.semantic_tokens(ls.project, analysis)

    def coloured_range(ls: SkillServer, params: types.SemanticTokensRangeParams) -> types.SemanticTokens:
        analysis = ls.analysis(params.text_document)
        if analysis is None:
            return types.SemanticTokens([])
        span = ls.project.positions(analysis.source).span(params.range)
        return document.semantic_tokens(ls.project, analysis, span)

    return (
        (types.TEXT_DOCUMENT_FORMATTING, listed(findings.formatting), None),
        (types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, listed(document.document_symbols), None),
        (types.TEXT_DOCUMENT_FOLDING_RANGE, listed(document.folding_ranges), None),
        (types.TEXT_DOCUMENT_DOCUMENT_LINK, listed(document.document_links), None),
        (types.TEXT_DOCUMENT_CODE_ACTION, acted, types.CodeActionOptions(list(findings.KINDS))),
        (types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, coloured, document.LEGEND),
        (types.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE, coloured_range, document.LEGEND),
    )


def _of_a_workspace() -> Iterable[Feature]:
    """Requests about all programs."""

    def found(ls: SkillServer, params: types.WorkspaceSymbolParams) -> list[types.WorkspaceSymbol]:
        return document.workspace_symbols(ls.project, params.query)

    return ((types.WORKSPACE_SYMBOL, found, None),)


# ---- standard input and output --------------------------------------------------------------------


def serve() -> None:
    """Serve an editor until it exits or closes the connection.

    Everything else that Python or a library prints goes to standard error: one stray byte on standard output would end
    the session.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(name)s: %(message)s")
    output = _claimed_output()
    try:
        build().start_io(sys.stdin.buffer, output)
    finally:
        # Threads that wait for input or compute costs must not keep the process alive.
        sys.stderr.flush()


def _claimed_output() -> BinaryIO:
    sys.stdout.flush()
    claimed = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(claimed, "wb", buffering=0)
