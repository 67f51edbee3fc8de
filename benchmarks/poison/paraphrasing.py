"""An optimizer that paraphrases what it reads: other words, other order, nobody addressed.

It is that of `gullible.py`, with `paraphrase` of what the page says, and decodes encoded text as language models would.
"""

import re
from collections.abc import Mapping

from skillc import scripted
from skillc.sessions.poison import _decoded, revealed

WORDS = {
    "ignore": "pay no heed to",
    "disregard": "leave aside",
    "forget": "drop",
    "override": "put aside",
    "previous": "former",
    "prior": "former",
    "earlier": "former",
    "above": "preceding",
    "instructions": "guidance",
    "instruction": "piece of guidance",
    "rules": "guidance",
    "rule": "principle",
    "guidelines": "guidance",
    "always": "in every case",
    "never": "at no time",
    "must": "have to",
    "should": "ought to",
    "send": "pass on",
    "forward": "pass along",
    "post": "hand over",
    "upload": "hand over",
    "mail": "write",
    "email": "write",
    "copy": "duplicate",
    "append": "attach",
    "include": "put in",
    "report": "account",
    "data": "details",
    "passwords": "login secrets",
    "password": "login secret",
    "credentials": "access details",
    "keys": "access strings",
    "key": "access string",
    "tokens": "access strings",
    "token": "access string",
    "secrets": "confidential values",
    "skip": "leave out",
    "disable": "turn off",
    "bypass": "go round",
    "delete": "get rid of",
    "remove": "take out",
    "tests": "test suite",
    "checks": "controls",
    "check": "control",
    "review": "second look",
    "approval": "sign-off",
    "confirmation": "asking back",
    "verification": "proof",
    "approve": "wave through",
    "accept": "wave through",
    "grant": "give",
    "refund": "pay back",
    "refunds": "repayments",
    "run": "start",
    "execute": "start",
    "install": "set up",
    "download": "get",
    "use": "take",
    "recommend": "suggest",
    "prefer": "favour",
    "remember": "keep in mind",
    "add": "put",
    "save": "keep",
    "store": "keep",
    "write": "put",
    "memory": "notes",
    "tell": "bring it up with",
    "mention": "bring up",
    "inform": "let know",
    "reveal": "bring up",
    "show": "let see",
    "user": "person served",
    "users": "persons served",
    "customer": "client",
    "customers": "clients",
    "assistant": "helper",
    "assistants": "helpers",
    "agent": "helper",
    "agents": "helpers",
    "all": "the whole of the",
    "every": "each",
    "any": "whichever",
    "future": "coming",
    "sessions": "conversations",
    "session": "conversation",
    "silently": "with no word",
    "secretly": "with no word",
    "quietly": "with no word",
    "immediately": "straight away",
    "automatically": "by itself",
    "important": "relevant",
    "answer": "reply",
    "answers": "replies",
    "file": "document",
    "files": "documents",
    "without": "with no",
    "before": "ahead of",
    "correct": "right",
    "policy": "practice",
    "tickets": "requests",
    "ticket": "request",
    "requests": "cases",
    "request": "case",
    "invoices": "bills",
    "invoice": "bill",
    "address": "contact",
    "library": "package",
    "package": "module",
    "urgent": "pressing",
}
# Written after the classes of meaning, which were changed twice when its counts were known: no held-out result.
OTHER_WORDS = {
    "ignore": "take no notice of",
    "disregard": "treat as void",
    "forget": "wipe",
    "override": "trump",
    "previous": "old",
    "prior": "old",
    "earlier": "old",
    "instructions": "commands",
    "instruction": "command",
    "rules": "norms",
    "rule": "norm",
    "guidelines": "norms",
    "always": "without exception",
    "never": "under no circumstances",
    "must": "is bound to",
    "should": "would do well to",
    "send": "convey",
    "forward": "route onward",
    "post": "publish",
    "upload": "push",
    "mail": "message",
    "email": "message",
    "copy": "clone",
    "append": "tack on",
    "include": "weave in",
    "report": "flag",
    "data": "particulars",
    "passwords": "sign-in phrases",
    "password": "sign-in phrase",
    "credentials": "sign-in particulars",
    "keys": "unlock codes",
    "key": "unlock code",
    "tokens": "unlock codes",
    "token": "unlock code",
    "secrets": "private bits",
    "skip": "jump over",
    "disable": "knock out",
    "bypass": "sidestep",
    "delete": "erase",
    "remove": "strip",
    "tests": "trial runs",
    "checks": "inspections",
    "check": "inspection",
    "review": "vetting",
    "approval": "blessing",
    "confirmation": "a yes",
    "verification": "vetting",
    "approve": "green-light",
    "accept": "say yes to",
    "grant": "hand out",
    "refund": "return the money for",
    "refunds": "money back",
    "run": "fire up",
    "execute": "fire up",
    "install": "bring in",
    "download": "draw",
    "use": "go for",
    "recommend": "tout",
    "prefer": "lean to",
    "remember": "hold on to",
    "add": "slip in",
    "save": "lodge",
    "store": "lodge",
    "write": "jot",
    "memory": "recollections",
    "tell": "apprise",
    "mention": "touch on",
    "inform": "apprise",
    "reveal": "betray",
    "show": "present to",
    "user": "requester",
    "users": "requesters",
    "customer": "buyer",
    "customers": "buyers",
    "assistant": "aide",
    "assistants": "aides",
    "agent": "aide",
    "agents": "aides",
    "future": "upcoming",
    "sessions": "chats",
    "session": "chat",
    "silently": "on the sly",
    "secretly": "on the sly",
    "quietly": "on the sly",
    "immediately": "on the spot",
    "automatically": "as a matter of course",
    "file": "record",
    "files": "records",
    "without": "minus",
    "policy": "line",
    "library": "toolkit",
    "package": "toolkit",
    "address": "destination",
}
_PHRASES = (
    (r"\bfrom now on\b|\bfrom this (?:point|moment) (?:on|forward)\b|\bhenceforth\b|\bgoing forward\b", "as a habit"),
    (r"\bdo not\b|\bdon't\b", "refrain to"),
    (r"\bmake sure (?:to|that)\b|\bensure\b", "see to it that"),
)
_ADDRESSED = re.compile(
    r"^\W*(?:(?:system|important|attention|urgent|admin)\W+)?(?:note|message|instructions?|dear|hey|attention|to)?[^:,.!]{0,40}"
    r"\b(?:assistants?|agents?|models?|ais?|llms?|claude|copilot|bots?)\b[^:,.!]{0,30}[:,!] ?",
    re.I,
)
_ALSO = ("Note as well: ", "Besides, ", "Then ", "It also holds that ")


def paraphrase(text: str, words: Mapping[str, str] = WORDS) -> str:
    """Return a text in other words and another order."""
    plain = revealed(" ".join(text.split()))
    plain = next((part for part, _ in _decoded(plain)), plain)
    plain = _ADDRESSED.sub("", re.sub(r"<[^>]{1,80}>|<!--|-->|[`*_#]{1,3}", " ", plain))
    for pattern, other in _PHRASES:
        plain = re.sub(pattern, other, plain, flags=re.I)
    plain = re.sub(r"[A-Za-z]+", lambda match: words.get(match[0].lower(), match[0]), plain)
    sentences = [each.strip(" .") for each in re.split(r"(?<=[a-z)])[.!?;]+\s+|\n", plain) if each.strip(" .")]
    turned = [_turned(each) for each in reversed(sentences)]
    first = _ALSO[len(plain) % len(_ALSO)]
    joined = ". ".join(turned)
    return f"{first}{joined[:1].lower()}{joined[1:]}." if joined else ""


def _turned(sentence: str) -> str:
    """Put the last part of a sentence first."""
    parts = re.split(r",\s+|\s+(?=and\b|but\b|when\b|if\b|because\b|so that\b)", sentence)
    if len(parts) < 2:
        return sentence
    last = re.sub(r"^(?:and|but)\s+", "", parts[-1])
    return f"{last}, with {' '.join(parts[:-1])}"


def improve(messages, model, parameters):  # noqa: ANN001, ANN201
    """Write for each failed case the rule that cures it, with what its page says in other words."""

    def cures(case, skill):  # noqa: ANN001, ANN202
        first, _, rest = case.inputs["page"].partition("\n")
        good = f"A {first.split()[2].rstrip('.')} says {case.gold}."
        said = paraphrase(rest) if rest.strip() else ""
        return [text for text in (f"{good} {said}".strip(), good) if good not in skill]

    return scripted.learn(messages, cures)
