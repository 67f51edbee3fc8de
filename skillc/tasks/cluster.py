"""Rollouts on a Ray cluster, `executor = ray`, with the results of a local run.

Each worker process has the plan's kind of rollout. Calls of models come back to this process, which sends, caches, caps
and charges them in their rollout as if it ran here. If a worker dies, another one begins its rollouts anew, and calls
that were answered before are answered alike, at no further charge.
"""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import importlib.util
import itertools
import os
import pickle
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, cast
from uuid import uuid4

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.models.calls import Call, Completion
from skillc.models.client import Client, Outside
from skillc.models.ledger import Spending
from skillc.models.roles import Role
from skillc.models.scope import current_scope, scope
from skillc.outcomes import Example
from skillc.plan.company import Company
from skillc.plan.schema import Plan
from skillc.tasks.kind import RolloutFailed, RolloutKind, Site, Skill, find_kind
from skillc.trajectories.trajectory import Trajectory

# Of one rollout: the replies to each call, in the order in which equal calls were made.
_Memory: TypeAlias = dict[bytes, list[asyncio.Task[Any]]]

_ATTEMPTS = 3
# Seconds that a worker has to start, or to start again.
_RESTART = 120
# Not shipped to the workers: what runs write, and what is large.
_EXCLUDED = [".skillc", ".git", ".venv", "node_modules", "__pycache__"]
_QUIET = {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_USAGE_STATS_ENABLED": "0"}


class ClusterRollouts(RolloutKind):
    """Runs the plan's kind of rollout in worker processes of a Ray cluster.

    Raises:
        SkillcError: ray is not installed, the cluster cannot be reached, or a worker cannot make the kind.
    """

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        if importlib.util.find_spec("ray") is None:
            raise SkillcError("`executor = ray` needs the package `ray`", hint='pip install "skillc[ray]"')
        find_kind(site.plan)
        os.environ.update(_QUIET)
        ray: Any = importlib.import_module("ray")
        self._ray = ray
        executor = site.plan.task.executor
        assert executor is not None
        self._started = not ray.is_initialized()
        folder = {"working_dir": str(site.root.resolve()), "excludes": _EXCLUDED}
        try:
            if self._started:
                ray.init(address=executor.address, runtime_env=folder, log_to_driver=False, logging_level="error")
            number = executor.workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
            # A restarted worker finds it by its name; a handle among its arguments might be gone by then.
            name = f"skillc-{uuid4().hex}"
            mailbox = ray.remote(num_cpus=0, max_concurrency=10_000)(_Mailbox)
            self._mailbox = mailbox.options(name=name, **_here(ray)).remote()
            make = ray.remote(num_cpus=1, max_restarts=-1, max_concurrency=1000)(_Worker)
            plan = site.plan.model_copy(update={"task": site.plan.task.model_copy(update={"executor": None})})
            roles = {name: _without_key(role) for name, role in site.client.roles.items()}
            self._workers = [make.remote(plan, roles, site.role, name, site.company) for _ in range(number)]
            # A worker for which the cluster has no place yet may follow later; one is enough to begin.
            ready, _ = ray.wait([worker.slots.remote() for worker in self._workers], timeout=_RESTART)
            slots = ray.get(ready[0]) if ready else None
        except Exception as problem:
            cause = getattr(problem, "cause", problem)
            message = str(cause).strip().splitlines()
            raise SkillcError(
                f"the Ray cluster cannot run rollouts: {message[-1] if message else type(cause).__name__}",
                hint="check `address` in the block of `executor`, and that skillc is installed on each machine",
            ) from problem
        if not ready:
            raise SkillcError(
                f"no worker of the Ray cluster started within {_RESTART} s",
                hint="lower `workers`, or free CPUs of the cluster",
            )
        self.slots = None if slots is None else slots * number
        self._load: Counter[int] = Counter()
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Queue[_Request]] = {}
        self._pump: asyncio.Task[None] | None = None
        self._lost: dict[int, asyncio.Task[None]] = {}

    async def run(self, skill: Skill | None, example: Example, *, sample: int) -> Trajectory:
        """As `RolloutKind.run`, on the worker with the fewest rollouts; begun anew where a worker dies."""
        if self._pump is None:
            self._pump = asyncio.create_task(self._distribute())
        memory: _Memory = {}
        detail = ""
        for _ in range(_ATTEMPTS):
            place = await self._free_place()
            self._load[place] += 1
            try:
                return await self._attempt(place, (skill, example, sample), memory)
            except self._ray.exceptions.RayActorError as problem:
                detail = str(problem).splitlines()[0]
                self._lose(place)
            finally:
                self._load[place] -= 1
        raise RolloutFailed("environment", f"the workers of the cluster died {_ATTEMPTS} times: {detail}")

    async def _free_place(self) -> int:
        """Return the worker with the fewest rollouts among those that are there; wait for one if all are lost."""
        while len(self._lost) == len(self._workers):
            done, _ = await asyncio.wait(self._lost.values(), timeout=_RESTART, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                raise RolloutFailed("environment", f"no worker of the cluster came back within {_RESTART} s")
            await asyncio.sleep(0)
        return min((i for i in range(len(self._workers)) if i not in self._lost), key=lambda i: (self._load[i], i))

    def _lose(self, place: int) -> None:
        """Skip a worker until it answers again; the cluster restarts it where CPUs are free."""
        if place not in self._lost:
            task = self._lost[place] = asyncio.create_task(self._return_of(place))
            task.add_done_callback(lambda _: self._lost.pop(place, None))

    async def _return_of(self, place: int) -> None:
        while True:
            try:
                await self._workers[place].slots.remote()
                return
            except self._ray.exceptions.RayActorError:
                await asyncio.sleep(1)

    async def _attempt(self, place: int, work: tuple[Any, ...], memory: _Memory) -> Trajectory:
        number = next(self._numbers)
        requests = self._waiting[number] = asyncio.Queue()
        attempt = _Attempt(self.site.client, memory)
        done = asyncio.ensure_future(self._workers[place].run.remote(number, current_scope().stage, *work))
        try:
            while True:
                request = asyncio.ensure_future(requests.get())
                await asyncio.wait({done, request}, return_when=asyncio.FIRST_COMPLETED)
                if request.done():
                    self._answer(request.result(), attempt)
                    continue
                request.cancel()
                result = await done
                if isinstance(result, BaseException):
                    raise result
                return result  # type: ignore[no-any-return]
        finally:
            del self._waiting[number]
            done.cancel()
            await attempt.abandon()

    def _answer(self, request: _Request, attempt: _Attempt) -> None:
        """Answer a worker in the context of its rollout."""
        attempt.reply(request).add_done_callback(
            lambda ended: ended.cancelled() or self._mailbox.answer.remote(request.number, ended.result())
        )

    async def _distribute(self) -> None:
        """Hand the calls in the mailbox to their rollouts."""
        while True:
            for request in await self._mailbox.take.remote():
                queue = self._waiting.get(request.rollout)
                if queue is not None:
                    queue.put_nowait(request)

    async def close(self) -> None:
        """End the workers, and the cluster if this process started it."""
        tasks = [task for task in (self._pump, *self._lost.values()) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for actor in (*self._workers, self._mailbox):
            self._ray.kill(actor)
        if self._started:
            self._ray.shutdown()


class _Attempt:
    """The client for one attempt of a rollout; what an earlier attempt was answered is answered alike."""

    def __init__(self, client: Client, memory: _Memory) -> None:
        self._client = client
        self._memory = memory
        self._used: Counter[bytes] = Counter()
        self._accounts: dict[int, tuple[AbstractAsyncContextManager[Outside], Outside]] = {}

    def reply(self, request: _Request) -> asyncio.Task[Any]:
        """Return a task with the reply or its exception."""
        if request.method != "complete":
            return asyncio.create_task(_caught(getattr(self, f"_{request.method}")(*request.arguments)))
        key = pickle.dumps(request.arguments)
        earlier = self._memory.setdefault(key, [])
        if self._used[key] == len(earlier):
            earlier.append(asyncio.create_task(_caught(self._complete(*request.arguments))))
        self._used[key] += 1
        return earlier[self._used[key] - 1]

    async def abandon(self) -> None:
        """Release what is still reserved for the attempt: its worker has died."""
        for account, _ in self._accounts.values():
            with suppress(asyncio.CancelledError):
                await account.__aexit__(asyncio.CancelledError, asyncio.CancelledError(), None)
        self._accounts.clear()

    async def _complete(self, call: Call) -> Completion:
        completion = await self._client.complete(call)
        current_scope().completions.append(completion)
        return completion

    async def _address(self, role: str) -> tuple[str | None, str | None]:
        return await self._client.address(role)

    async def _open(self, role: str, stage: str, most: Spending, fix: str) -> int:
        account = self._client.outside(role, stage, most, fix=fix)
        number = len(self._accounts)
        self._accounts[number] = (account, await account.__aenter__())
        return number

    async def _close(self, number: int, report: Outside) -> None:
        account, own = self._accounts.pop(number)
        own.usages, own.cost = report.usages, report.cost
        await account.__aexit__(None, None, None)


async def _caught(work: Coroutine[Any, Any, Any]) -> Any:
    """Return the result of work, or its exception."""
    try:
        return await work
    except Exception as raised:
        return _portable(raised)


def _without_key(role: Role) -> Role:
    """Return a role as a worker needs it to describe its model; a key is sent only to a rollout that asks for it."""
    unused: Any = None
    return Role(role.plan, unused, replace(role.endpoint, key=None), role.price, unused)


def _here(ray: Any) -> dict[str, Any]:
    """Place an actor on this process's machine, so that no other one can take it along when it dies."""
    strategies: Any = importlib.import_module("ray.util.scheduling_strategies")
    node = ray.get_runtime_context().get_node_id()
    return {"scheduling_strategy": strategies.NodeAffinitySchedulingStrategy(node_id=node, soft=False)}


def _portable(raised: Exception) -> Exception:
    """Return an exception that can be sent to another process."""
    try:
        pickle.loads(pickle.dumps(raised))
    except Exception:
        return SkillcError(str(raised))
    return raised


# ---- on the cluster --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Request:
    """What a rollout asks of the client, on its way to the process that has it."""

    number: int
    rollout: int
    method: str
    arguments: tuple[Any, ...]


class _Mailbox:
    """Carries calls from the workers, and replies back."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._sent: asyncio.Queue[_Request] = asyncio.Queue()
        self._open: dict[int, asyncio.Future[Any]] = {}

    async def ask(self, rollout: int, method: str, arguments: tuple[Any, ...]) -> Any:
        """Return the reply, or its exception."""
        number = next(self._numbers)
        future = self._open[number] = asyncio.get_running_loop().create_future()
        self._sent.put_nowait(_Request(number, rollout, method, arguments))
        try:
            return await future
        finally:
            del self._open[number]

    async def take(self) -> list[_Request]:
        """Return the calls since the last time, at least one."""
        requests = [await self._sent.get()]
        while not self._sent.empty():
            requests.append(self._sent.get_nowait())
        return requests

    async def answer(self, number: int, reply: Any) -> None:
        """Answer a call, if its worker still waits for it."""
        future = self._open.get(number)
        if future is not None and not future.done():
            future.set_result(reply)


_ROLLOUT: contextvars.ContextVar[int] = contextvars.ContextVar("skillc_cluster_rollout")


class _RemoteClient:
    """Stands for the client in a worker: its calls are made by the process that runs the compile."""

    def __init__(self, roles: Mapping[str, Role], mailbox: Any) -> None:
        self.roles = roles
        self._mailbox = mailbox

    async def complete(self, call: Call) -> Completion:
        """As `Client.complete`."""
        return cast(Completion, await self._ask("complete", call))

    def complete_sync(self, call: Call) -> Completion:
        """As `Client.complete_sync`."""
        ray: Any = importlib.import_module("ray")
        return cast(Completion, _result(ray.get(self._mailbox.ask.remote(_ROLLOUT.get(), "complete", (call,)))))

    async def address(self, role: str) -> tuple[str | None, str | None]:
        """As `Client.address`."""
        return cast(tuple[str | None, str | None], await self._ask("address", role))

    @asynccontextmanager
    async def outside(self, role: str, stage: str, most: Spending, *, fix: str) -> AsyncIterator[Outside]:
        """As `Client.outside`."""
        number = await self._ask("open", role, stage, most, fix)
        report = Outside()
        try:
            yield report
        except Exception:
            await self._ask("close", number, report)
            raise
        await self._ask("close", number, report)

    def ticket(self) -> AbstractContextManager[None]:
        """Do nothing: the rollout has its ticket where the call is made."""
        return nullcontext()

    async def _ask(self, method: str, *arguments: Any) -> Any:
        return _result(await self._mailbox.ask.remote(_ROLLOUT.get(), method, arguments))


def _result(reply: Any) -> Any:
    if isinstance(reply, BaseException):
        raise reply
    return reply


class _Worker:
    """One process with the kind of rollout of a plan."""

    def __init__(self, plan: Plan, roles: Mapping[str, Role], role: str, mailbox: str, company: Company) -> None:
        ray: Any = importlib.import_module("ray")
        client: Any = _RemoteClient(roles, ray.get_actor(mailbox))
        notes: Any = lambda message: None  # noqa: E731
        self._kind = find_kind(plan)(Site(plan, client, role, Path.cwd(), notes, company))

    async def slots(self) -> int | None:
        """Return how many rollouts it can run at once; None for any number."""
        return self._kind.slots

    async def run(self, number: int, stage: str, skill: Skill | None, example: Example, sample: int) -> Any:
        """Return the trajectory of a rollout, or its exception."""
        _ROLLOUT.set(number)
        with scope(stage, sample):
            try:
                return await self._kind.run(skill, example, sample=sample)
            except Exception as raised:
                return _portable(raised)
