"""`python -m benchmarks.line.server`: the scripted world behind an OpenAI-compatible address, with a fixed latency.

A process of its own, so that it takes no processor time from the client. Answers depend on the prompt alone. Prints
its port; for each line on standard input it prints one JSON object: the visits since the line before, each the name
that the request gave itself (`user`) with the moments it came and left, and the processor seconds that were used
meanwhile. Moments are those of `time.perf_counter`, which on Linux all processes of a machine share.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import time
from typing import Any

from benchmarks.ablation.optimizer import EveryStage
from benchmarks.search.world import Settings, World, rules_in

_CASE = re.compile(r"case (\d+)")
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class Answers:
    """What the two models say. The target sees the skill in its system message and the case in its last one."""

    def __init__(self, world: World) -> None:
        self._world, self._optimizer = world, EveryStage(world)
        self._rules: dict[str, frozenset[str]] = {}

    def __call__(self, model: str, messages: list[dict[str, Any]]) -> str:
        """The text of a reply."""
        if model.endswith("optimizer"):
            return self._optimizer.answer(next(m["content"] for m in messages if m["role"] == "user"))
        told = str(messages[0]["content"])
        if told not in self._rules:
            self._rules[told] = rules_in(told)
        case = int(_CASE.findall(str(messages[-1]["content"]))[-1])
        right = self._world.right(self._rules[told], case) != self._world.slips(told, case, 0)
        return f"[[ ## answer ## ]]\n{'right' if right else 'wrong'}\n\n[[ ## completed ## ]]"


class Server:
    """Answers late by a fixed time, and notes who was there when."""

    def __init__(self, answers: Answers, latencies: dict[str, float]) -> None:
        self._answers, self._latencies = answers, latencies
        self._visits: list[tuple[str, float, float]] = []
        self._busy = time.process_time()

    def told(self) -> str:
        """The visits and the processor time since it was called last."""
        visits, self._visits = self._visits, []
        before, self._busy = self._busy, time.process_time()
        return json.dumps({"visits": visits, "processor": self._busy - before})

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, kept alive."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                came = time.perf_counter()
                length = _LENGTH.search(head)
                body = json.loads(await reader.readexactly(int(length[1]) if length else 0))
                reply = self._reply(body)
                due = came + self._latencies["optimizer" if body["model"].endswith("optimizer") else "target"]
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                writer.write(reply)
                await writer.drain()
                self._visits.append((str(body.get("user")), came, time.perf_counter()))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _reply(self, body: dict[str, Any]) -> bytes:
        text = self._answers(body["model"], body["messages"])
        prompt = sum(len(str(message["content"])) for message in body["messages"]) // 4
        usage = {"prompt_tokens": prompt, "completion_tokens": len(text) // 4 + 1}
        usage["total_tokens"] = sum(usage.values())
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        value = {"id": "x", "object": "chat.completion", "created": 0, "model": body["model"], "choices": [choice]}
        data = json.dumps({**value, "usage": usage}).encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
        return head.encode() + data


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=float, default=0.2, help="seconds")
    parser.add_argument("--optimizer", type=float, default=1.0, help="seconds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--train", type=int, default=400)
    parser.add_argument("--validation", type=int, default=200)
    options = parser.parse_args()
    world = World(Settings(train=options.train, validation=options.validation), options.seed)
    server = Server(Answers(world), {"target": options.target, "optimizer": options.optimizer})
    served = await asyncio.start_server(server.serve, "127.0.0.1", 0, limit=2**22, backlog=1024)
    print(served.sockets[0].getsockname()[1], flush=True)
    commands = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    while await commands.readline():
        print(server.told(), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
