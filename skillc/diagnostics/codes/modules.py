"""Codes SK1xx: modules and imports."""

from __future__ import annotations

from skillc.diagnostics.codes.code import Code
from skillc.diagnostics.codes.samples import program

_GATES = program(use="use std.gates", gate="gates.strict(correct)")


_USE = 'use "./lab.skill" as lab'
_ADOPT = "gate most(m: metric) = candidate.m >= incumbent.m"
_LAB = program(use=_USE, gate="lab.most(correct)")


CODES: tuple[Code, ...] = (
    Code(
        101,
        "a file that can't be read",
        '`use "./lab.skill" as lab` names a file beside the program, relative to the file that says it. There is none, '
        "or it holds no text, or the path is one that another system would read in another way: paths have `/` between "
        "their parts, and names are written as the files are called, case included. What goes wrong stands in the "
        "message.",
        program(use='use "./no_such_file.skill" as lab'),
        _GATES,
    ),
    Code(
        102,
        "a path that leaves the program's folder",
        "A program reads nothing outside of its own folder, so that whoever gets the folder gets all of it, and a file "
        "from elsewhere can't make it read yours. That holds for `..`, for absolute paths and drives, for `~`, and for "
        "links that lead out. Copy the file in, or make it a package: a distribution that declares its folder in the "
        "entry-point group `skillc.modules`.",
        program(use='use "../lab.skill" as lab'),
        _GATES,
    ),
    Code(
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
    Code(
        104,
        "an unknown module of the standard library",
        "`use std.gates` brings a module of the standard library; `skillc std` lists them.",
        program(use="use std.gatez"),
        _GATES,
    ),
    Code(
        105,
        "a name that the module does not have",
        "The module has no declaration of this name, or, for a markdown skill, no heading. The hint says where it is "
        "declared, or names the nearest.",
        program(use="use std.gates", gate="gates.strikt(correct)"),
        _GATES,
    ),
    Code(
        106,
        "a used file with errors in its syntax",
        "Nothing of a file is used while parts of it can't be read, for what was meant may stand in those parts. The "
        "second place of the message is the first of them.",
        _LAB,
        _LAB,
        files={"lab.skill": "language 1\ngate most(m: metric) = candidate.m ≥ incumbent.m\n"},
        mended={"lab.skill": f"language 1\n{_ADOPT}\n"},
    ),
    Code(
        107,
        "neither a program nor a skill",
        "A program is used by a name that ends in `.skill`, the sections of a markdown skill by one that ends in "
        "`.md`.",
        program(use='use "./notes.txt" as notes'),
        _GATES,
    ),
    Code(
        108,
        "a name for two modules",
        "Members are written `module.name`, so each module needs a name of its own, and none of the names that stand "
        "for skills in a gate: `candidate`, `incumbent`, `best`, `initial`. `std` is always the standard library.",
        program(use="use std.gates\nuse std.text as gates"),
        program(use="use std.gates\nuse std.text"),
    ),
    Code(
        109,
        "a module that nothing uses",
        "A note: the line can go.",
        program(use="use std.gates"),
        _GATES,
    ),
    Code(
        110,
        "a file without a name",
        'A module of `std` is called by its last word; a file needs a name: `use "./lab.skill" as lab`.',
        program(use='use "./lab.skill"'),
        _GATES,
    ),
    Code(
        112,
        "a metric or gate of another file",
        "A metric reads the fields of its own file, and a gate its metrics. Only what has parameters can be taken "
        "over, for there the program says what they stand for.",
        program(use=_USE, gate="lab.most"),
        _LAB,
        files={"lab.skill": "language 1\nmetric close = f1(answer)\ngate most = candidate.close >= incumbent.close\n"},
        mended={"lab.skill": f"language 1\n{_ADOPT}\n"},
    ),
    Code(
        111,
        "a package that is not installed",
        "`use acme.gates` names a module of an installed package: a distribution that declares `acme` in the "
        "entry-point group `skillc.modules`. `skillc std` lists those of this environment. A file is named by its "
        "path, in quotes.",
        program(use="use no_such_package.gates"),
        _GATES,
    ),
    Code(
        113,
        "a module that the package does not carry",
        "`use acme.gates` is the file `gates.skill` in the package's folder, `use acme.judging.strict` the file "
        "`judging/strict.skill`. The package has no such file; `skillc std` lists what it has. It takes an installed "
        "package, so no program shows it.",
    ),
    Code(
        114,
        "a name that two distributions claim",
        "Each declares a package of this name, and which one is meant cannot be told. Uninstall all but one. It takes "
        "two installed packages, so no program shows it.",
    ),
    Code(
        115,
        "a package called `std`",
        "`std` is the standard library in every program, whatever is installed. The package needs another name from "
        "its maintainer. It takes an installed package, so no program shows it.",
    ),
    Code(
        116,
        "a package without a folder",
        "A distribution declares the package, and its folder is not there, is a single file, lies in an archive or in "
        "several places. Files are read from one folder, without importing anything. It takes an installed package, so "
        "no program shows it.",
    ),
    Code(
        117,
        "an entry point that names no package",
        'An entry point of the group `skillc.modules` is `acme = "acme_skills"`: a top-level package. One behind a dot '
        "can't be found without running its parent, and checking runs no code of others. It takes an installed "
        "package, so no program shows it.",
    ),
    Code(
        118,
        "a module's name that stands for something else too",
        "A note. What stands before a `.` is a module or a skill, so the program is right, and a reader may take one "
        "for the other. Fields are let pass: `input text: text` beside `use std.text` is clear.",
        program("metric gates = f1(answer)", use="use std.gates", gate="gates.strict(gates)"),
        program("metric close = f1(answer)", use="use std.gates", gate="gates.strict(close)"),
    ),
    Code(
        119,
        "a file that hides the code of a package",
        "Python looks beside the program first, so a file or folder with the name of the package would be imported in "
        "its place when a metric of the package is measured. It takes an installed package, so no program shows it.",
    ),
    Code(
        120,
        "code that is no part of the package",
        '`python("module:function")` in a file of a package names a function of the same package, by the name that it '
        "is imported under. What it would find beside the program is the program's, and another package's functions "
        "come by `use` of that package. It takes an installed package, so no program shows it.",
    ),
    Code(
        121,
        "a chain of files that is too long",
        "Each of these files uses the next, and nobody could say what the last one means to the first. The program can "
        "use it directly. It takes more than fifty files, so no program shows it.",
    ),
)
