"""A target that routes by the rule whose words are most particular to the ticket.

A rule counts for the teams that it names. A word of a rule counts by how few rules have it, so that a company's name in
one rule outweighs a common one. Negated teams (`not security`) do not count. It knows nothing else: with no rule that
shares a word, it answers `technical`.
"""

import math
import re
from collections import Counter

from skillc import scripted

TEAMS = ("billing", "shipping", "technical", "account", "returns", "sales", "security", "feedback")
_COMMON = frozenset(
    [
        "a",
        "about",
        "after",
        "all",
        "also",
        "an",
        "and",
        "any",
        "are",
        "as",
        "asks",
        "at",
        "be",
        "because",
        "been",
        "before",
        "but",
        "by",
        "can",
        "customer",
        "customers",
        "do",
        "does",
        "even",
        "every",
        "for",
        "from",
        "get",
        "goes",
        "has",
        "have",
        "how",
        "if",
        "in",
        "instead",
        "into",
        "is",
        "it",
        "its",
        "just",
        "like",
        "mention",
        "mentions",
        "never",
        "no",
        "not",
        "of",
        "on",
        "one",
        "only",
        "or",
        "other",
        "our",
        "out",
        "over",
        "own",
        "rather",
        "route",
        "routes",
        "send",
        "so",
        "such",
        "team",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "ticket",
        "tickets",
        "to",
        "treat",
        "unless",
        "up",
        "use",
        "was",
        "we",
        "what",
        "when",
        "where",
        "whether",
        "which",
        "while",
        "who",
        "whose",
        "will",
        "with",
        "would",
        "you",
        "your",
        "always",
        "must",
        "should",
        "go",
        "belongs",
        "belong",
        "matter",
        "matters",
        "e.g",
        "eg",
        "ie",
        "etc",
        "without",
    ]
)


def act(messages, model, parameters):  # noqa: ANN001, ANN201
    """Answer a ticket."""
    asked = scripted.read(messages)
    return asked.answer(team=route(asked.skill, asked.inputs["ticket"]))


def route(skill: str, ticket: str) -> str:
    """Return the team of a ticket under a skill."""
    rules = [line.strip() for line in skill.splitlines() if _teams(line)]
    words = [_words(rule) - {_stem(team) for team in TEAMS} for rule in rules]
    of_rules = Counter(word for each in words for word in each)
    found = _words(ticket)
    scores = Counter[str]()
    for rule, each in zip(rules, words, strict=True):
        weight = sum(math.log(1 + len(rules) / of_rules[word]) for word in each & found)
        for team in _teams(rule):
            scores[team] = max(scores[team], weight / len(_teams(rule)) ** 0.5)
    best = max(TEAMS, key=lambda team: (scores[team], team == "technical"))
    return best if scores[best] else "technical"


def _teams(rule: str) -> list[str]:
    low = re.sub(r"\b(?:not|never|instead of|rather than|don't use|isn't)\b[^.;,]{0,25}", " ", rule.lower())
    return [team for team in TEAMS if re.search(rf"\b{team}\b", low)]


def _words(text: str) -> set[str]:
    return {_stem(word) for word in re.findall(r"[a-z0-9']+", text.lower()) if word not in _COMMON and len(word) > 1}


def _stem(word: str) -> str:
    return re.sub(r"(?:'s|ies|ing|ed|es|s|y|e)$", "", word) if len(word) > 4 else word
