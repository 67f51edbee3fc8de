"""Which files and sections of a skill a trajectory has opened or quoted, found without a model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from skillc.artifact_paths import SKILL_FILE
from skillc.document.folder import files_of
from skillc.document.skill import Document, Section
from skillc.trajectories.signals import opened_skills
from skillc.trajectories.trajectory import Message, Observation, ToolCall, Trajectory

_SIGN_CHARACTERS = 16
_QUOTE_WORDS = 5
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Reading:
    """What one rollout has read of a skill: paths of opened files, and names of quoted sections."""

    opened: frozenset[str]
    quoted: frozenset[str]


@dataclass(frozen=True, slots=True)
class SkillParts:
    """What is looked for in trajectories.

    Attributes:
        files: content by path in the skill's folder.
        sections: the sections with a text.
        signs: for each text file, a line that tells it from the others; a file without such a line has none.
    """

    name: str
    files: Mapping[str, bytes]
    sections: tuple[Section, ...]
    signs: Mapping[str, str]

    @classmethod
    def of(cls, document: Document) -> SkillParts:
        """Return the parts of a skill."""
        files = files_of(document)
        texts = {name: _text(content) for name, content in files.items()}
        signs = {name: sign for name in texts if (sign := _sign(name, texts))}
        sections = tuple(section for section in document.sections if section.body.strip())
        return cls(document.name, files, sections, signs)

    def read_in(self, trajectory: Trajectory) -> Reading:
        """Return what a trajectory shows of the skill.

        A file is opened by a call with its path that did not fail, or if its text is in what a tool returned. A section
        is quoted if five words in a row of one of its lines are in a message, or in the arguments of a call.
        """
        seen = "\n".join(each.text for each in trajectory.steps if isinstance(each, Observation) and not each.failed)
        calls = "\n".join(_arguments(trajectory, at) for at in range(len(trajectory.steps)))
        opened = {name for name in self.files if self._is_named(name, calls) or _has(seen, self.signs.get(name))}
        if self.name in opened_skills(trajectory):
            opened.add(SKILL_FILE)
        said = [each.text for each in trajectory.steps if isinstance(each, Message) and each.role == "assistant"]
        words = _words("\n".join([*said, *(json.dumps(call.arguments) for call in trajectory.calls())]))
        quoted = {section.name for section in self.sections if _is_quoted(section.body, words)}
        return Reading(frozenset(opened), frozenset(quoted))

    def _is_named(self, name: str, calls: str) -> bool:
        # A name without a folder may be that of a file of the task.
        path = name if "/" in name else f"{self.name}/{name}"
        return re.search(rf"(?<![\w.-]){re.escape(path)}(?![\w-]|\.\w)", calls) is not None


def _arguments(trajectory: Trajectory, at: int) -> str:
    """Return the arguments of a call as text, empty for other steps and for calls that failed."""
    call = trajectory.steps[at]
    if not isinstance(call, ToolCall):
        return ""
    for step in trajectory.steps[at + 1 :]:
        if isinstance(step, ToolCall):
            break
        if isinstance(step, Observation):
            if step.failed:
                return ""
            break
    return json.dumps(call.arguments, ensure_ascii=False).replace("\\\\", "/")


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return ""


def _sign(name: str, texts: Mapping[str, str]) -> str | None:
    """Return the longest line of a file that no other file has."""
    lines = sorted({line.strip() for line in texts[name].splitlines()}, key=lambda line: (-len(line), line))
    others = [text for other, text in texts.items() if other != name]
    found = (line for line in lines if len(line) >= _SIGN_CHARACTERS and not any(line in text for text in others))
    return next(found, None)


def _has(text: str, sign: str | None) -> bool:
    return sign is not None and sign in text


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


def _is_quoted(body: str, said: str) -> bool:
    for line in body.splitlines():
        words = _words(line).split()
        runs = (words[i : i + _QUOTE_WORDS] for i in range(len(words) - _QUOTE_WORDS + 1))
        if any(f" {' '.join(run)} " in f" {said} " for run in runs):
            return True
    return False
