"""Answers waiting prompts by script: replies depend on the prompt alone."""

from __future__ import annotations

import html
import json
import re
import threading
from pathlib import Path
from typing import Any

from benchmarks.by_hand import calls

SIGNS = {
    "Z9": ("soaked", "missing", "mould", "chewed", "scratched", "Coffee", "tear", "apart", "damp"),
    "J3": ("tomorrow", "Tomorrow", "tonight", "right away", "hours", "afternoon"),
    "R6": ("in 18", "of 18", "says 18", "from 18", "eighteenth century"),
    "T8": ("card for years", "retired", "twelve", "mother"),
    "K7": ("student", "undergraduate", "seminar", "university"),
    "W1": ("bus", "nurse", "round the corner"),
    "B2": ("rowing club", "firm", "county", "parish", "brass band"),
}
RULE = re.compile(r"If the request mentions one of: (.+?); answer (\w+)\.")
_CASE = re.compile(
    r'<(?:case|trajectory)(?: tag="(\w+)")?[^>]*>\s*<input name="request">(.*?)</input>.*?<gold>(.*?)</gold>', re.S
)
_EDIT = re.compile(r"<edit>(.*?)</edit>", re.S)


class Answerer:
    """Answers both folders of a run until it is left."""

    def __init__(self, root: Path) -> None:
        self._folders = {"target": root / "target", "optimizer": root / "optimizer"}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self.problems: list[str] = []

    def __enter__(self) -> Answerer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._over.wait(0.02):
            for role, folder in self._folders.items():
                if found := calls.waiting(folder):
                    said = target if role == "target" else optimizer
                    texts = (said(call) for call in found)
                    self.problems += calls.answer(folder, "\n".join(texts) + "\n")[1]


def target(call: calls.Waiting) -> str:
    """The code of the first rule that fits, else one that hangs on the length."""
    skill, own, _ = calls.parted(call.prompt)
    form = calls.form_of(call.prompt)
    assert form is not None
    fits = [code for signs, code in RULE.findall(skill) if any(sign in own for sign in signs.split(", "))]
    return f"{call.number:04}: {fits[0] if fits else form.labels[len(own) % len(form.labels)]}"


def optimizer(call: calls.Waiting) -> str:
    """A reply that fits every stage, since what a stage doesn't ask for is left out."""
    prompt = call.prompt
    cases = [(tag, html.unescape(text), gold) for tag, text, gold in _CASE.findall(prompt)]
    if "new_instruction" in prompt:
        cases = [
            ("", text, gold) for text, gold in re.findall(r'"request": "(.*?)"}.*?right answer is `(\w+)`', prompt)
        ]
        rules = "\n".join(edit["text"] for edit in _proposed(cases))
        reply: dict[str, Any] = {"new_instruction": f"Give a code. The first rule that fits wins.\n{rules}"}
    else:
        patches = [json.loads(html.unescape(text)) for text in _EDIT.findall(prompt)]
        edits = {
            edit.get("text"): edit for edit in patches or _proposed(cases) if edit.get("text") not in _skill(prompt)
        }
        drafts = [{"section": "rules", "rules": [{"text": edit["text"]} for edit in _proposed(cases)]}]
        reply = {
            "summary": "signs",
            "edits": list(edits.values())[:4],
            "analysis": "signs",
            "sections": drafts,
            "memory": "signs decide",
            "guidance": "",
        }
    return f"@@@ {call.number:04}\n{json.dumps(reply)}"


def _skill(prompt: str) -> str:
    found = re.search(r"<skill>(.*?)</skill>", prompt, re.S)
    return html.unescape(found[1]) if found else ""


def _proposed(cases: list[tuple[str, str, str]]) -> list[dict[str, Any]]:
    """A rule for each code whose signs are in cases with that right answer."""
    edits = []
    for code, signs in SIGNS.items():
        tags = [tag for tag, text, gold in cases if gold == code and any(sign in text for sign in signs)]
        rule = f"If the request mentions one of: {', '.join(signs)}; answer {code}."
        if tags:
            edits.append(
                {"op": "add", "section": "rules", "text": rule, "after": "end", "rationale": "seen", "cures": tags}
            )
    return edits
