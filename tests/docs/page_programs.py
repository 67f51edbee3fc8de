"""Blocks of `.skill`: whole programs, and parts that are put into one."""

from __future__ import annotations

import re
from pathlib import Path

from page_blocks import Block

from skillc.diagnostics.diagnostic import Severity
from skillc.diagnostics.render import concise
from skillc.frontend import check_file
from skillc.language.checked import Checked
from skillc.syntax.formatting import format_source
from skillc.syntax.parser import parse
from skillc.syntax.source import Source

BASE = """\
language 1
use std.gates
use std.scores
use std.text
task {
  input ticket: text
  output team: "billing" | "shipping"
  output reply: text
}
skill route_tickets { about = "Route a ticket, and answer it."; trainable section rules { limit = 800 tokens } }
model target = "rulebook/v1"
model optimizer = "rulebook/v1"
data { source = "tickets.jsonl"; field customer: text; field product: text }
goal correct = exact_match(team)
optimize { batch = 40 }
budget { epochs = 4 }
gate better = candidate.correct > incumbent.correct
"""
_HEADER = re.compile(r"^language \d+", re.MULTILINE)
_WORD = re.compile(r"^(?:(?:trainable|slow|frozen) +)?(\w+)(?: +(\w+))?")
_REUSED = re.compile(r"^(?:budget|optimize) \w+ *[{=]")
_PUT_INTO = {"input": "task", "output": "task", "rollout": "task", "section": "skill", "field": "data"}
"""What stands in a block of another kind, and is shown without it."""


def check(block: Block, folder: Path) -> None:
    """Checks a block as a reader would. One of class `wrong` has to have a mistake, any other may have none.

    Raises:
        AssertionError: it has a mistake, or none.
    """
    text = block.text if _HEADER.search(block.text) else completed(block.text)
    name = block.title if block.title is not None and text == block.text else "block.skill"
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    found = mistakes(check_file(path))
    if "wrong" in block.classes:
        assert found, "nothing is wrong with this program"
    else:
        assert not found, "\n".join(found)


def canonical(text: str) -> str:
    """A program, or a part of one, as `skillc fmt` lays it out; as it is where its syntax is wrong."""
    made = format_source(Source("block.skill", text)).text
    return text if made is None else made


def mistakes(checked: Checked) -> list[str]:
    """Errors and warnings, a line for each. The pages describe what a later version runs (SK605), too."""
    return [
        concise(each) for each in checked.diagnostics if each.severity is not Severity.NOTE and each.code != "SK605"
    ]


def completed(part: str) -> str:
    """A program that holds the part: the base program, less what the part declares anew."""
    if _REUSED.match(part):
        # It is there for another file to use, so it stands in a module.
        return f"language 1\n{part}"
    wrapped = _wrapped(part)
    parsed = parse(Source("part.skill", wrapped))
    goal = re.search(r"^goal +(\w+)", part, re.MULTILINE)
    whole = BASE.replace("correct", goal[1]) if goal else BASE
    taken = {_key(wrapped[s.span.start : s.span.end]) for s in parsed.program.statements}
    base = parse(Source("base.skill", whole)).program
    kept = [whole[s.span.start : s.span.end] for s in base.statements]
    return "\n".join([each for each in kept if _key(each) not in taken] + [wrapped]) + "\n"


def _wrapped(part: str) -> str:
    """A part of a block, in its block."""
    found = _WORD.match(part)
    kind = _PUT_INTO.get(found[1]) if found else None
    if kind == "task":
        declared = re.findall(r"^\w+ +(\w+):", part, re.MULTILINE)
        fields = {
            "ticket": "input ticket: text",
            "team": 'output team: "billing" | "shipping"',
            "reply": "output reply: text",
        }
        others = "\n".join(line for name, line in fields.items() if name not in declared)
        return f"task {{\n{others}\n{part}\n}}"
    if kind == "data":
        return f'data {{\n  source = "tickets.jsonl"; field customer: text; field product: text\n{part}\n}}'
    if kind == "skill":
        return f'skill route_tickets {{\n  about = "Route a ticket."\n  trainable section base\n{part}\n}}'
    return part


def _key(statement: str) -> str:
    """What may be there once: a goal, a task; a gate or a model of a name."""
    found = _WORD.match(statement)
    assert found is not None
    named = found[1] in ("gate", "metric", "model", "rubric", "require")
    return f"{found[1]} {found[2]}" if named else statement if found[1] == "use" else found[1]
