"""The process: what it prints, how it ends, and what it says where pygls is missing."""

import json
import logging
import subprocess
import sys

import pytest
from click.testing import CliRunner

from skillc.cli.pages import lsp
from skillc.errors import SkillcError


def message(**content):
    body = json.dumps({"jsonrpc": "2.0", **content}).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def hello(identity=1):
    return message(id=identity, method="initialize", params={"processId": None, "rootUri": None, "capabilities": {}})


def spawned(code=None):
    command = [sys.executable, "-c", code] if code else [sys.executable, "-m", "skillc", "lsp", "--stdio"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def messages(data):
    """All that stands in an output; a stray byte between two messages would fail here."""
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        fields = dict(line.split(b": ") for line in head.split(b"\r\n"))
        length = int(fields[b"Content-Length"])
        yield json.loads(data[:length])
        data = data[length:]


def test_it_ends_when_the_editor_hangs_up():
    process = spawned()
    output, _ = process.communicate(hello(), timeout=600)
    assert process.returncode is not None
    assert [each["id"] for each in messages(output)] == [1]


def test_it_ends_well_after_goodbye():
    process = spawned()
    goodbye = message(id=2, method="shutdown") + message(method="exit")
    output, errors = process.communicate(hello() + message(method="initialized", params={}) + goodbye, timeout=600)
    assert process.returncode == 0, errors
    assert [each["id"] for each in messages(output)] == [1, 2]


def test_nothing_but_the_protocol_reaches_standard_output():
    code = (
        "import os, subprocess, sys\n"
        "from skillc.lsp import server\n"
        "def loud(*arguments):\n"
        "    print('printed'); os.write(1, b'written'); subprocess.run(['echo', 'shouted'])\n"
        "    raise RuntimeError('a handler that fails')\n"
        "server.names.highlights = loud\n"
        "server.serve()\n"
    )
    text = "language 1\n"
    document = {"uri": "untitled:x", "languageId": "skill", "version": 1, "text": text}
    place = {"textDocument": {"uri": "untitled:x"}, "position": {"line": 0, "character": 0}}
    asked = [
        hello(),
        message(method="initialized", params={}),
        message(method="textDocument/didOpen", params={"textDocument": document}),
        message(id=2, method="textDocument/documentHighlight", params=place),
        message(id=3, method="textDocument/foldingRange", params={"textDocument": {"uri": "untitled:x"}}),
        message(id=4, method="shutdown"),
        message(method="exit"),
    ]
    process = spawned(code)
    output, errors = process.communicate(b"".join(asked), timeout=600)
    answers = {each["id"]: each for each in messages(output) if "id" in each}
    assert answers[2]["result"] is None
    assert answers[3]["result"] == []
    for each in (b"printed", b"written", b"shouted", b"a handler that fails", b"this is a bug in skillc"):
        assert each in errors
    assert process.returncode == 0


def test_the_reply_to_initialize_needs_nothing_of_the_language():
    code = (
        "import sys\n"
        "from skillc.lsp.server import build\n"
        "from lsprotocol import types\n"
        "server = build()\n"
        "heavy = ('skillc.frontend', 'skillc.language.check', 'skillc.budget.bounds')\n"
        "before = [name for name in heavy if name in sys.modules]\n"
        "hello = types.InitializeParams(types.ClientCapabilities())\n"
        "server.protocol.fm.features[types.INITIALIZE](hello)\n"
        "print(before, [name for name in heavy if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] []\n"


def test_without_pygls_it_says_what_to_install(monkeypatch):
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    result = CliRunner().invoke(lsp, [])
    assert isinstance(result.exception, SkillcError)
    assert "pygls" in result.exception.message
    assert result.exception.hint == 'pip install "skillc[lsp]"'


@pytest.mark.parametrize("verb", ["check", "explain"])
def test_no_other_verb_loads_it(verb):
    code = (
        "import sys\n"
        f"sys.argv = ['skillc', {verb!r}, '--help']\n"
        "from skillc.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('pygls', 'lsprotocol', 'attrs') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "[]"


def test_a_refused_request_is_logged_without_a_traceback(caplog):
    from pygls.exceptions import JsonRpcException

    from skillc.lsp.server import build

    build()
    log = logging.getLogger("pygls.protocol.json_rpc")
    with caplog.at_level(logging.INFO):
        for problem in (JsonRpcException("`target` has its name from the language", -32803), ValueError("a bug")):
            try:
                raise problem
            except Exception:
                log.exception("Failed to handle request")
    refused, failed = caplog.records
    assert refused.getMessage() == "refused: `target` has its name from the language"
    assert refused.exc_info is None
    assert failed.exc_info is not None
