"""A process that asks for keys through a client on a shared cache folder; what it sends is written down.

    python flight_worker.py FOLDER wait|quick NAME...

`wait` says `sent` when a call is on its way, and takes what is to come of it from standard input: `reply` or `fail`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from model_plans import plan_of, reply

from skillc.models.calls import Call, Message
from skillc.models.client import Client


class Refused(Exception):  # noqa: N818
    status_code = 400


def main() -> None:
    folder, how, names = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]

    async def transport(sent: Mapping[str, Any]) -> Any:
        asked = sent["messages"][0]["content"]
        line = os.open(folder / "sent.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(line, f"{asked}\n".encode())
        os.close(line)
        if how == "wait":
            print("sent", flush=True)
            if (await asyncio.to_thread(sys.stdin.readline)).strip() == "fail":
                raise Refused("as asked")
        else:
            await asyncio.sleep(0.1)
        return reply(f"answer to {asked}")

    async def ask_all(client: Client) -> None:
        calls = [client.complete(Call("target", "rollout", (Message("user", name),))) for name in names]
        for completion in await asyncio.gather(*calls):
            print(f"{completion.text}, {'found' if completion.cached else 'fetched'}", flush=True)

    with Client(plan_of(), cache_folder=folder / "cache", transport=transport, concurrency=2) as client:
        if how == "quick":
            print("ready", flush=True)
            sys.stdin.readline()
        asyncio.run(ask_all(client))


if __name__ == "__main__":
    main()
