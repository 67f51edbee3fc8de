"""Sections that may be trained and never are, and gates for updates that never come."""

from __future__ import annotations

from collections.abc import Sequence

from skillc.diagnostics.diagnostic import Label, Report
from skillc.language.checked import CheckedGate, Entity, Setting, Word
from skillc.language.facts import amount, epoch_steps

_LEAST_RULE = 2
"""Tokens of the shortest rule: its bullet, and a word."""


def note_untrained(report: Report, entities: Sequence[Entity], gates: Sequence[CheckedGate]) -> None:
    """Reports what a run can't write to, as far as the text says."""
    by_kind = {entity.kind: entity for entity in entities if entity.name is None}
    sections = [child for skill in entities if skill.kind == "skill" for child in skill.children]
    for section in sections:
        if "trainable" in section.words and section.kind == "section":
            _full(report, section)
    for skill in entities:
        _about(report, skill)
    slow = [section for section in sections if "slow" in section.words]
    hindered = _hindrance(by_kind)
    if hindered is not None:
        why, setting, hint = hindered
        for section in slow:
            label = Label(setting.source, setting.span, "this keeps it from being written")
            message = f"the slow section `{section.name}` is never written: {why}"
            report.note("SK413", section.source, section.span, message, hint=hint, secondary=(label,))
    for gate in gates:
        if gate.for_ == "slow" and not slow:
            hint = f"write `gate {gate.name} = ...` for the steps, or add `slow section guidance`"
            message = f"the gate `{gate.name}` decides nothing: the skill has no slow section"
            report.note("SK414", gate.source, gate.span, message, hint=hint)
        elif gate.for_ == "slow" and hindered is not None:
            message = f"the gate `{gate.name}` decides nothing: {hindered[0]}"
            report.note("SK414", gate.source, gate.span, message, hint=hindered[2])


def _about(report: Report, skill: Entity) -> None:
    """No step of the loop writes a skill's description yet."""
    about = next((child for child in skill.children if child.kind == "about" and "trainable" in child.words), None)
    if about is None:
        return
    message = f"the `about` of `{skill.name}` stays as it is: this skillc trains sections"
    if any(child.kind == "section" and "frozen" not in child.words for child in skill.children):
        report.note("SK419", about.source, about.span, message, hint="write it as it is to be; it stays frozen")
        return
    hint = "add `trainable section rules`"
    report.warn("SK419", about.source, about.span, f"{message}, and there is none to train", hint=hint)


def _full(report: Report, section: Entity) -> None:
    from skillc.tokens import count_tokens

    limit = amount(section.settings, "limit")
    if limit is None:
        return
    setting, text = section.settings["limit"], section.value if isinstance(section.value, str) else ""
    if limit < _LEAST_RULE:
        message = f"no rule fits into `{section.name}`: a bullet and a word have {_LEAST_RULE} tokens"
        hint = "raise the limit; a rule has 10 to 40 tokens"
        report.warn("SK412", setting.source, setting.span, message, hint=hint)
    # A text of so few characters can't fill it.
    elif len(text) >= limit - _LEAST_RULE and text.strip():
        used = count_tokens(text)
        if limit - _LEAST_RULE < used <= limit:
            message = f"the text of `{section.name}` fills its limit: {used} of {int(limit)} tokens"
            hint = "a rule must go before one can come; raise the limit, or shorten the text"
            report.note("SK412", setting.source, setting.span, message, hint=hint)


def _hindrance(by_kind: dict[str, Entity]) -> tuple[str, Setting, str] | None:
    """Why slow sections are never rewritten, the setting that is to blame, and the way out."""
    optimize, budget = by_kind.get("optimize"), by_kind.get("budget")
    settings = optimize.settings if optimize is not None else {}
    method = settings.get("method")
    if method is not None and method.value != Word("skillc"):
        # Another method writes to all sections that are not frozen.
        return None
    switch = settings.get("slow_update")
    if switch is not None and switch.value is False:
        return "slow updates are off", switch, "write `slow_update = on`, or make the section frozen"
    if amount(settings, "slow_update_samples") == 0:
        why = "a slow update that compares no example asks nothing"
        return why, settings["slow_update_samples"], "write `slow_update_samples = 20`"
    needed = epoch_steps(by_kind.get("data"), optimize)
    steps = amount(budget.settings, "steps") if budget is not None else None
    if budget is not None and needed is not None and steps is not None and steps < needed:
        why = f"an epoch has {needed} steps, and the run ends after {int(steps)}"
        return why, budget.settings["steps"], f"write `steps = {needed}` or more: it is written at epoch ends"
    return None
