"""Makes what editors need from the table of kinds and the grammar: `python -m editors.make`.

A test compares these files with what this makes, so a change of the language that forgets them fails.
"""

from __future__ import annotations

from pathlib import Path

from editors.textmate import as_file, textmate
from skillc.language.kinds import KINDS, Kind

FOLDER = Path(__file__).resolve().parent / "vscode"


def files() -> dict[str, str]:
    """The texts of the files that are made, by their path in the extension's folder."""
    return {"syntaxes/skill.tmLanguage.json": as_file(textmate()), "snippets/skill.json": as_file(snippets())}


def snippets() -> dict[str, object]:
    """One snippet for each kind of statement, and one for a whole program."""
    found: dict[str, object] = {
        "program": {"prefix": "program", "description": "a whole program", "body": _PROGRAM.splitlines()},
        "use std": {"prefix": "use", "description": "a module of the standard library", "body": ["use std.${1:gates}"]},
        "use file": {
            "prefix": "usefile",
            "description": "another program, or a markdown skill",
            "body": ['use "./${1:lab.skill}" as ${2:lab}'],
        },
    }
    for kind in KINDS.values():
        found[kind.word] = {"prefix": kind.word, "description": kind.about, "body": _body(kind)}
    return found


def _body(kind: Kind) -> list[str]:
    front = f"${{1|{','.join(kind.modifiers)}|}} " if kind.modifiers else ""
    first = 2 if kind.modifiers else 1
    name = f" ${{{first}:name}}" if kind.name == "required" else ""
    head = f"{front}{kind.word}{name}"
    if kind.type:
        return [f"{head}: ${{{first + 1}:text}}"]
    if kind.expression:
        return [f"{head} = $0"]
    if kind.word == "section":
        return [f'{head} = """', "$0", '"""']
    if kind.value and kind.settings is None:
        return [f'{head} = """', "$0", '"""']
    if kind.value:
        return [f'{head} = "${{{first + 1}:provider/name}}"']
    return [f"{head} {{", "\t$0", "}"]


_PROGRAM = """language 1

use std.gates

task {
\tinput ${1:question}: text
\toutput ${2:answer}: text
}

skill ${3:answer_questions} {
\tabout = "${4:what it is for, and when to use it}"
\ttrainable section rules { limit = 1_500 tokens }
}

model target = "${5:provider/name}"
model optimizer = "${6:provider/name}"

data {
\tsource = "${7:examples.jsonl}"
}

goal ${8:correct} = exact_match($2)

budget {
\tepochs = 4
}

gate better = gates.strict($8)$0
"""


def main() -> None:
    """Write the files."""
    for path, text in files().items():
        place = FOLDER / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
