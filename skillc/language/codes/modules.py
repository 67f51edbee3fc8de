"""Codes SK1xx: modules and imports."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from skillc.language.codes.code import Code
from skillc.language.codes.samples import program

_GATES = program(use="use std.gates", gate="gates.strict(correct)")


_USE = 'use "./lab.skill" as lab'
_ADOPT = "gate most(m: metric) = candidate.m >= incumbent.m"
_LAB = program(use=_USE, gate="lab.most(correct)")


def _code(
    number: int,
    title: str,
    explanation: str,
    bad: str,
    good: str,
    *,
    files: Mapping[str, str] = MappingProxyType({}),
    mended: Mapping[str, str] = MappingProxyType({}),
) -> Code:
    return Code(f"SK{number}", "modules", title, explanation, bad, good, files, mended)


CODES: tuple[Code, ...] = (
    _code(
        101,
        "a file that can't be read",
        '`use "./lab.skill" as lab` names a file beside the program, relative to the file that says it. There is none, '
        "or it holds no text. What goes wrong with it stands in the message.",
        program(use='use "./no_such_file.skill" as lab'),
        _GATES,
    ),
    _code(
        102,
        "a path that leaves the program's folder",
        "A program reads nothing outside of its own folder, so that whoever gets the folder gets all of it, and a file "
        "from elsewhere can't make it read yours. Copy the file in.",
        program(use='use "../lab.skill" as lab'),
        _GATES,
    ),
    _code(
        103,
        "files that use each other in a circle",
        "A file may not use itself, not even by way of another one. Move what both need into a third file.",
        _LAB,
        _LAB,
        files={
            "lab.skill": f'language 1\nuse "./more.skill" as more\n{_ADOPT}\n',
            "more.skill": f"language 1\n{_USE}\n",
        },
        mended={"more.skill": "language 1\n"},
    ),
    _code(
        104,
        "an unknown module of the standard library",
        "`use std.gates` brings a module of the standard library; `skillc std` lists them.",
        program(use="use std.gatez"),
        _GATES,
    ),
    _code(
        105,
        "a name that the module does not have",
        "The module has no declaration of this name, or, for a markdown skill, no heading. The hint names the nearest.",
        program(use="use std.gates", gate="gates.strikt(correct)"),
        _GATES,
    ),
    _code(
        106,
        "a used file with errors in its syntax",
        "Nothing of a file is used while parts of it can't be read, for what was meant may stand in those parts. The "
        "second place of the message is the first of them.",
        _LAB,
        _LAB,
        files={"lab.skill": "language 1\ngate most(m: metric) = candidate.m ≥ incumbent.m\n"},
        mended={"lab.skill": f"language 1\n{_ADOPT}\n"},
    ),
    _code(
        107,
        "neither a program nor a skill",
        "A program is used by a name that ends in `.skill`, the sections of a markdown skill by one that ends in "
        "`.md`.",
        program(use='use "./notes.txt" as notes'),
        _GATES,
    ),
    _code(
        108,
        "a name for two modules",
        "Members are written `module.name`, so each module needs a name of its own, and none of the names that stand "
        "for skills in a gate: `candidate`, `incumbent`, `best`, `initial`.",
        program(use="use std.gates\nuse std.text as gates"),
        program(use="use std.gates\nuse std.text"),
    ),
    _code(
        109,
        "a module that nothing uses",
        "A note: the line can go.",
        program(use="use std.gates"),
        _GATES,
    ),
    _code(
        110,
        "a file without a name",
        'A module of `std` is called by its last word; a file needs a name: `use "./lab.skill" as lab`.',
        program(use='use "./lab.skill"'),
        _GATES,
    ),
    _code(
        112,
        "a metric or gate of another file",
        "A metric reads the fields of its own file, and a gate its metrics. Only what has parameters can be taken "
        "over, for there the program says what they stand for.",
        program(use=_USE, gate="lab.most"),
        _LAB,
        files={"lab.skill": "language 1\nmetric close = f1(answer)\ngate most = candidate.close >= incumbent.close\n"},
        mended={"lab.skill": f"language 1\n{_ADOPT}\n"},
    ),
)
