"""A household of three rooms for tests of environments, in pure Python, with faults on request.

The example's field `fault` names what goes wrong, and `where` a file that counts its starts: a fault happens only in
the first process, unless it is named with `!`.
"""

import os
import signal
import sys
import time
from pathlib import Path

ROOMS = ("kitchen", "hall", "garden")


class InadmissibleAction(Exception):  # noqa: N818
    pass


class House:
    def __init__(self, key="apple"):
        self.key = key

    def reset(self, example, seed):
        self.example, self.room, self.has, self.won = example, "hall", False, False
        self.place = ROOMS[seed % 3] if example.get("place") is None else example["place"]
        self._fault("reset")
        return f"You are in the hall. The {self.key} is somewhere.", {"admissible_actions": self._actions()}

    def step(self, action):
        self._fault("step")
        if action == "sing":
            raise InadmissibleAction("nobody sings here")
        if action not in self._actions():
            raise KeyError(action)
        if action.startswith("go to "):
            self.room = action.removeprefix("go to ")
        elif action == f"take {self.key}":
            self.has = True
        elif action == "finish":
            self.won = self.has
        seen = f" You see the {self.key}." if self.room == self.place and not self.has else ""
        done = action == "finish"
        return f"You are in the {self.room}.{seen}", float(self.won), done, {"admissible_actions": self._actions()}

    def score(self):
        self._fault("score")
        return float(self.won)

    def _actions(self):
        take = [f"take {self.key}"] if self.room == self.place and not self.has else []
        return [*(f"go to {room}" for room in ROOMS if room != self.room), *take, "finish"]

    def _fault(self, when):
        fault = self.example.get("fault") or ""
        always, name, place = fault.startswith("!"), *fault.lstrip("!").partition("@")[::2]
        if place != when:
            return
        if not always:
            seen = Path(self.example["where"])
            if seen.exists():
                return
            seen.touch()
        FAULTS[name]()


def _garbage():
    print("{not json", flush=True)
    os.write(1, b"\x00\xff{}\n" * 1000)
    os.system("echo from a child")


def _memory():
    raise MemoryError if sys.platform != "linux" else _allocate()


def _allocate():
    blocks = []
    while True:
        blocks.append(bytearray(2**26))


FAULTS = {
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "exit": lambda: os._exit(3),
    "quit": lambda: sys.exit("no more games"),
    "hang": lambda: time.sleep(1000),
    "garbage": _garbage,
    "memory": _memory,
    "raise": lambda: 1 / 0,
}


class Silent:
    def reset(self, example):
        return ""

    def step(self, action):
        return "", 0.0, True, {}


class Shop:
    """A conversation: every action goes to the user."""

    def reset(self, example):
        self.heard = []
        return "A customer comes in."

    def hear(self, text):
        self.heard.append(text)

    def step(self, action):
        return "", 0.0, False, {"say": action}

    def score(self):
        return float(any("blue" in text for text in self.heard))


class Pairs:
    """Takes two outputs at once."""

    def reset(self, example):
        self.done = False
        return "Ready."

    def step(self, action):
        self.done = action == {"verb": "go", "times": 2}
        return "Done.", 0.0, self.done, {}

    def score(self):
        return float(self.done)


class Quiet:
    """Names no actions, and ends at the first one."""

    def reset(self, example):
        return "It is quiet."

    def step(self, action):
        return "", 0.0, True, {}

    def score(self):
        return 1.0


class Needy(House):
    """Needs the field `place`."""

    def reset(self, example, seed):
        return super().reset({**example, "place": example["place"], "where": "seen"}, seed)
