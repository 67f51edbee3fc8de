"""Clients with a server: in this process, and in one of their own."""

import asyncio
import contextlib
import json
import os
import socket
import subprocess

from forked import command
from model_plans import model, plan_of

from skillc.models.calls import Call, Message
from skillc.models.client import Client
from skillc.models.serving.records import running_servers, stop_server

NAME = "hosted_vllm/./models/tiny"


class Notes:
    """A watcher that remembers."""

    def __init__(self):
        self.notes, self.waits = [], []

    def note(self, message):
        self.notes.append(message)

    def waiting(self, text):
        self.waits.append(text)


@contextlib.contextmanager
def client(place, name=NAME, base_url=None, key_env=None, **serve):
    plan = plan_of(model(name=name, base_url=base_url, key_env=key_env, serve=serve), model("optimizer"))
    with Client(plan, root=place.folder) as made:
        made.notes = Notes()
        made.servers.watch(made.notes)
        yield made


def ask(made, text="hello", role="target"):
    return asyncio.run(made.complete(Call(role, "rollout", (Message("system", "skill"), Message("user", text)))))


def state(place):
    return json.loads(next((place.folder / ".skillc" / "serve").glob("*-*.json")).read_text())


def stop_all(place):
    for path, told in running_servers(place.folder / ".skillc" / "serve"):
        stop_server(path, told)


@contextlib.contextmanager
def socket_on_loopback():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


HOLDS = """
import asyncio, os, signal, sys
# They may be ignored if the tests run in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from model_plans import model, plan_of
from skillc.models import client
from skillc.models.serving import process
process.GRACE = 0.3
print(os.getpid(), flush=True)
plan = plan_of(model(name="hosted_vllm/./models/tiny", base_url=None, serve={serve!r}), model("optimizer"))
with client.Client(plan) as made:
    asyncio.run(made.servers.ready(made.roles["target"].endpoint.id))
    print("answered", flush=True)
    sys.stdin.read()
"""

USES = """
import asyncio, os, sys
from model_plans import model, plan_of
from skillc.models.calls import Call, Message
from skillc.models.client import Client
print(os.getpid(), flush=True)
plan = plan_of(model(name="hosted_vllm/./models/tiny", base_url=None, serve={serve!r}), model("optimizer"))
async def ask(made, text):
    return await made.complete(Call("target", "rollout", (Message("user", text),)))
with Client(plan) as made:
    for line in sys.stdin:
        print(bool(asyncio.run(ask(made, line)).text), made.servers.summaries()[0].how, flush=True)
"""


@contextlib.contextmanager
def forked_client(place, code, serve):
    """A forked process that runs a script; it is killed at the end."""
    script = place.folder / "script.py"
    script.write_text(code.format(serve=serve))
    with (place.folder / "script.txt").open("a") as errors:
        made = subprocess.Popen(
            [*command("python"), str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            bufsize=1,
            cwd=place.folder,
            env={**os.environ, "PYTHONPATH": os.path.dirname(plan_of.__code__.co_filename)},
        )
    made.pid_of_client = int(made.stdout.readline())
    try:
        yield made
    finally:
        made.kill()
        made.communicate()


def holder(place, **serve):
    """A process whose client has a server; it ends when its standard input closes."""
    return forked_client(place, HOLDS, serve)


def user(place, **serve):
    """A process that asks its server once for each line of its standard input, and prints how it was served."""
    return forked_client(place, USES, serve)
