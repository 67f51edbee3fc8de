"""The language server: dispatches the editor's requests to the modules that answer them.

The editor sends whole documents with every change. The analysis of a document is cached until one of its files changes,
so a request costs at most one check. The modules that answer are loaded when they are first needed, behind the reply
to `initialize`, for which the editor waits.
"""

from __future__ import annotations

import asyncio
import functools
import importlib.util
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, BinaryIO

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from skillc import __version__
from skillc.errors import SkillcError
from skillc.lsp.offer import ACTIONS, LEGEND, TRIGGERS

if TYPE_CHECKING:
    from skillc.lsp import completion, costs, document, findings, hover, names, workspace
    from skillc.lsp.costs import Costs
    from skillc.lsp.workspace import Analysis, Project
else:

    def late(name: str) -> ModuleType:
        """Return a module that is executed at the first look at one of its attributes."""
        found = importlib.util.find_spec(name)
        found.loader = importlib.util.LazyLoader(found.loader)
        module = sys.modules[name] = importlib.util.module_from_spec(found)
        found.loader.exec_module(module)
        return module

    completion, costs, document, findings, hover, names, workspace = (
        sys.modules.get(name) or late(name)
        for name in (
            f"skillc.lsp.{each}"
            for each in ("completion", "costs", "document", "findings", "hover", "names", "workspace")
        )
    )

QUIET = 0.15
"""Seconds without a change before a document is checked."""

PATIENCE = 0.4
"""Seconds that a hover waits for the costs; a later hover shows them."""

_REQUEST_FAILED = -32803

log = logging.getLogger("skillc.lsp")


def log_refusal(record: logging.LogRecord) -> bool:
    """Log a refused request, such as a rename, as one line: it is not a failure of the server."""
    problem = record.exc_info[1] if record.exc_info else None
    if isinstance(problem, JsonRpcException) and problem.code == _REQUEST_FAILED:
        record.msg, record.args = "refused: %s", (problem.message,)
        record.exc_info, record.exc_text = None, None
        record.levelno, record.levelname = logging.INFO, "INFO"
    return True


class SkillServer(LanguageServer):
    """The server and the state of the workspace."""

    def __init__(self) -> None:
        super().__init__("skillc", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full)
        logging.getLogger("pygls.protocol.json_rpc").addFilter(log_refusal)
        self._folders: list[str] = []
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="costs")
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._computing: dict[str, Future[Costs | None]] = {}
        self._shown: set[str] = set()

    # ---- the workspace ----

    def keep_folders(self, params: types.InitializeParams) -> None:
        """Keep the editor's folders for the project."""
        self._folders = [folder.uri for folder in params.workspace_folders or ()]
        if not self._folders and params.root_uri:
            self._folders = [params.root_uri]

    @functools.cached_property
    def project(self) -> Project:
        """The files of the workspace, in the units and folders of the editor."""
        made = workspace.Project(workspace.Encoding(self.workspace.position_encoding or workspace.UTF_16))
        made.folders = tuple(Path(workspace.name_of(uri)) for uri in self._folders if uri.startswith("file:"))
        return made

    @functools.cached_property
    def findings(self) -> findings.Findings:
        """The findings of every open program."""
        return findings.Findings(self.project)

    @functools.cached_property
    def estimates(self) -> costs.Estimates:
        """The estimates of programs."""
        return costs.Estimates()

    def change_folders(self, event: types.WorkspaceFoldersChangeEvent) -> None:
        """Add and remove folders of the workspace."""
        gone = {workspace.name_of(folder.uri) for folder in event.removed}
        kept = [folder for folder in self.project.folders if str(folder) not in gone]
        self.project.folders = tuple(kept + [Path(workspace.name_of(each.uri)) for each in event.added])

    def analysis(self, document: types.TextDocumentIdentifier) -> Analysis | None:
        """Analyse a document; None if it can't be read."""
        try:
            return self.project.analysis(workspace.name_of(document.uri))
        except SkillcError:
            return None

    # ---- diagnostics ----

    def check_soon(self, name: str, wait: float = QUIET) -> None:
        """Check a file, and the open programs that use it, once nothing has changed for a while."""
        self._cancel(name)
        check = guarded("check", self._check)
        self._timers[name] = asyncio.get_running_loop().call_later(wait, check, name)

    def _cancel(self, name: str) -> None:
        waiting = self._timers.pop(name, None)
        if waiting is not None:
            waiting.cancel()

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
        """Check every open program again, after a change on disk."""
        for name in self.project.opened:
            self.check_soon(name)

    def close(self, uri: str) -> None:
        """Drop the findings of a closed document, and check the programs that use its file."""
        name = self.project.close(uri)
        self._cancel(name)
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
        """Return what a program may spend; None if that is not known soon enough."""
        name = analysis.source.name
        running = self._computing.get(name)
        if running is None or running.done():
            # One at a time for each program: after a timeout the next hover finds the result.
            running = self._executor.submit(self.estimates.of, analysis)
            self._computing[name] = running
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(running)), PATIENCE)
        except TimeoutError:
            return None


Handler = Callable[[SkillServer, Any], Any]


def guarded(name: str, handler: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a handler so that it logs exceptions and returns None instead of stopping the server."""

    @contextmanager
    def logging_failures() -> Iterator[None]:
        try:
            yield
        except names.RefusedError as refused:
            raise JsonRpcException(refused.message, _REQUEST_FAILED) from None
        except (JsonRpcException, KeyboardInterrupt):
            raise
        except Exception:
            log.exception("`%s` failed; this is a bug in skillc", name)

    @functools.wraps(handler)
    def call(*arguments: Any) -> Any:
        with logging_failures():
            return handler(*arguments)

    @functools.wraps(handler)
    async def call_async(*arguments: Any) -> Any:
        with logging_failures():
            return await handler(*arguments)

    return call_async if asyncio.iscoroutinefunction(handler) else call


def build() -> SkillServer:
    """Build a server with every feature, not yet started."""
    server = SkillServer()
    for name, handler, options in (*_notifications(), *_position_requests(), *_document_requests()):
        server.feature(name, options)(guarded(name, handler))
    return server


Feature = tuple[str, Handler, Any]


def _notifications() -> Iterable[Feature]:
    """Return the handlers of the editor's notifications."""

    def initialized(ls: SkillServer, params: types.InitializedParams) -> None:
        _watch_files(ls)
        # The language is loaded now, while the editor prepares its first document.
        ls.project  # noqa: B018

    def opened(ls: SkillServer, params: types.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        ls.check_soon(ls.project.open(document.uri, document.text, document.version), wait=0)

    def changed(ls: SkillServer, params: types.DidChangeTextDocumentParams) -> None:
        if params.content_changes:
            document = params.text_document
            ls.check_soon(ls.project.open(document.uri, params.content_changes[-1].text, document.version))

    return (
        (types.INITIALIZE, lambda ls, params: ls.keep_folders(params), None),
        (types.INITIALIZED, initialized, None),
        (types.TEXT_DOCUMENT_DID_OPEN, opened, None),
        (types.TEXT_DOCUMENT_DID_CHANGE, changed, None),
        (types.TEXT_DOCUMENT_DID_CLOSE, lambda ls, params: ls.close(params.text_document.uri), None),
        (types.TEXT_DOCUMENT_DID_SAVE, lambda ls, params: ls.check_all(), None),
        (types.WORKSPACE_DID_CHANGE_WATCHED_FILES, lambda ls, params: ls.check_all(), None),
        (types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, lambda ls, params: ls.change_folders(params.event), None),
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


def _on_analysis(answer: Callable[[SkillServer, Analysis, Any], Any], unreadable: Any = None) -> Handler:
    """Answer a request about a document from its analysis; with `unreadable` if the document can't be read."""

    def handler(ls: SkillServer, params: Any) -> Any:
        analysis = ls.analysis(params.text_document)
        return unreadable if analysis is None else answer(ls, analysis, params)

    return handler


def _at(ls: SkillServer, analysis: Analysis, params: Any) -> int:
    """Return the offset of a request's position."""
    return ls.project.positions(analysis.source).offset(params.position)


def _position_requests() -> Iterable[Feature]:
    """Return the handlers of requests about a position in a document."""

    async def describe(ls: SkillServer, params: types.HoverParams) -> types.Hover | None:
        analysis = ls.analysis(params.text_document)
        link = None if analysis is None else names.link_at(analysis, _at(ls, analysis, params))
        if analysis is None or link is None:
            return None
        text = hover.hover(analysis, link.symbol, await ls.costs(analysis))
        if text is None:
            return None
        place = ls.project.positions(analysis.source).range(link.span)
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text), place)

    def complete(ls: SkillServer, params: types.CompletionParams) -> types.CompletionList | None:
        try:
            source = ls.project.source(workspace.name_of(params.text_document.uri))
            analysis = ls.project.names(source.name)
        except SkillcError:
            return None
        offset = ls.project.positions(source).offset(params.position)
        return completion.completion(ls.project, analysis, source, offset, snippets=_supports_snippets(ls))

    def sign(ls: SkillServer, analysis: Analysis, params: Any) -> types.SignatureHelp | None:
        return hover.signature_help(analysis.work.module, analysis.source.text, _at(ls, analysis, params))

    def define(ls: SkillServer, analysis: Analysis, params: Any) -> types.Location | None:
        return names.definition(ls.project, analysis, _at(ls, analysis, params))

    def highlight(ls: SkillServer, analysis: Analysis, params: Any) -> list[types.DocumentHighlight]:
        return names.highlights(ls.project, analysis, _at(ls, analysis, params))

    def refer(ls: SkillServer, analysis: Analysis, params: types.ReferenceParams) -> list[types.Location]:
        declaration = params.context.include_declaration
        return names.references(ls.project, analysis, _at(ls, analysis, params), declaration=declaration)

    def prepare(ls: SkillServer, analysis: Analysis, params: Any) -> types.PrepareRenamePlaceholder:
        link = names.renamable(ls.project, analysis, _at(ls, analysis, params))
        return types.PrepareRenamePlaceholder(ls.project.positions(analysis.source).range(link.span), link.symbol.name)

    def rename(ls: SkillServer, analysis: Analysis, params: types.RenameParams) -> types.WorkspaceEdit:
        return names.rename(ls.project, analysis, _at(ls, analysis, params), params.new_name)

    return (
        (types.TEXT_DOCUMENT_HOVER, describe, None),
        (types.TEXT_DOCUMENT_COMPLETION, complete, types.CompletionOptions(trigger_characters=TRIGGERS)),
        (types.TEXT_DOCUMENT_SIGNATURE_HELP, _on_analysis(sign), types.SignatureHelpOptions(["(", ","])),
        (types.TEXT_DOCUMENT_DEFINITION, _on_analysis(define), None),
        (types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT, _on_analysis(highlight), None),
        (types.TEXT_DOCUMENT_REFERENCES, _on_analysis(refer, []), None),
        (types.TEXT_DOCUMENT_PREPARE_RENAME, _on_analysis(prepare), None),
        (types.TEXT_DOCUMENT_RENAME, _on_analysis(rename), types.RenameOptions(prepare_provider=True)),
    )


def _supports_snippets(ls: SkillServer) -> bool:
    document = ls.client_capabilities.text_document
    item = document.completion.completion_item if document is not None and document.completion is not None else None
    return bool(item is not None and item.snippet_support)


def _document_requests() -> Iterable[Feature]:
    """Return the handlers of requests about a whole document, a range of it, or all programs."""

    def listing(answer: Callable[[Project, Analysis], Any]) -> Handler:
        return _on_analysis(lambda ls, analysis, params: answer(ls.project, analysis), [])

    def act(ls: SkillServer, analysis: Analysis, params: types.CodeActionParams) -> list[types.CodeAction]:
        span = ls.project.positions(analysis.source).span(params.range)
        return findings.code_actions(ls.project, analysis, span, params.context.only)

    def tokens(ls: SkillServer, analysis: Analysis, params: Any) -> types.SemanticTokens:
        range_ = getattr(params, "range", None)
        span = ls.project.positions(analysis.source).span(range_) if range_ is not None else None
        return document.semantic_tokens(ls.project, analysis, span)

    no_tokens = types.SemanticTokens([])
    return (
        (types.TEXT_DOCUMENT_FORMATTING, listing(lambda *of: findings.formatting(*of)), None),
        (types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, listing(lambda *of: document.document_symbols(*of)), None),
        (types.TEXT_DOCUMENT_FOLDING_RANGE, listing(lambda *of: document.folding_ranges(*of)), None),
        (types.TEXT_DOCUMENT_DOCUMENT_LINK, listing(lambda *of: document.document_links(*of)), None),
        (types.TEXT_DOCUMENT_CODE_ACTION, _on_analysis(act, []), types.CodeActionOptions(list(ACTIONS))),
        (types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, _on_analysis(tokens, no_tokens), LEGEND),
        (types.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE, _on_analysis(tokens, no_tokens), LEGEND),
        (types.WORKSPACE_SYMBOL, lambda ls, params: document.workspace_symbols(ls.project, params.query), None),
    )


# ---- standard input and output --------------------------------------------------------------------


def serve() -> None:
    """Serve an editor until it exits or closes the connection.

    Other output of Python or a library goes to standard error: one stray byte on standard output would end the session.
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
