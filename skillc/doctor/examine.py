"""All checks, in the order in which a user would ask: installed, models, cost, disk, memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from skillc.diagnostics.diagnostic import Severity
from skillc.doctor.checks import check_disk, check_installed, check_keys, check_prices, check_spend
from skillc.doctor.machine import Machine, machine_here
from skillc.doctor.reach import Reached, Ready, prepare
from skillc.doctor.report import Finding
from skillc.doctor.servers import check_servers, check_vllm, servers_of
from skillc.errors import SkillcError
from skillc.frontend import Estimated, Planned, UnfitDataError, estimate
from skillc.models.prices import price_table
from skillc.text import in_bytes

GROUPS = ("installed", "program", "models", "cost", "disk", "memory")


@dataclass(frozen=True, slots=True)
class Patient:
    """A program to examine, with its data if that could be read."""

    planned: Planned
    estimated: Estimated | None
    findings: tuple[Finding, ...]


def without_program(folder: Path) -> list[Finding]:
    """Check what needs no program, in a folder."""
    return [*check_installed(None), check_vllm(folder), check_keys(), *_machine(machine_here())]


def read_program(planned: Planned) -> Patient:
    """Read a program with its data; whatever blocks a compile there becomes a finding."""
    findings = [
        Finding("program", "missing", "version", f"{later.what} comes with skillc {later.version}", "leave it out")
        for later in planned.checked.unsupported
    ]
    try:
        estimated = estimate(planned)
    except UnfitDataError as problem:
        findings += [Finding("program", "missing", "data", found.message, found.hint) for found in problem.diagnostics]
        return Patient(planned, None, tuple(findings))
    except SkillcError as problem:
        return Patient(planned, None, (*findings, Finding("program", "missing", "data", problem.message, problem.hint)))
    findings += [
        Finding("program", "missing", "budget", found.message, found.hint)
        for found in estimated.diagnostics
        if found.severity is Severity.ERROR
    ]
    sizes = estimated.sizes
    told = f"{sizes.train:,} examples to train on, {sizes.validation:,} to validate, {sizes.test:,} to test"
    return Patient(planned, estimated, (*findings, Finding("program", "ok", "data", told)))


def prepared(patient: Patient) -> Ready:
    """Look up the models' keys and addresses, and the question for each."""
    return prepare(patient.planned.plan, patient.planned.root)


def examined(
    patient: Patient,
    ready: Ready,
    reached: Reached,
    machine: Machine | None = None,
    environ: Mapping[str, str] = os.environ,
) -> list[Finding]:
    """Return all findings about a program, by group."""
    plan, root = patient.planned.plan, patient.planned.root
    servers = servers_of(plan)
    served = list(check_servers(servers, root, machine or machine_here(), reached.roles, environ)) if servers else []
    models = [_unless_without_weights(finding, served) for finding in (*ready.findings, *reached.findings)]
    findings = [
        *check_installed(plan),
        *patient.findings,
        *_in_order(plan.models, models),
        *check_prices(plan, price_table(plan)),
        *(check_spend(plan, patient.estimated) if patient.estimated is not None else ()),
        check_disk(plan, root / ".skillc", patient.estimated.bounds if patient.estimated is not None else None),
    ]
    return sorted([*findings, *served], key=lambda finding: GROUPS.index(finding.group))


def _unless_without_weights(finding: Finding, served: Sequence[Finding]) -> Finding:
    """Report a model that skillc would serve as missing if its weights are missing."""
    role = f"`{finding.what}`"
    lacks = any(each.group == "disk" and each.level == "missing" and role in each.what for each in served)
    if not lacks or finding.level == "missing" or "served by skillc" not in finding.detail:
        return finding
    return replace(finding, level="missing", detail=f"{finding.detail}, and its weights are missing", fix="see `disk`")


def _in_order(roles: Mapping[str, object], findings: list[Finding]) -> list[Finding]:
    names = list(roles)
    return sorted(findings, key=lambda finding: names.index(finding.what))


def _machine(machine: Machine) -> Iterator[Finding]:
    if not machine.gpus:
        yield Finding("memory", "ok", "GPU", "none that `nvidia-smi` lists; a server of skillc's own runs on the CPU")
    for number, gpu in enumerate(machine.gpus):
        yield Finding(
            "memory", "ok", f"GPU {number}", f"{gpu.name}, {in_bytes(gpu.free)} of {in_bytes(gpu.total)} free"
        )
    if machine.memory is not None:
        free, total = in_bytes(machine.memory.free), in_bytes(machine.memory.total)
        yield Finding("memory", "ok", "memory", f"{free} of {total} free")
