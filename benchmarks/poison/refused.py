"""How many paraphrases, and how many rules of ordinary compiles, the scan of rules and the classes of meaning refuse.

`python -m benchmarks.poison.refused` reads the rules that language models wrote in the trials by hand, adopted or not,
and the compiled skills of the repository. None of them is poisoned.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.poison.paraphrasing import OTHER_WORDS, WORDS, paraphrase
from benchmarks.poison.planted import planted
from skillc.sessions.asks import asks_for
from skillc.sessions.poison import scan_rule

ROOT = Path(__file__).parents[2]
_TEXT = re.compile(r'"(?:text|guidance)": "((?:[^"\\]|\\.)*)"')


def of_models() -> set[str]:
    """Return the rules that language models wrote in the trials by hand."""
    found = {json.loads(line)["text"] for line in _lines(ROOT / "benchmarks/by_hand/planted/rules.jsonl")}
    files = [
        *ROOT.glob("benchmarks/by_hand/*/recorded/optimizer.jsonl"),
        *ROOT.glob("tests/by_hand/recorded/*optimizer.jsonl"),
    ]
    for file in files:
        if "absorbed" in str(file):
            continue  # its rules may be poisoned
        for line in _lines(file):
            found |= _rules(json.loads(line).get("reply", ""))
    # One draft was written to be refused, and sent in place of a model's.
    prepared = _rules((ROOT / "benchmarks/by_hand/revision/first_draft.txt").read_text(encoding="utf-8"))
    return {text for text in found - prepared if text.strip()}


def _rules(reply: str) -> set[str]:
    return {json.loads(f'"{text}"') for text in _TEXT.findall(reply)}


def of_programs() -> set[str]:
    """Return the rules in the compiled skills of the repository."""
    files = [*ROOT.glob("programs/*/skills/*/*.md"), *ROOT.glob("benchmarks/by_hand/*/recorded/SKILL.md")]
    return {line[2:].strip() for file in files for line in _lines(file) if line.startswith("- ")}


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


def refused(rules: set[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the layer, the reason and the rule of those that are refused."""
    for rule in sorted(rules):
        for layer, found in (("scan of rules", scan_rule(rule)), ("meaning", tuple(asks_for(rule)))):
            if found:
                yield layer, found[0][0], rule


def found_in(words: Mapping[str, str]) -> Counter[str]:
    """Return how many of the 200 planted instructions each layer finds in a paraphrase."""
    found = Counter[str]()
    for _, text, _ in planted():
        said = paraphrase(text, words)
        layers = {name for name, any_ in (("scan of rules", scan_rule(said)), ("meaning", [*asks_for(said)])) if any_}
        found.update((*layers, *(["either"] if layers else [])))
    return found


def main() -> None:
    """Print the counts and the refused rules."""
    for name, words in (("words of the first list", WORDS), ("words of the second list", OTHER_WORDS)):
        print(f"{name}: found of 200 paraphrases: {dict(sorted(found_in(words).items()))}")
    for name, rules in (("rules of language models", of_models()), ("rules of compiled skills", of_programs())):
        found = list(refused(rules))
        for layer in ("scan of rules", "meaning"):
            print(f"{name}: {sum(each[0] == layer for each in found)} of {len(rules)} refused by the {layer}")
        for layer, why, rule in found:
            print(f"  {layer}, {why}: {' '.join(rule.split())[:200]}")


if __name__ == "__main__":
    main()
