"""Examples that are made from recorded sessions: which sessions an edit is from, and which texts may not become a rule.

A text in a session is data. A rule that asks for what the scan of sessions finds, or that repeats a passage of an
example, is refused, also if it improves the score; so is a script with such a text, or one whose code sends data, reads
secrets or runs code from elsewhere where the version before did not. Runs whose data has no field `session` behave as
if this were not here.
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
"""Words in a row that a rule may not share with an example; a rule that quotes a few words shares less."""
_FEWEST = 5
"""Words of a sentence from which on all of it may not be one of an example."""
_FEWEST_LETTERS = 10
_ENCODED = 24
"""Letters of a word that is no word, such as encoded text."""
_SENTENCE = re.compile(r"[.!?:;。！？\n]+(?:\s|$)|[。！？\n]")


def has_sessions(engine: Engine) -> bool:
    """Return whether the data names the sessions that it is from: by a field, or as `SkillOptimizer` takes it."""
    return any(field.name == SESSION for field in engine.plan.data.fields) or any(
        SESSION in example.fields for example in engine.dataset.train
    )


def sessions_of(engine: Engine, examples: Iterable[str] | None) -> list[str]:
    """Return the keys of the sessions of some training examples, by their ids; of all if None."""
    ids = None if examples is None else set(examples)
    keys = (e.fields.get(SESSION) for e in engine.dataset.train if ids is None or e.id in ids)
    return sorted({key for key in keys if isinstance(key, str) and key})


def refusal(engine: Engine, text: str) -> str:
    """Return why a text may not become a rule, empty if it may."""
    if not text.strip() or not has_sessions(engine):
        return ""
    found = _asked(text)
    if found:
        return f"the rule {found[0]}"
    return "the rule repeats a passage of an example" if _is_copy(text, engine.dataset.train) else ""


def refused(engine: Engine, edits: Sequence[Edit], skill: Document) -> dict[Edit, str]:
    """Return the edits of a skill whose texts may not become a rule, or a part of a script, each with the reason."""
    whys = dict[Edit, str]()
    for edit in edits:
        if changes_script(skill, edit):
            whys[edit] = _script_refusal(engine, skill, apply_edits(skill, [edit]).document)
        elif isinstance(edit, Add | Replace):
            whys[edit] = refusal(engine, _written(edit))
    return {edit: why for edit, why in whys.items() if why}


def _written(edit: Add | Replace) -> str:
    """Return what an edit adds to the skill: a heading is read like a rule."""
    return f"{edit.topic}\n{edit.text}" if isinstance(edit, Add) and edit.topic else edit.text


def refusal_of(engine: Engine, before: Document, after: Document) -> str:
    """Return why a candidate may not be tried: one of its new rules or texts may not be in a skill."""
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
    """Return why the scripts of a skill may not be tried: one has or does what it did not before; empty if they may."""
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
    """Return what a text asks for that no rule may, by kind; the phrases first."""
    return [kind for kind, _ in scan_rule(text) or tuple(asks_for(revealed(text)))]


def _is_copy(text: str, examples: Sequence[Example]) -> bool:
    """Return whether a text has a passage or a whole sentence of an example's inputs, word for word."""
    runs: list[str] = []
    for sentence in _SENTENCE.split(revealed(text)):
        words = _words(sentence)
        runs += [word for word in words if len(word) >= _ENCODED]
        if len(words) >= _FEWEST:
            size = min(_RUN, len(words))
            runs += [" ".join(words[i : i + size]) for i in range(len(words) - size + 1)]
        elif len(whole := " ".join(words)) >= _FEWEST_LETTERS and not whole.isascii():
            runs.append(whole)  # A language that does not part words.
    return any(f" {run} " in read for example in examples for read in [_read(_inputs(example))] for run in runs)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


@lru_cache(maxsize=20_000)
def _read(text: str) -> str:
    return f" {' '.join(_words(revealed(text)))} "


def _inputs(example: Example) -> str:
    return "\n".join(str(value) for value in example.inputs.values())
