"""The base of all agents that are command lines: sandbox, limits, account, and failures told from answers."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from pydantic import JsonValue

from skillc.data.attachments import attachments, fill_workspace
from skillc.dataclass import dataclass
from skillc.document.skill import Document
from skillc.errors import SkillcError
from skillc.json_values import as_text
from skillc.language.commands import fill_placeholders, placeholders
from skillc.language.loop import BudgetPlan
from skillc.models.calls import well_formed
from skillc.models.client import Outside
from skillc.models.endpoint import NO_KEY
from skillc.models.failures import scrub
from skillc.models.ledger import NANO_PER_DOLLAR, Spending
from skillc.models.prices import Price
from skillc.models.roles import Role
from skillc.models.scope import current_scope
from skillc.outcomes import Example
from skillc.plan.schema import AnswerPlan, Plan
from skillc.processes.command import CommandResult, describe_status, temporary_folder
from skillc.redaction import Redactor, Secret
from skillc.sandbox.container import ENGINES
from skillc.sandbox.hosts import loopback_ports
from skillc.sandbox.policy import MAPPED, DeclaredSandbox, Limits, declared_sandbox
from skillc.sandbox.run import choose
from skillc.sandbox.run import run as run_in_sandbox
from skillc.tasks.agents.installed import declared_reads, mounts_of, program_files, program_of, search_path
from skillc.tasks.agents.report import Report, Unreadable
from skillc.tasks.agents.workspace import Workspace, digest_of
from skillc.tasks.answers import question, read_answer
from skillc.tasks.kind import RolloutFailed, RolloutKind, Site, Skill
from skillc.text import listed
from skillc.trajectories.trajectory import Message, Trajectory, redacted

_QUOTED = 300
# The first port at which a process without rights can listen.
_FIRST_PORT = 1024
# Bytes of one argument that Linux accepts.
_LONGEST = 128 * 1024 - 1
QUESTION = "{question}"
_DEFAULTS = Limits(time=600, memory=4 * 10**9, processes=256, disk=10**9, output=64 * 2**20)
KEY = "SKILLC_MODEL_KEY"
"""The variable in which an agent finds the key of its model."""

_NO_KEY = "none"
_ANTHROPIC = "anthropic"
# All but the last speak the protocol of OpenAI.
_ADDRESSES = {
    "openai": "https://api.openai.com/v1",
    "openrouter": "https://openrouter.ai/api/v1",
    "deepseek": "https://api.deepseek.com/v1",
    "groq": "https://api.groq.com/openai/v1",
    "mistral": "https://api.mistral.ai/v1",
    "xai": "https://api.x.ai/v1",
    "together_ai": "https://api.together.xyz/v1",
    "cerebras": "https://api.cerebras.ai/v1",
    "fireworks_ai": "https://api.fireworks.ai/inference/v1",
    _ANTHROPIC: "https://api.anthropic.com",
}


@dataclass(frozen=True, slots=True)
class AgentModel:
    """The model that an agent calls.

    Attributes:
        name: without its provider.
        url: empty if the program declares a model without an address, such as `rulebook/v1`.
        key: never shown.
        protocol: `openai` or `anthropic`.
    """

    name: str
    url: str
    key: str = field(repr=False)
    protocol: str = "openai"

    @property
    def host(self) -> str | None:
        """Its address as `host:port`, None without one."""
        parts = urlsplit(self.url)
        return f"{parts.hostname}:{parts.port or (80 if parts.scheme == 'http' else 443)}" if parts.hostname else None


@dataclass(frozen=True, slots=True)
class Job:
    """One rollout, as the class of an agent turns it into a command line.

    Attributes:
        prompt: what the agent is told.
        skill: the one that the agent reads at once; None if it opens it by itself, or has none.
        installed: all skills that it may open, the former included.
    """

    prompt: str
    skill: Skill | None
    installed: tuple[Document, ...]
    model: AgentModel
    workspace: Workspace

    def install(self, folder: str) -> str:
        """Install the skills below a folder of the home; return the path of the one that is read at once, or ""."""
        paths = {document.name: self.workspace.install(document, folder) for document in self.installed}
        return paths[self.skill.document.name] if self.skill is not None else ""


@dataclass(frozen=True, slots=True)
class Launch:
    """A command line without its program, its variables, and its standard input."""

    arguments: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes | None = None


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """What a program declares of its agent; the table of kinds describes each setting.

    Attributes:
        tokens: the most of one rollout; None if it declares none.
        cost: nano-dollars, as `tokens`.
        environment: names of variables.
    """

    sandbox: DeclaredSandbox
    prompt: str = QUESTION
    files: str | None = None
    tokens: int | None = None
    cost: int | None = None
    hosts: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    answer: AnswerPlan = field(default=AnswerPlan())

    @classmethod
    def of(cls, settings: Mapping[str, JsonValue]) -> AgentSettings:
        """Read the settings of a plan's rollout."""
        given: Mapping[str, Any] = settings
        cost, answer = given.get("cost"), given.get("answer")
        return cls(
            sandbox=declared_sandbox(
                given.get("sandbox"), replace(_DEFAULTS, time=float(given.get("time", _DEFAULTS.time)))
            ),
            prompt=given.get("prompt", QUESTION),
            files=given.get("files"),
            tokens=given.get("tokens"),
            cost=None if cost is None else int(Fraction(str(cost)) * NANO_PER_DOLLAR),
            hosts=tuple(given.get("hosts", ())),
            reads=tuple(given.get("reads", ())),
            environment=tuple(each["arguments"][0] for each in given.get("environment", ())),
            answer=AnswerPlan.of(answer["function"], answer["arguments"][0])
            if isinstance(answer, dict)
            else AnswerPlan(),
        )

    def reservation(self, budget: BudgetPlan, price: Price | None) -> Spending:
        """Return the most that one rollout may spend; without a declared maximum only the call itself.

        Raises:
            SkillcError: the budget caps tokens or cost, and no maximum is declared that it could reserve.
        """
        for cap, declared in (("tokens", self.tokens), ("cost", self.cost if self.tokens is None else self.tokens)):
            if getattr(budget, cap) is not None and declared is None:
                raise SkillcError(
                    f"the budget caps {cap}, and no rollout of the agent has a declared maximum",
                    hint="add `tokens = 200_000 tokens` to the settings of `rollout`: the most that one may use",
                )
        if self.tokens is None:
            return Spending(1, 0, self.cost or 0)
        dearest = max(price.most(self.tokens, 0), price.most(0, self.tokens)) if price is not None else 0
        return Spending(1, self.tokens, dearest if self.cost is None else self.cost)


class AgentRollout(RolloutKind):
    """Runs an agent's command line for each rollout, in a fresh workspace and home.

    An agent that answers wrongly is a score. One that cannot be started, hangs, is killed, reports an error of its
    model or prints what cannot be read is unmeasured, whatever its exit status.

    Attributes:
        protocols: of the models that it can call, where the program names no address.
        needs_address: whether the agent is told its model's address.
    """

    opens = True
    folders = True
    protocols: ClassVar[frozenset[str]] = frozenset({"openai"})
    needs_address: ClassVar[bool] = True

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self.settings = AgentSettings.of(site.settings)
        self.what = f"`rollout = {site.plan.task.rollout.kind}`"
        self.declared = self.settings.sandbox
        role = self._role
        called = self.needs_address or role.endpoint.url is not None or role.endpoint.launch is not None
        self.sandbox = choose(self.declared.kind, self.declared.image, hosts=called or bool(self.settings.hosts))
        self.program = program_of(site.plan, site.root, os.environ)
        if self.sandbox == "unsafe":
            site.note(f"{self.what} runs without a sandbox: it can read and change all of your files")
        self._variables = self._declared_variables()
        declared = declared_reads(self.settings.reads, site.root, self.what)
        self._reads = [*program_files(site.plan, self.program), *self.further_reads(), *declared]
        self._most = self.settings.reservation(site.plan.budget, role.price)
        if self.needs_address and role.endpoint.launch is None:
            self._address(role.endpoint.url)
        self._require_ports(role.endpoint.url)
        self.slots = role.plan.pacing.concurrency or min(16, max(2, os.cpu_count() or 1))

    @classmethod
    def source(cls, plan: Plan, root: Path) -> str:
        """As `RolloutKind.source`: the digest of the files that are copied into workspaces."""
        files = AgentSettings.of(plan.task.rollout.settings).files
        fixed = _fixed_part(root, files) if files is not None else None
        return digest_of(fixed) if fixed is not None and fixed.exists() else ""

    @abstractmethod
    def launch(self, job: Job) -> Launch:
        """Write the agent's configuration into the home of a job, install its skill, and return the command line."""

    @abstractmethod
    def report(self, result: CommandResult, job: Job) -> Report:
        """Read what the agent reports; raise `Unreadable` if it is not the documented form."""

    def further_reads(self) -> list[Path]:
        """Return further files and folders that the command needs."""
        return []

    async def run(self, skill: Skill | None, example: Example, *, sample: int) -> Trajectory:
        """As `RolloutKind.run`."""
        url, key = await self.site.client.address(self.site.role)
        model = AgentModel(
            self._role.plan.bare_name,
            self._address(url) if self.needs_address else url or "",
            key if key is not None and key != NO_KEY else _NO_KEY,
            self._protocol,
        )
        fix = "raise `tokens` or `cost` in the settings of `rollout`"
        outside = self.site.client.outside(self.site.role, current_scope().stage, self._most, fix=fix)
        async with outside as account, temporary_folder() as place:
            trajectory = await self._run_in(place, skill, example, model, account)
        usages = account.usages or ()
        costs = [self._role.cost(usage) for usage in usages] if self._role.price is not None else [account.cost]
        return replace(
            trajectory,
            tokens=sum(usage.total for usage in usages),
            cost=None if account.usages is None or None in costs else sum(cost or 0 for cost in costs),
        )

    async def _run_in(
        self, place: Path, skill: Skill | None, example: Example, model: AgentModel, account: Outside
    ) -> Trajectory:
        # Until it has started it has used nothing, and what it does not report afterwards is unknown.
        account.usages = ()
        attached = attachments(self.site.plan, example, self.site.root)
        try:
            workspace = Workspace.make(place, self.sandbox, self._files_of(example))
            fill_workspace(attached, workspace.folder)
        except OSError as problem:
            raise SkillcError(f"{self.what}: the files of example `{example.id}` cannot be copied: {problem}") from None
        read = skill if self.site.read_at_once(skill) is not None else None
        installed = (*([read.document] if read is not None else []), *self.site.offered(skill))
        job = Job(self._prompt(attached.example), read, installed, model, workspace)
        launch = self.launch(job)
        before = workspace.digests()
        hosts = [*([model.host] if model.host else []), *self.settings.hosts]
        policy = self.declared.policy(workspace.folder, (*workspace.mounts, *mounts_of(self._reads)), hosts)
        try:
            result = await run_in_sandbox(
                self.sandbox,
                policy,
                [self.program, *launch.arguments],
                environment=self._environment(workspace, launch),
                stdin=launch.stdin,
            )
        except OSError as problem:
            raise RolloutFailed("agent", f"it cannot be started: {problem.strerror or problem}") from None
        except BaseException:
            account.usages = None
            raise
        account.usages = None
        report = self._read(result, job)
        account.usages, account.cost = report.usages, report.cost
        if report.failure is not None:
            raise self._failed(report.failure, result, job)
        steps = report.steps
        if not steps or steps[-1] != Message(report.reply):
            steps = (*steps, Message(report.reply))
        answer, unread = read_answer(self.site.plan.task, report.reply)
        changed = workspace.changes(before)
        return redacted(Trajectory((*steps, *changed), answer, unread, turns=report.turns), self._hide(job.model))

    def _read(self, result: CommandResult, job: Job) -> Report:
        """Return the report of an agent that finished; exit status 0 alone proves nothing."""
        if result.why != "ended":
            raise self._failed(self.declared.limits.exceeded(result.why), result, job)
        try:
            report = self.report(result, job)
        except Unreadable as problem:
            why = f"it {describe_status(result.status)}" if result.status else str(problem)
            raise self._failed(why, result, job) from None
        if result.status < 0 or (report.failure is None and result.status):
            return replace(report, failure=f"it {describe_status(result.status)}")
        if report.failure is None and not report.reply.strip():
            return replace(report, failure="it ended without an answer")
        return report

    def _failed(self, why: str, result: CommandResult, job: Job) -> RolloutFailed:
        # Redacted before it is cut, because a part of a secret is not found.
        hide = self._hide(job.model)
        said = " ".join(hide.message(result.stderr.decode(errors="replace")).split())
        quoted = f": {'…' if len(said) > _QUOTED else ''}{said[-_QUOTED:]}" if said else ""
        return RolloutFailed("agent", scrub(f"{why}{quoted}", hide))

    def _hide(self, model: AgentModel) -> Redactor:
        """Return what redacts the secrets of the program, and the key that skillc made for a server."""
        return self.site.client.hide.having(Secret(KEY, model.key if model.key != _NO_KEY else ""))

    def _prompt(self, example: Example) -> str:
        """The declared prompt with the question and the inputs of an example."""
        task = self.site.plan.task

        def value(name: str) -> str:
            return question(task, example) if name == "question" else as_text(example.inputs.get(name, ""))

        return well_formed(fill_placeholders(self.settings.prompt, value))

    def _files_of(self, example: Example) -> Path | None:
        if self.settings.files is None:
            return None
        known = {**example.fields, **example.inputs, "id": example.id}
        written = fill_placeholders(self.settings.files, lambda name: as_text(known.get(name, "")))
        path = self.site.root / Path(written).expanduser()
        if not path.resolve().is_relative_to(self.site.root.resolve()):
            raise SkillcError(f"{self.what}: `files` of example `{example.id}` is outside the program's folder")
        if not path.exists():
            raise SkillcError(
                f"{self.what}: `{written}`, the files of example `{example.id}`, does not exist",
                hint="create it, or change `files`",
            )
        return path

    def _environment(self, workspace: Workspace, launch: Launch) -> dict[str, str]:
        return {
            # A container has the `PATH` of its image.
            **({} if self.sandbox in ENGINES else {"PATH": search_path(self.program)}),
            "HOME": workspace.seen_home,
            "USER": "agent",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "NO_COLOR": "1",
            "GIT_TERMINAL_PROMPT": "0",
            **launch.environment,
            **self._variables,
        }

    @property
    def _role(self) -> Role:
        return self.site.client.roles[self.site.role]

    @property
    def _protocol(self) -> str:
        return _ANTHROPIC if self._role.plan.provider == _ANTHROPIC else "openai"

    # ---- checked before the first rollout ----

    def _address(self, url: str | None) -> str:
        role = self._role.plan
        found = url or (_ADDRESSES.get(role.provider) if self._protocol in self.protocols else None)
        if found is None:
            raise SkillcError(
                f"{self.what} cannot call `{role.model}` (model `{role.role}`): it has no address that it knows",
                hint=f"declare one that speaks the protocol of {listed(sorted(self.protocols), 'or')}: "
                '`base_url = "http://localhost:8000/v1"`',
            )
        return found if "://" in found else f"http://{found}"

    def _declared_variables(self) -> dict[str, str]:
        missing = [name for name in self.settings.environment if name not in os.environ]
        if missing:
            names = listed(missing, "and")
            raise SkillcError(f"{self.what} needs {names}, not set", hint=f"export {missing[0]}=...")
        return {name: os.environ[name] for name in self.settings.environment}

    def _require_ports(self, url: str | None) -> None:
        hosts = [*([AgentModel("", url, "").host or ""] if url else []), *self.settings.hosts]
        low = [port for port in loopback_ports(hosts) if port < _FIRST_PORT]
        if low and self.sandbox in MAPPED:
            raise SkillcError(
                f"{self.what}: no program in the sandbox `{self.sandbox}` can reach port {low[0]} of this machine",
                hint=f"serve it at a port from {_FIRST_PORT:,}, or declare another sandbox",
            )


def argument(text: str) -> str:
    """Return a prompt as an argument that is not read as an option; raise `SkillcError` if the system refuses it."""
    if "\0" in text or len(text.encode()) > _LONGEST:
        raise SkillcError(
            f"a prompt of {len(text.encode()):,} bytes cannot be an argument of an agent, at most {_LONGEST:,} can",
            hint='pass large inputs as files: `files = "cases/{id}"`',
        )
    return f" {text}" if text.startswith("-") else text


def _fixed_part(root: Path, files: str) -> Path | None:
    """The folder that contains the files of all examples: the path up to its first placeholder."""
    parts = []
    for part in Path(files).parts:
        if any(True for _ in placeholders(part)):
            break
        parts.append(part)
    return root.joinpath(*parts) if parts else None
