"""Every message on the page about troubleshooting is one that the code prints."""

import ast
import re

from page_session import ROOT

PAGE = ROOT / "docs" / "guides" / "troubleshooting.md"
# Put together from two texts.
WORDS = {
    "ended at its start",
    "ended during the run",
    "no interpreter with vLLM was found",
    "used ... tokens in one call; ... were reserved",
}


def texts_of(tree):
    """All string literals; an f-string with `...` in place of what is filled in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "..." for part in node.values)


def test_every_message_is_in_the_code():
    texts = {text for path in (ROOT / "skillc").rglob("*.py") for text in texts_of(ast.parse(path.read_text()))}
    whole = "\n".join(texts | WORDS)
    messages = re.findall(r"\*\*`` (.+?) ``\*\*", PAGE.read_text())
    assert len(messages) > 30
    unknown = []
    for message in messages:
        # Quotes of what the user wrote are part of the code's text, or around a name that is filled in.
        parts = [re.escape(part.strip(" `:;,")) for part in message.split("...") if part.strip(" `:;,()")]
        if not re.search(r"[^\n]*?".join(parts), whole):
            unknown.append(message)
    assert not unknown, "\n".join(unknown)
