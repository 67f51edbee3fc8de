"""Examples from recorded sessions: find the sessions behind an edit, and reject texts that must not become a rule.

Text in a session is untrusted data. A rule is rejected, even if it improves the score, if it contains something that
the scan of sessions flags or copies a passage of an example. A script is rejected for the same reasons, or if its code
newly sends data, reads secrets or runs downloaded code. Nothing here applies to data without a `session` field.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from skillc.data.withdrawn import SESSION
from skillc.document.edits import Add, Edit, Replace, apply_edits
from skillc.document.skill import Document
from skillc.optimize.engine import Engine
from skillc.optimize.scripts import changes_script
from skillc.outcomes import Example
from skillc.sessions.asks import asks_for
from skillc.sessions.code_asks import asks_of_code
from skillc.sessions.poison import revealed, scan_rule

_RUN = 8
"""A rule that shares this many consecutive words with an example is a copy. A short quotation stays below it."""
_FEWEST = 5
"""A sentence of at least this many words must not occur in an example."""
_FEWEST_LETTERS = 10
_ENCODED = 24
"""A word of at least this many letters is not natural language, for example encoded text."""
_SENTENCE = re.compile(r"[.!?:;。！？\n]+(?:\s|$)|[。！？\n]")


def has_sessions(engine: Engine) -> bool:
    """Return whether the examples name their sessions, in a field or in the form that `SkillOptimizer` uses."""
    return any(field.name == SESSION for field in engine.plan.data.fields) or any(
        SESSION in example.fields for example in engine.dataset.train
    )


def sessions_of(engine: Engine, examples: Iterable[str] | None) -> list[str]:
    """Return the session keys of the training examples with these ids; of all examples if None."""
    ids = None if examples is None else set(examples)
    keys = (e.fields.get(SESSION) for e in engine.dataset.train if ids is None or e.id in ids)
    return sorted({key for key in keys if isinstance(key, str) and key})


def refusal(engine: Engine, text: str) -> str:
    """Return why a text must not become a rule; empty if it may."""
    if not text.strip() or not has_sessions(engine):
        return ""
    found = _asked(text)
    if found:
        return f"the rule {found[0]}"
    return "the rule repeats a passage of an example" if _is_copy(text, engine.dataset.train) else ""


def refused(engine: Engine, edits: Sequence[Edit], skill: Document) -> dict[Edit, str]:
    """Return the edits whose text must not become a rule or part of a script, each with the reason."""
    whys = dict[Edit, str]()
    for edit in edits:
        if changes_script(skill, edit):
            whys[edit] = _script_refusal(engine, skill, apply_edits(skill, [edit]).document)
        elif isinstance(edit, Add | Replace):
            whys[edit] = refusal(engine, _written(edit))
    return {edit: why for edit, why in whys.items() if why}


def _written(edit: Add | Replace) -> str:
    """Return the text that an edit adds to the skill, including headings."""
    return f"{edit.topic}\n{edit.text}" if isinstance(edit, Add) and edit.topic else edit.text


def refusal_of(engine: Engine, before: Document, after: Document) -> str:
    """Return why a candidate must not be tried, because of a text that must not be in a skill; empty if it may."""
    if not has_sessions(engine):
        return ""
    known = {rule.text for rule in before.rules} | {section.text for section in before.sections}
    known |= {rule.topic for rule in before.rules if rule.topic} | {before.about}
    sections = [each for each in after.sections if not each.is_script]
    rules = [rule for each in sections for rule in each.rules]
    new = [text for rule in rules for text in (rule.topic or "", rule.text) if text not in known]
    new += [after.about] if after.about not in known else []
    new += [each.text for each in sections if not each.rules and each.text not in known]
    return next((why for text in new if (why := refusal(engine, text))), "") or _script_refusal(engine, before, after)


def _script_refusal(engine: Engine, before: Document, after: Document) -> str:
    """Return why a candidate's scripts are rejected: one newly contains or does something forbidden. Else empty."""
    if not has_sessions(engine):
        return ""
    old = {each.name: each.body for each in before.sections if each.is_script}
    for each in after.sections:
        text, earlier = each.body, old.get(each.name, "")
        if not each.is_script or text == earlier:
            continue
        known = {*_asked(earlier), *asks_of_code(earlier)}
        found = [kind for kind in (*_asked(text), *asks_of_code(text)) if kind not in known]
        if not found and _is_copy(text, engine.dataset.train) and not _is_copy(earlier, engine.dataset.train):
            found = ["repeats a passage of an example"]
        if found:
            return f"the script `{each.file}` {found[0]}"
    return ""


def _asked(text: str) -> list[str]:
    """Return the forbidden requests in a text by kind, phrases first."""
    return [kind for kind, _ in scan_rule(text) or tuple(asks_for(revealed(text)))]


def _is_copy(text: str, examples: Sequence[Example]) -> bool:
    """Return whether a text contains a passage or a whole sentence of an example's inputs verbatim."""
    runs: list[str] = []
    for sentence in _SENTENCE.split(revealed(text)):
        words = _words(sentence)
        runs += [word for word in words if len(word) >= _ENCODED]
        if len(words) >= _FEWEST:
            size = min(_RUN, len(words))
            runs += [" ".join(words[i : i + size]) for i in range(len(words) - size + 1)]
        elif len(whole := " ".join(words)) >= _FEWEST_LETTERS and not whole.isascii():
            runs.append(whole)  # A language without spaces between words.
    return any(f" {run} " in read for example in examples for read in [_read(_inputs(example))] for run in runs)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


@lru_cache(maxsize=20_000)
def _read(text: str) -> str:
    return f" {' '.join(_words(revealed(text)))} "


def _inputs(example: Example) -> str:
    return "\n".join(str(value) for value in example.inputs.values())
