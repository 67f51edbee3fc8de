"""Behaves like vLLM's server of the same name, and answers as the rulebook does. What goes wrong is told by variables.

FAKE_STARTS          a file that gets one JSON line for each start
FAKE_ASKED           a file that gets one JSON line for each request, without its messages
FAKE_SLOW            seconds before it answers
FAKE_SLOW_AGAIN      the same for all starts but the first
FAKE_DIES_AT_START   how many of the starts end with an error
FAKE_DIES_AFTER      completions after which the first start kills itself
FAKE_IGNORES_TERM    it stays when it is asked to end
FAKE_CHILD           it has a child that does nothing, and ignores SIGTERM too
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from skillc.models.rulebook import answer
from skillc.tokens import count_tokens

HEAD = f"(APIServer pid={os.getpid()}) INFO 11-21 11:14:49 [fake.py:1]"


def arguments():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--model", required=True)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--served-model-name", nargs="+", required=True)
    parser.add_argument("--enable-prompt-tokens-details", action="store_true")
    parser.add_argument("--revision")
    parser.add_argument("--tokenizer")
    parser.add_argument("--chat-template")
    parser.add_argument("--max-model-len", type=int)
    parser.add_argument("--dtype", choices=("auto", "half", "float16", "bfloat16", "float", "float32"))
    parser.add_argument("--quantization")
    parser.add_argument("--gpu-memory-utilization", type=float)
    parser.add_argument("--tensor-parallel-size", type=int)
    parser.add_argument("--data-parallel-size", type=int)
    parser.add_argument("--enable-lora", action="store_true")
    parser.add_argument("--max-loras", type=int)
    parser.add_argument("--max-lora-rank", type=int)
    parser.add_argument("--lora-modules", nargs="+", default=[])
    parser.add_argument("--block-size", type=int)
    parser.add_argument("--enforce-eager", action="store_true")
    return parser.parse_args()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, told, number):
        super().__init__((told.host, told.port), Handler)
        self.names = [*told.served_model_name, *(each.partition("=")[0] for each in told.lora_modules)]
        self.model, self.adapters = told.model, dict(each.split("=", 1) for each in told.lora_modules)
        self.key = os.environ.get("VLLM_API_KEY")
        self.queries = self.hits = self.asked = 0
        self.seen = set()
        self.lock = threading.Lock()
        self.dies_after = int(os.environ.get("FAKE_DIES_AFTER", 0)) if number == 1 else 0

    def card(self, name):
        """What vLLM lists of a model: its weights, and an adapter's base."""
        root, parent = self.adapters.get(name, self.model), self.names[0] if name in self.adapters else None
        return {"id": name, "object": "model", "root": root, "parent": parent}

    def count(self, messages, tokens):
        with self.lock:
            self.asked += 1
            self.queries += tokens
            shared = messages[0]["content"]
            self.hits += count_tokens(shared) if shared in self.seen else 0
            self.seen.add(shared)
            if self.dies_after and self.asked > self.dies_after:
                say("RuntimeError: CUDA error: an illegal memory access was encountered")
                os.kill(os.getpid(), signal.SIGKILL)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        server = self.server
        if self.path == "/health":
            self.reply(200, b"")
        elif self.path == "/metrics":
            label = f'{{engine="0",model_name="{server.names[0]}"}}'
            counters = (("queries", server.queries), ("hits", server.hits))
            lines = [f"vllm:prefix_cache_{name}_total{label} {count}.0" for name, count in counters]
            lines += [f"vllm:external_prefix_cache_{name}_total{label} 99.0" for name, _ in counters]
            self.reply(200, "\n".join(lines).encode())
        elif self.path == "/v1/models" and self.known():
            self.json(200, {"object": "list", "data": [server.card(name) for name in server.names]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not self.known():
            return
        if body["model"] not in self.server.names:
            self.json(404, {"error": {"message": f"The model `{body['model']}` does not exist."}})
            return
        prompt = sum(count_tokens(str(message["content"])) for message in body["messages"])
        self.server.count(body["messages"], prompt)
        if os.environ.get("FAKE_ASKED"):
            with Path(os.environ["FAKE_ASKED"]).open("a") as file:
                print(json.dumps({name: value for name, value in body.items() if name != "messages"}), file=file)
        parameters = {name: body[name] for name in ("max_tokens", "temperature") if name in body}
        text = answer(body["messages"], parameters)
        usage = {"prompt_tokens": prompt, "completion_tokens": count_tokens(text)}
        usage["total_tokens"] = sum(usage.values())
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        whole = {"id": "x", "object": "chat.completion", "model": body["model"], "choices": [choice], "usage": usage}
        self.json(200, whole)

    def known(self):
        if self.server.key and self.headers.get("authorization") != f"Bearer {self.server.key}":
            self.json(401, {"error": "Unauthorized"})
            return False
        return True

    def json(self, status, value):
        self.reply(status, json.dumps(value).encode())

    def reply(self, status, data):
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def say(text):
    print(f"{HEAD} {text}", file=sys.stderr, flush=True)


def starts(told):
    """Which start this is, counted from 1."""
    path = Path(os.environ["FAKE_STARTS"])
    known = {name: os.environ[name] for name in os.environ if name.endswith("_KEY") or name.startswith("TEST_")}
    with path.open("a") as file:
        line = {"pid": os.getpid(), "group": os.getpgid(0), "argv": sys.argv[1:], "env": known, "port": told.port}
        # Its guard writes the log.
        line["log"] = os.readlink(f"/proc/{os.getppid()}/fd/2")
        file.write(json.dumps(line) + "\n")
    return len(path.read_text().splitlines())


def main():
    if os.environ.get("FAKE_IGNORES_TERM"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    told = arguments()
    number = starts(told)
    say(f"Starting to load model {told.model}...")
    if os.environ.get("FAKE_CHILD"):
        code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        child = subprocess.Popen([sys.executable, "-c", code])
        Path(os.environ["FAKE_CHILD"]).write_text(str(child.pid))
    slow = os.environ.get("FAKE_SLOW", 0)
    time.sleep(float(slow if number == 1 else os.environ.get("FAKE_SLOW_AGAIN", slow)))
    if number <= int(os.environ.get("FAKE_DIES_AT_START", 0)):
        say(f"the key is {os.environ.get('VLLM_API_KEY')}")
        say("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB")
        sys.exit(1)
    say(f"Starting vLLM server on http://{told.host}:{told.port}")
    Server(told, number).serve_forever(poll_interval=0.05)


if __name__ == "__main__":
    main()
