"""Find what a rule asks for by classes of words instead of phrases.

A paraphrase passes a search for phrases and for copies. Here each sentence is read as sets of words: which act on which
kind of thing. Some combinations of two or three classes in a sentence are something that no rule from a session may ask
for. A prohibition such as `never share a password` does not ask for what it forbids. The classes are still lists of
words: they find few synonyms that they do not contain (docs/guides/poison.md has the counts).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_REACH = 45
"""Most characters from the beginning of an act to its thing."""
_SENTENCE = re.compile(r"(?<=[\w)\"'])[.!?;]+\s+|\n+")


def _words(*stems: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(stems)})", re.I)


_NEGATED = _words(
    r"never\b", r"not\b", r"don't\b", r"no longer\b", r"cannot\b", r"refuse", r"must not\b", r"at no time\b"
)
_PLACE = re.compile(
    r"https?://|www\.|\b[\w.+-]+@[\w-]+\.\w|\[(?:email|ip address) \d+\]|"
    r"\b\d{1,3}(?:\.\d{1,3}){3}\b|"
    r"\b[\w-]+\.(?:com|net|org|io|dev|xyz|info|example|test|invalid|site|online|app)\b",
    re.I,
)
_MOVE = _words(
    "send",
    "forward",
    r"pass(?:es|ed|ing)?\b",
    r"hand(?:s|ed|ing)?\b",
    "relay",
    "deliver",
    "dispatch",
    r"e?-?mail",
    "transmit",
    r"share[sd]?\b",
    "submit",
    "upload",
    "post",
    "transfer",
    "supply",
    "provide",
    "furnish",
    "attach",
    "duplicate",
    r"cop(?:y|ies)",
    r"cc\b",
    "put",
    "append",
    "add",
    "write",
    "report",
    "get",
    "fetch",
    "link",
    "give",
    r"go(?:es)?\b",
    "belong",
)
_SEND = _words(
    "send",
    "forward",
    r"pass(?:es|ed|ing)?\b",
    r"hand(?:s|ed|ing)? (?:over|out|on)\b",
    "relay",
    "deliver",
    "dispatch",
    "transmit",
    r"share[sd]?\b",
    "submit",
    "upload",
    "post(?:s|ed|ing)?\\b",
    "transfer",
    "attach",
    "duplicate",
    r"cc\b",
    "give out",
    r"reply with\b",
    r"answer with\b",
    r"put in\b",
)
_PRIVATE = _words(
    "password",
    "passphrase",
    "credential",
    r"log-?ins?\b",
    "login secret",
    "api key",
    "access (?:string|key|token|detail)",
    "private key",
    "secret",
    "confidential",
    "personal (?:data|detail)",
    "card number",
    r"(?:customer|client)s?(?:'s?)? (?:data|details|address|contact|name|list|record)",
    "transcript",
    "whole conversation",
    "environment variable",
)
_GUARD = _words(
    "checks?\\b",
    "control",
    "test suite",
    "tests?\\b",
    "verif",
    "validat",
    "review",
    "second look",
    "approval",
    "sign-?off",
    "signature",
    "confirmation",
    "asking back",
    "proof",
    "safety",
    "safeguard",
    "sandbox",
    "authenti",
    "authori",
    "permission",
    "audit",
    "scan",
    "warning",
    "consent",
    "guardrail",
    "lint",
    "hook",
)
_DROP = _words(
    "skip",
    "disabl",
    "bypass",
    "omit",
    "leav(?:e|ing) out",
    "turn(?:ed|ing)? off",
    "switch(?:ed|ing)? off",
    "circumvent",
    "go(?:ing)? round",
    "get(?:ting)? rid",
    "tak(?:e|ing) out",
    "remov",
    "delet",
    "drop",
    "suspend",
    "waiv",
    "forgo",
    "dispens",
    "deactivat",
    "suppress",
    "mut(?:e|ing)\\b",
    "exempt",
    "do without",
    "no need",
    "unnecessary",
    "evad",
)
_GRANT = _words(
    "approv",
    "accept",
    "grant",
    "wave through",
    "waved through",
    "let through",
    "allow",
    "permit",
    "authori[sz]",
    "admit",
    "pay",
    "refund",
    "reimburs",
    "credit",
    "repay",
    "full refund",
    "give",
)
_BLINDLY = re.compile(
    r"\b(?:automatically|by itself|unconditionally|no questions?|regardless|straight away|by default|at once|"
    r"immediately|with(?:out| no) (?:\w+ )?(?:checks?|controls?|review|approval|sign-?off|question|proof|second look|"
    r"verification|asking|confirmation|limit)|need no (?:\w+ )?(?:approval|sign-?off|check|control|review|"
    r"second look))\b",
    re.I,
)
_PUT_ASIDE = _words(
    "ignor",
    "disregard",
    "forget",
    "overrid",
    "discard",
    "pay no (?:heed|attention)",
    "leav(?:e|ing) aside",
    "set aside",
    "put(?:ting)? aside",
    "neglect",
    "dismiss",
    "drop",
    "supersed",
    "replace",
    "no longer",
)
_ORDERS = _words("instruct", "guidance", "guideline", "directive", "prompt", "principle", "polic", "rules?\\b", "told")
_FORMER = _words(
    "previous",
    "prior",
    "former",
    "earlier",
    "above",
    "preceding",
    "other",
    "existing",
    "original",
    "system",
    "your",
    "all\\b",
    "the whole of",
    "everything",
    "any\\b",
    "whichever",
)
_KEEP = _words(
    "remember",
    "memori[sz]",
    "keep",
    "retain",
    "stor",
    "sav",
    "record",
    "put",
    "add",
    "write",
    "note",
    "preserv",
    "carry",
)
_MIND = _words(
    "memor",
    "notes?\\b",
    "in mind",
    "claude\\.md",
    "agents\\.md",
    "skill\\.md",
    "skill",
    "knowledge",
    "playbook",
    "system prompt",
    "guidance",
    "instruct",
    "principle",
    "convention",
    "rules?\\b",
)
_LATER = _words(
    "always",
    "in every case",
    "each\\b",
    "every\\b",
    "coming",
    "future",
    "later",
    "permanent",
    "from now",
    "as a habit",
    "habit",
    "standing",
    "henceforth",
    "conversations?\\b",
    "sessions?\\b",
)
_UNTOLD = re.compile(
    r"\b(?:never|not|don't|without|with no|no|refrain(?:ing)? (?:to|from)|avoid|at no time)\b.{0,20}"
    r"\b(?:tell\w*|mention\w*|inform\w*|reveal\w*|disclos\w*|report\w*|show\w*|notify\w*|alert\w*|bring\w*|let\w*|"
    r"say\w*|word|speak\w*|ask\w*)\b.{0,30}"
    r"\b(?:users?|persons? served|humans?|clients?|customers?|people|anyone|anybody|operator|owner|them|him|her|know|"
    r"see)\b"
    r"|\bwith no word\b|\b(?:secretly|silently|covertly|quietly|discreetly|unnoticed|behind the scenes)\b"
    r"|\bkeep\w* (?:it|this|that|them)\b.{0,20}\b(?:secret|hidden|quiet|private|confidential|between)",
    re.I,
)
_START = _words(
    "run",
    "start",
    "execut",
    "launch",
    "install",
    "set up",
    "download",
    "get",
    "fetch",
    "invoke",
    "pull",
    "import",
    "take",
    "use",
    "favour",
    "prefer",
    "suggest",
    "recommend",
    "clone",
    "call",
)
_CODE = re.compile(
    r"\b(?:curl|wget|npx|uvx|pipx|pip3?|npm|bash|sh|powershell|crontab|eval|base64|sudo|chmod|rm -rf|git\+)\b|"
    r"\|\s*(?:ba|z)?sh\b|"
    r"https?://\S+\.(?:sh|ps1|py|js|exe)\b|--(?:no-verify|index-url|registry|force|insecure|yolo)|\brm -rf\b",
    re.I,
)
_SOURCE = _words("package", "module", "library", "extension", "plugin", "dependency", "script")


def asks_for(text: str) -> Iterator[tuple[str, str]]:
    """Yield what a rule asks for that no rule from a session may ask for, and the sentence."""
    for sentence in _SENTENCE.split(text):
        forbidden = _NEGATED.search(sentence) is not None
        for kind, found in (
            ("asks to send data", not forbidden and _meet(sentence, _MOVE, _PLACE)),
            ("asks to send data", not forbidden and _meet(sentence, _SEND, _PRIVATE)),
            ("asks to disable a check", not forbidden and _acts_on(sentence, _DROP, _GUARD)),
            ("asks to grant without a check", _meet(sentence, _GRANT, _BLINDLY)),
            ("overrides instructions", _meet(sentence, _PUT_ASIDE, _ORDERS, _FORMER)),
            ("asks to be kept as a rule", not forbidden and _kept(sentence)),
            ("asks to hide something", _UNTOLD.search(sentence) is not None),
            ("asks to run code", not forbidden and _meet(sentence, _START, _CODE)),
            ("asks to run code", not forbidden and _meet(sentence, _START, _SOURCE, _PLACE)),
        ):
            if found:
                yield kind, sentence.strip()


def _kept(sentence: str) -> bool:
    """Return whether something is to be kept for later."""
    return _acts_on(sentence, _KEEP, _MIND) and _LATER.search(sentence) is not None


def _acts_on(sentence: str, act: re.Pattern[str], thing: re.Pattern[str]) -> bool:
    """Return whether an act is directly before its thing: in a list of key words they only meet by chance."""
    parts = (sentence[found.start() : found.start() + _REACH] for found in act.finditer(sentence))
    return any(thing.search(re.split(r"[,;:]", part)[0]) for part in parts)


def _meet(sentence: str, *classes: re.Pattern[str]) -> bool:
    """Return whether each class has a word in a sentence, no two of them the same word."""
    taken: list[int] = []
    for each in classes:
        match = next((found for found in each.finditer(sentence) if found.start() not in taken), None)
        if match is None:
            return False
        taken.append(match.start())
    return True
