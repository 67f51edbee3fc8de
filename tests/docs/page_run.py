"""Runs the blocks of one page in one folder, in order. A language that has no way to be tried is a fault."""

from __future__ import annotations

import ast
import csv
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import page_console
import page_markup
import page_programs
from page_blocks import Block, blocks_of
from page_session import ROOT, Session
from page_stand_ins import stand_in

FOLDERS = (
    "examples/tickets",
    "examples/unicode",
    "examples/parcels",
    "examples/dates",
    "examples/sessions",
    "examples/signals",
    "examples/evolve",
    "editors/vscode",
)


class BlockError(AssertionError):
    """A block that is not what the page says."""


class PageRun:
    """One page: its folder, its shell, and what hidden Python stands in front of the next one that is shown."""

    def __init__(self, name: str, page: str, home: Path, *, update: bool = False) -> None:
        self.name = name
        self.page = page
        self.session = Session(home)
        self._update = update
        self._before = ""
        for folder in FOLDERS:
            ignored = shutil.ignore_patterns(".skillc", "skills", "__pycache__", "node_modules")
            shutil.copytree(ROOT / folder, home / "skillc" / folder, ignore=ignored)

    def all(self) -> str:
        """Tries every block; the page, with outputs renewed where that was asked for.

        Raises:
            BlockError: a block does not do what it should.
        """
        changed: list[tuple[Block, str]] = []
        try:
            for block in blocks_of(self.page):
                new = self._block(block)
                if new is not None and new != block.text:
                    changed.append((block, new))
        finally:
            self.session.close()
        for block, new in reversed(changed):
            lines = (" " * block.indent + line if line.strip() else line for line in new.splitlines(keepends=True))
            self.page = self.page[: block.start] + "".join(lines) + self.page[block.end :]
        return self.page

    def _block(self, block: Block) -> str | None:
        ways: dict[str, Callable[[Block], str | None]] = {
            "console": self._console,
            "bash": self._bash,
            "python": self._python,
            "skill": self._skill,
            "json": lambda b: self._read(b, json.loads),
            "jsonl": lambda b: self._read(b, lambda text: [json.loads(line) for line in text.splitlines()]),
            "csv": lambda b: self._read(b, _table),
            "toml": lambda b: self._read(b, page_markup.check_toml),
            "lua": lambda b: self._read(b, page_markup.check_lua),
            "yaml": lambda b: self._read(b, page_markup.check_yaml),
            "markdown": lambda b: self._read(b, page_markup.check_skill_md),
            "grammar": lambda b: self._read(b, page_markup.check_grammar),
        }
        if block.language not in ways:
            raise BlockError(
                f"{self.name}:{block.line}: a block of `{block.language}` can't be tried; known: {', '.join(ways)}"
            )
        try:
            return ways[block.language](block)
        except BlockError:
            raise
        except (AssertionError, ValueError, SyntaxError) as problem:
            raise self._error(block, problem) from problem

    def _read(self, block: Block, read: Callable[[str], object]) -> None:
        read(block.text)
        self._write(block)

    def _write(self, block: Block) -> None:
        if block.title is not None:
            path = self.session.folder / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")

    def _console(self, block: Block) -> str:
        found = []
        commands = page_console.typed_in(block.text)
        following = [each.command for each in commands[1:]] + [""]
        for typed, after in zip(commands, following, strict=True):
            check = stand_in(typed.command)
            if check is not None:
                check()
                found.append(typed)
                continue
            answer = self.session.run(typed.command)
            printed = page_console.lines_of(answer.text)
            if answer.status and after != "echo $?":
                raise self._error(block, f"`{typed.command}` ends with {answer.status}:\n{answer.text}")
            if not (block.hidden or self._update or page_console.matches(typed.shown, printed)):
                shown, got = "\n".join(typed.shown), "\n".join(printed)
                raise self._error(block, f"`{typed.command}` should print\n{shown}\nand it printed\n{got}")
            found.append(page_console.Typed(typed.command, page_console.renewed(typed.shown, printed)))
        return block.text if block.hidden else page_console.written(found)

    def _error(self, block: Block, message: object) -> BlockError:
        return BlockError(f"{self.name}:{block.line}: {message}")

    def _bash(self, block: Block) -> None:
        self._write(block)
        script = self.session.folder.parent / "block.sh"
        script.write_text(block.text, encoding="utf-8")
        answer = self.session.run(f"bash {script}")
        if answer.status:
            raise self._error(block, f"the script ends with {answer.status}:\n{answer.text}")

    def _python(self, block: Block) -> None:
        ast.parse(block.text)
        if block.hidden:
            self._before += block.text
            return
        self._write(block)
        script = self.session.folder.parent / "block.py"
        script.write_text(self._before + block.text, encoding="utf-8")
        self._before = ""
        # The page's folder is where the reader would have started it.
        answer = self.session.run(f'PYTHONPATH="$PWD:$PYTHONPATH" python {script}')
        if answer.status:
            raise self._error(block, f"the Python block fails:\n{answer.text}")

    def _skill(self, block: Block) -> str:
        self._write(block)
        page_programs.check(block, self.session.folder)
        new = block.text if "rough" in block.classes else page_programs.canonical(block.text)
        if new != block.text and not self._update:
            raise self._error(block, f"this is not the form of `skillc fmt`, which is\n{new}")
        return new


def _table(text: str) -> list[list[str]]:
    rows = list(csv.reader(io.StringIO(text)))
    widths = {len(row) for row in rows}
    assert len(widths) == 1, "the rows differ in length"
    return rows
