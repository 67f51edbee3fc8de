"""Codes SK1xx: modules and imports."""

from __future__ import annotations

from skillc.diagnostics.codes.code import Code, program

_GATES = program(use="use std.gates", gate="gates.strict(correct)")
_USE = 'use "./lab.skill" as lab'
_ADOPT = "gate most(m: metric) = candidate.m >= incumbent.m"
_LAB = program(use=_USE, gate="lab.most(correct)")
_UNSHOWN = " No example can show it, because it needs an installed package."

CODES: tuple[Code, ...] = (
    Code(
        101,
        "unreadable module file",
        '`use "./lab.skill" as lab` names a file relative to the file that contains the statement. The file does not '
        "exist, is not text, or its path is not portable: use `/` between the parts, and the exact case of each name.",
        program(use='use "./no_such_file.skill" as lab'),
        _GATES,
    ),
    Code(
        102,
        "path outside the program's folder",
        "A program reads only files below its own folder, so that the folder is complete and a downloaded program "
        "can't read your files. This excludes `..`, absolute paths, drives, `~` and links that lead out. Copy the file "
        "into the folder, or make it a package: a distribution with an entry point in `skillc.modules`.",
        program(use='use "../lab.skill" as lab'),
        _GATES,
    ),
    Code(
        103,
        "import cycle",
        "A file may not use itself, directly or through other files. Move the shared declarations into a third file.",
        _LAB,
        _LAB,
        files={
            "lab.skill": f'language 1\nuse "./more.skill" as more\n{_ADOPT}\n',
            "more.skill": f"language 1\n{_USE}\n",
        },
        fixed_files={"more.skill": "language 1\n"},
    ),
    Code(
        104,
        "unknown module of the standard library",
        "`use std.gates` imports a module of the standard library. `skillc std` lists the modules.",
        program(use="use std.gatez"),
        _GATES,
    ),
    Code(
        105,
        "unknown member of a module",
        "The module has no declaration with this name; a markdown skill has no heading with it. The hint names the "
        "module that declares it, or the closest name.",
        program(use="use std.gates", gate="gates.strikt(correct)"),
        _GATES,
    ),
    Code(
        106,
        "module with syntax errors",
        "A module is not used while parts of it can't be parsed, because those parts may declare what the program "
        "needs. The second location of the message is the module's first syntax error.",
        _LAB,
        _LAB,
        files={"lab.skill": "language 1\ngate most(m: metric) = candidate.m ≥ incumbent.m\n"},
        fixed_files={"lab.skill": f"language 1\n{_ADOPT}\n"},
    ),
    Code(
        107,
        "unsupported file type",
        "`use` imports programs (`.skill`), and the sections of markdown skills (`.md`).",
        program(use='use "./notes.txt" as notes'),
        _GATES,
    ),
    Code(
        108,
        "module name already taken",
        "Members are written `module.name`, so each module needs a unique name. `candidate`, `incumbent`, `best` and "
        "`initial` are skills in gates, and `std` is the standard library.",
        program(use="use std.gates\nuse std.text as gates"),
        program(use="use std.gates\nuse std.text"),
    ),
    Code(
        109,
        "unused module",
        "A note: remove the `use`.",
        program(use="use std.gates"),
        _GATES,
    ),
    Code(
        110,
        "file imported without a name",
        'A module of `std` is named after its last word. A file needs an explicit name: `use "./lab.skill" as lab`.',
        program(use='use "./lab.skill"'),
        _GATES,
    ),
    Code(
        112,
        "imported metric or gate without parameters",
        "A metric reads the fields of the file that declares it, and a gate the metrics of that file. Only one with "
        "parameters can be imported, because the program then supplies those values.",
        program(use=_USE, gate="lab.most"),
        _LAB,
        files={"lab.skill": "language 1\nmetric close = f1(answer)\ngate most = candidate.close >= incumbent.close\n"},
        fixed_files={"lab.skill": f"language 1\n{_ADOPT}\n"},
    ),
    Code(
        111,
        "package not installed",
        "`use acme.gates` imports a module of an installed package: a distribution that declares `acme` in the "
        "entry-point group `skillc.modules`. `skillc std` lists them. A file is imported by its path, in quotes.",
        program(use="use no_such_package.gates"),
        _GATES,
    ),
    Code(
        113,
        "unknown module of a package",
        "`use acme.gates` imports `gates.skill` from the package's folder, and `use acme.judging.strict` imports "
        "`judging/strict.skill`. The package has no such file; `skillc std` lists its modules." + _UNSHOWN,
    ),
    Code(
        114,
        "package name claimed by two distributions",
        "Two installed distributions declare a package with this name, which is ambiguous. Uninstall one of them."
        + _UNSHOWN,
    ),
    Code(
        115,
        "package named `std`",
        "`std` is always the standard library. The maintainer must rename the package." + _UNSHOWN,
    ),
    Code(
        116,
        "package without a folder",
        "A distribution declares the package, but its folder is missing, is a single file, is in an archive, or is in "
        "several places. Modules are read from one folder, without importing any code." + _UNSHOWN,
    ),
    Code(
        117,
        "invalid entry point",
        'An entry point of the group `skillc.modules` names a top-level package: `acme = "acme_skills"`. A nested '
        "package can't be located without importing its parent, and checking runs no foreign code." + _UNSHOWN,
    ),
    Code(
        118,
        "module name used for another declaration",
        "A note. Before a `.` the name is always the module, so the program is correct but easy to misread. Fields are "
        "exempt: `input text: text` beside `use std.text` is clear.",
        program("metric gates = f1(answer)", use="use std.gates", gate="gates.strict(gates)"),
        program("metric close = f1(answer)", use="use std.gates", gate="gates.strict(close)"),
    ),
    Code(
        119,
        "file that shadows a package's code",
        "Python searches the program's folder first, so a file or folder with the package's name there would be "
        "imported instead when a metric of the package runs. Rename it." + _UNSHOWN,
    ),
    Code(
        120,
        "function outside its package",
        '`python("module:function")` in a file of a package names a function of that package, by its import name. '
        "Functions beside the program belong to the program. Import another package to use its functions." + _UNSHOWN,
    ),
    Code(
        121,
        "import chain too long",
        "Each file imports the next. Import the last one directly. It takes over fifty files, so there is no example.",
    ),
)
