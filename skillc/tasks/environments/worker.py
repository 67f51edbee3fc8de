"""The process of one environment: answers requests, one JSON line each, until its input closes.

It runs as a script in any interpreter from Python 3.9 on, also one without skillc, so it imports only the standard
library. Requests and replies use copies of the descriptors 0 and 1. Descriptor 1 itself becomes standard error: what
libraries print, from C code and child processes too, cannot get between the replies.

    open   {target, file, path, settings, memory} -> {methods, seeded, files}
    reset  {example, seed}                        -> {observation, actions, done, say}
    step   {action}                               -> {observation, actions, done, say, failed}
    score  {}                                     -> {score}

A reply may be {error} instead, on one line, and the environment is not used again.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import math
import os
import sys
import traceback
from typing import Any

_REQUIRED = ("reset", "step", "score")
_LONGEST = 300


class _Broken(Exception):  # noqa: N818
    """An environment returned what the protocol does not allow."""


def main() -> None:
    """Serve one environment."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    # The folder of this script would hide packages of the same names.
    sys.path[:] = [place for place in sys.path if os.path.abspath(place or ".") != _HERE]  # noqa: PTH100
    server = _Server()
    for line in requests:
        request = json.loads(line)
        try:
            reply = server.answer(request)
        except (Exception, SystemExit, KeyboardInterrupt) as raised:
            reply = {"error": _described(raised, server.root)}
        replies.write(json.dumps(reply).encode() + b"\n")
        replies.flush()
    server.close()


_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120


class _Server:
    """One environment, from `open` on."""

    def __init__(self) -> None:
        self.root = ""
        self._environment: Any = None
        self._seeded = False
        self._actions: list[str] | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        operation = request.pop("op")
        reply: dict[str, Any] = getattr(self, "_" + operation)(**request)
        return reply

    def close(self) -> None:
        close = getattr(self._environment, "close", None)
        if close is not None:
            close()

    def _open(
        self, target: str, file: str | None, path: list[str], settings: dict[str, Any], memory: int | None
    ) -> dict[str, Any]:
        self.root = path[0] if path else ""
        if memory:
            import resource

            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        sys.path[:0] = [place for place in path if place not in sys.path]
        cls = _class_of(target, file)
        # Libraries read and even replace the arguments of the process.
        sys.argv = [sys.argv[0]]
        missing = [name for name in _REQUIRED if not callable(getattr(cls, name, None))]
        if missing:
            return {"missing": missing}
        self._environment = cls(**settings)
        self._seeded = "seed" in inspect.signature(self._environment.reset).parameters
        return {"missing": [], "files": _files(cls, self.root, file)}

    def _reset(self, example: dict[str, Any], seed: int) -> dict[str, Any]:
        returned = self._environment.reset(example, seed=seed) if self._seeded else self._environment.reset(example)
        observation, info = returned if isinstance(returned, tuple) and len(returned) == 2 else (returned, {})
        return self._turn("reset", observation, False, info)

    def _step(self, action: Any) -> dict[str, Any]:
        try:
            returned = self._environment.step(action)
        except Exception as raised:
            if not self._inadmissible(raised, action):
                raise
            said = str(raised) or f"`{action}` is not possible"
            return {"observation": said, "actions": self._actions, "done": False, "say": None, "failed": True}
        if not isinstance(returned, tuple) or len(returned) not in (4, 5):
            raise _Broken("`step` must return observation, reward, done and info")
        observation, _, *ends, info = returned
        return {**self._turn("step", observation, any(ends), info), "failed": False}

    def _inadmissible(self, raised: Exception, action: Any) -> bool:
        """Whether an exception is about the action: it has the name for that, or the action was not offered."""
        if any(cls.__name__ == "InadmissibleAction" for cls in type(raised).__mro__):
            return True
        return self._actions is not None and action not in self._actions and not isinstance(raised, MemoryError)

    def _turn(self, method: str, observation: Any, done: Any, info: Any) -> dict[str, Any]:
        if not isinstance(observation, str):
            raise _Broken(f"`{method}` must return the observation as a text, not {type(observation).__name__}")
        info = info or {}
        actions = info.get("admissible_actions", info.get("admissible_commands"))
        self._actions = None if actions is None else [str(each) for each in actions]
        say = info.get("say")
        return {
            "observation": observation,
            "actions": self._actions,
            "done": bool(done),
            "say": None if say is None else str(say),
        }

    def _hear(self, text: str) -> dict[str, Any]:
        """Pass on what a simulated user said, to an environment that wants to know."""
        hear = getattr(self._environment, "hear", None)
        if hear is not None:
            hear(text)
        return {}

    def _score(self) -> dict[str, Any]:
        score = self._environment.score()
        number = float(score)
        if not (math.isfinite(number) and 0 <= number <= 1):
            raise _Broken(f"`score` must return a number from 0 to 1, not {score!r}")
        return {"score": number}


def _class_of(target: str, file: str | None) -> Any:
    module_name, _, name = target.rpartition(":")
    if file:
        spec = importlib.util.spec_from_file_location("skillc_environment", file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["skillc_environment"] = module
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(module_name)
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _files(cls: Any, root: str, file: str | None) -> list[str]:
    """The source files that decide what the environment does: of its class, and all that came from the folder."""
    first = inspect.getsourcefile(cls)
    folders = [os.path.realpath(root) + os.sep] if root else []
    # A file of skillc's own comes with those beside it.
    folders += [os.path.dirname(os.path.realpath(first)) + os.sep] if first and file else []  # noqa: PTH120
    packages = f"{os.sep}site-packages{os.sep}"
    files = {first}
    for module in list(sys.modules.values()):
        place = os.path.realpath(getattr(module, "__file__", None) or "")
        if packages not in place and any(place.startswith(folder) for folder in folders):
            files.add(place)
    return sorted({os.path.realpath(each) for each in files if each and each.endswith(".py")})


def _described(raised: BaseException, root: str) -> str:
    """An exception on one line: name, message, and where in the user's code it was raised."""
    try:
        words = " ".join(str(raised).split())[:_LONGEST]
    except Exception:
        words = ""
    if isinstance(raised, _Broken):
        return words
    frames = [each for each in traceback.extract_tb(raised.__traceback__) if each.filename != __file__]
    frames = [each for each in frames if not each.filename.startswith("<frozen")]
    own = [each for each in frames if root and os.path.realpath(each.filename).startswith(os.path.realpath(root))]
    place = f", at `{os.path.basename((own or frames)[-1].filename)}:{(own or frames)[-1].lineno}`" if frames else ""  # noqa: PTH119
    return type(raised).__name__ + (f": {words}" if words else "") + place


if __name__ == "__main__":
    main()
