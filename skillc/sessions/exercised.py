"""Find the skill that a session exercised: one that it loads, else the one whose `about` resembles its request."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from skillc.bm25 import index_of, scores_of, words_of
from skillc.sessions.session import Session
from skillc.trajectories.trajectory import Message, Observation, ToolCall

_SKILL_FILE = re.compile(r"skills/([\w.-]+)/SKILL\.md", re.IGNORECASE)


def skills_loaded(session: Session) -> tuple[str, ...]:
    """Return the names of the skills that a session loads: by a skill tool, by reading its file, or by `$NAME`."""
    found: dict[str, None] = {}
    waiting: list[list[str]] = []
    for event in session.events:
        step = event.step
        if isinstance(step, ToolCall):
            named = []
            if (step.name or step.tool).casefold() in ("skill", "use_skill", "load_skill", "skills", "activate_skill"):
                values = (step.arguments.get(key) for key in ("skill", "name", "command", "skill_name"))
                named += [str(value).strip().lstrip("/$") for value in values if value][:1]
            written = json.dumps(step.arguments, ensure_ascii=False).replace("\\\\", "/")
            waiting.append([*named, *_SKILL_FILE.findall(written)])
        elif isinstance(step, Observation) and waiting:
            names = waiting.pop(0)
            if not step.failed:
                found |= dict.fromkeys(names)
        elif isinstance(step, Message) and step.role == "user" and not event.automatic:
            found |= dict.fromkeys(re.findall(r"(?<!\S)\$([a-z][\w-]*)(?![\w=(])", step.text))
    return tuple(found)


LEAST_LIKENESS = 0.3
"""The least likeness of a first request and a skill, from 0 to 1."""
_LEAST_SHARED = 2
_MOST_WORDS = 8
_CHARACTERS = 2_000
_STOP = frozenset(
    words_of(
        "a an the to of in on for and or is are be it this that these those with from by as at i we you me my our your "
        "can could would should will do does did what which who how when where why please not no into than then if so "
        "its their them they he she have has had was were all any each one use used using make made need needs want "
        "skill"
    )
)


def skill_of(session: Session, request: str, skills: Mapping[str, str]) -> str:
    """Return the name of the skill that a session exercised; empty for none that is known.

    Args:
        session: if it loads known skills, the last one counts.
        request: its first request, which decides if it loads none.
        skills: name and `about` of the known skills; `_` and `-` are the same in names.
    """
    known = {_normal(name): name for name in skills}
    loaded = [known[each] for name in skills_loaded(session) if (each := _normal(name)) in known]
    return loaded[-1] if loaded else like_skill(request, skills)


def like_skill(request: str, skills: Mapping[str, str]) -> str:
    """Return the name of the skill that a request is most like; empty if it is like none, or like two equally.

    The likeness is the BM25 score of the request for the skill's name and `about`, over that of the eight words which
    score highest there. At least `LEAST_LIKENESS` and two words in common are needed; stop words do not count.
    """
    names = list(skills)
    texts = [_content(f"{name} {skills[name]}") for name in names]
    index, asked = index_of(texts), sorted(set(_content(request[:_CHARACTERS])))
    found = []
    for i, (name, words, score) in enumerate(zip(names, texts, scores_of(index, asked, len(texts)), strict=True)):
        each = sorted((scores_of(index, [word], len(texts))[i] for word in set(words)), reverse=True)
        best = sum(each[:_MOST_WORDS])
        if len(set(words) & set(asked)) >= _LEAST_SHARED and score >= LEAST_LIKENESS * best > 0:
            found.append((score / best, name))
    found.sort(reverse=True)
    return "" if not found or (len(found) > 1 and found[0][0] == found[1][0]) else found[0][1]


def _content(text: str) -> list[str]:
    return [_stem(word) for word in words_of(text.replace("_", " ")) if word not in _STOP]


def _stem(word: str) -> str:
    for end in ("ing", "ies", "es", "ed", "s"):
        if word.endswith(end) and len(word) - len(end) >= 4:
            return word[: -len(end)]
    return word


def _normal(name: str) -> str:
    return name.rpartition(":")[2].casefold().replace("_", "-")
