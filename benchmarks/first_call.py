"""The CPU that a first compile of a served model uses until its first calls arrive at the server.

Target: less than a second until the first one, which tries the model. The server is a thread of this process, reads the
CPU of the compile from /proc when a request arrives, and answers each with the same text. Linux only.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

RUNS = 5
CALLS = 3
EXAMPLE = Path(__file__).resolve().parents[1] / "examples/tickets"
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
REPLY = {
    "id": "1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": "[[ ## team ## ]]\nbilling\n\n[[ ## completed ## ]]"},
        }
    ],
    "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
}


class Server(ThreadingHTTPServer):
    """Answers each request, and notes the CPU seconds of the client process at each of the first ones."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.pid = 0
        self.seen: list[float] = []
        self.enough = threading.Event()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore connections of a compile that was ended."""

    def arrived(self) -> None:
        """Note a request."""
        if len(self.seen) < CALLS:
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
            self.seen.append((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))
        if len(self.seen) == CALLS:
            self.enough.set()


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Print nothing."""

    def do_POST(self) -> None:
        """Answer a call."""
        self.server.arrived()
        self.rfile.read(int(self.headers["content-length"]))
        body = json.dumps(REPLY).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def measured() -> list[float]:
    """The CPU seconds of a compile at each of its first calls."""
    with tempfile.TemporaryDirectory() as folder, Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for file in EXAMPLE.iterdir():
            if file.suffix in (".skill", ".jsonl"):
                (Path(folder) / file.name).write_bytes(file.read_bytes())
        address = f"http://127.0.0.1:{server.server_address[1]}/v1"
        program = Path(folder) / "tickets.skill"
        served = f'"hosted_vllm/m" {{ base_url = "{address}" }}'
        program.write_text(program.read_text(encoding="utf-8").replace('"rulebook/v1"', served), encoding="utf-8")
        command = [sys.executable, "-m", "skillc", "compile", str(program), "--quiet", "--set", "budget.calls=9000"]
        compiling = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
        server.pid = compiling.pid
        try:
            if not server.enough.wait(120):
                raise SystemExit("the compile made too few calls")
        finally:
            compiling.kill()
            compiling.wait()
            server.shutdown()
        return server.seen


def main() -> None:
    """Prints the medians."""
    runs = [measured() for _ in range(RUNS)]
    first, *_, rollout = (statistics.median(each) for each in zip(*runs, strict=True))
    print(f"until the first call, which tries the model  {first:5.2f} s of CPU   target 1 s")
    print(f"until the first rollouts                     {rollout:5.2f} s of CPU")


if __name__ == "__main__":
    main()
