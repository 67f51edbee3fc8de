"""Write returns.jsonl: messages to a returns desk and their codes, by the rules in RULES.md, some labels wrong.

python -m benchmarks.by_hand.returns.make
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.by_hand.returns import phrases as said

SEED = 29
CODES = {
    "held": {"ours, whole": "A7", "ours, short": "F3", "theirs, whole": "D9", "theirs, short": "L8"},
    "moving": {"ours, whole": "C2", "ours, short": "A7", "theirs, whole": "G6", "theirs, short": "H1"},
    "third": {"ours, whole": "P2", "ours, short": "N5", "theirs, whole": "F3", "theirs, short": "G6"},
}
# In order of precedence. `credit` shares its code with a cell of the table.
EXCEPTIONS = {"hazard": "Q6", "personal": "S4", "hurt": "B4", "credit": "N5"}
PLAIN = 20  # of each cell of the table
SPECIAL = {"hazard": 9, "personal": 21, "hurt": 21, "credit": 9}
TWOFOLD = 4  # with each fourth exception a later one is met as well
LURED, WRONG = 60, 18
CLAUSES = 6


@dataclass(frozen=True)
class Facts:
    """The facts in a message that rules use."""

    place: str
    cause: str
    packing: str
    powered: bool = False
    personal: bool = False
    hurt: bool = False
    voucher: bool = False

    @property
    def met(self) -> tuple[str, ...]:
        """The exceptions that are met, the first one decides."""
        holds = {
            "hazard": self.powered and self.place == "moving",
            "personal": self.personal,
            "hurt": self.hurt,
            "credit": self.voucher and self.cause == "theirs",
        }
        return tuple(name for name in EXCEPTIONS if holds[name])

    @property
    def code(self) -> str:
        """The code by the rules."""
        return EXCEPTIONS[self.met[0]] if self.met else CODES[self.place][f"{self.cause}, {self.packing}"]


@dataclass(frozen=True)
class Message:
    """A message with its facts, its lure (empty for none) and its label, which may be wrong."""

    text: str
    facts: Facts
    lure: str
    label: str


# Makes an exception hold.
_MAKES: Mapping[str, Mapping[str, str | bool]] = {
    "hazard": {"powered": True, "place": "moving"},
    "personal": {"personal": True},
    "hurt": {"hurt": True},
    "credit": {"voucher": True, "cause": "theirs"},
}


def _lured(dice: random.Random, facts: Facts, used: Counter[str]) -> tuple[Facts, str, str]:
    """Add the rarest lure that suits: facts with it, its name, its clause (empty where a fact itself is the lure)."""
    suits = ["not place", "not cause", "not packing"]
    if not facts.met:
        suits += ["not personal", "not hurt", "powered" if facts.place != "moving" else "not powered"]
        suits.append("voucher" if facts.cause == "ours" else "not voucher")
    lure = min(suits, key=lambda name: (used[name], dice.random()))
    used[lure] += 1
    clauses: Mapping[str, Sequence[str]] = {
        "not powered": said.NOT_POWERED,
        "not voucher": said.NOT_VOUCHER,
        "not personal": said.NOT_PERSONAL,
        "not hurt": said.NOT_HURT,
        "not place": said.NOT_PLACE[facts.place],
        "not cause": said.NOT_CAUSE[facts.cause],
        "not packing": said.NOT_PACKING[facts.packing],
    }
    if lure in clauses:
        return facts, lure, dice.choice(clauses[lure])
    return replace(facts, **{lure: True}), lure, ""  # type: ignore[arg-type]


def _pick(dice: random.Random, clauses: Sequence[str], kind: str, barred: str = "-") -> str:
    """A clause that suits a soft (`s`) or hard (`h`) thing and has no barred mark."""
    other = re.compile(rf"^(used:)?{'h' if kind == 's' else 's'}:")
    return dice.choice([clause for clause in clauses if not other.match(clause) and not clause.startswith(barred)])


def _text(dice: random.Random, facts: Facts, lure: str) -> str:
    """The message in words: facts in any order, what decides nothing around them, three sentences at most."""
    kind = "h" if facts.powered else dice.choice("sh")
    thing = dice.choice(said.POWERED if facts.powered else said.SOFT if kind == "s" else said.HARD)
    told = [_pick(dice, clauses, kind) for clauses in (said.CAUSES[facts.cause], said.PLACES[facts.place])]
    used = facts.hurt or any(clause.startswith("used:") for clause in told)
    told.append(_pick(dice, said.PACKING[facts.packing], kind, barred="new:" if used else "-"))
    told += [
        _pick(dice, clauses, kind)
        for holds, clauses in ((facts.personal, said.PERSONAL), (facts.hurt, said.HURT), (facts.voucher, said.VOUCHER))
        if holds
    ]
    told += [lure] if lure else []
    spare = CLAUSES - len(told)
    wish = dice.choice(said.WISHES) if spare > 0 and dice.random() < 0.55 else ""
    paid = facts.voucher or lure in said.NOT_VOUCHER
    asides = [clause for clause in said.ASIDES if not (paid and "card" in clause)]
    told += [dice.choice(asides)] if spare > bool(wish) and dice.random() < 0.45 else []
    dice.shuffle(told)
    if wish and dice.random() < 0.25 and not _asks(wish):
        told.insert(0, wish)
    elif wish:
        told.append(wish)
    opening = dice.choice(said.OPENINGS) if dice.random() < 0.4 else ""
    text = " ".join(_sentences(dice, told, thing))
    return opening + (text if opening.endswith(", ") else _up(text))


def _sentences(dice: random.Random, told: Sequence[str], thing: tuple[str, str]) -> Iterator[str]:
    """Clauses joined to three sentences at most; the thing has its name where a pronoun would be unclear."""
    clauses, about = [], False
    for number, clause in enumerate(told):
        words = re.sub(r"^(\w+:)+", "", clause)
        if not about or "of {it}" in words:
            words = words.replace("{it}", f"the {thing[any('{it}' in earlier for earlier in told[:number])]}", 1)
        about = "{it}" in clause
        words = words.replace("{it}", "it")
        clauses.append(re.sub(r"^it is\b", "it's", words) if dice.random() < 0.5 else words)
    count = 2 if len(clauses) < 5 and dice.random() < 0.3 else 3
    doubled = dice.sample(range(count), len(clauses) - count)
    rest = iter(clauses)
    for number in range(count):
        sentence = last = next(rest)
        if number in doubled:
            last = next(rest)
            plain = not re.search(r",| and ", sentence + last) and not _asks(last)
            sentence += dice.choice((", and ", " and ", "; ", "; ") if plain else ("; ", "; ", " - ")) + last
        yield (_up(sentence) if number else sentence) + ("?" if _asks(last) else ".")


def _asks(clause: str) -> bool:
    return clause.split()[0] in ("could", "can", "may", "would")


def _up(text: str) -> str:
    return text[0].upper() + text[1:]


def _wanted() -> Iterator[Facts]:
    """The facts of all messages: each cell of the table and each exception as often as declared."""
    dice = random.Random(SEED)
    columns = [(place, *column.split(", ")) for place in CODES for column in CODES[place]]
    cells = [Facts(place, cause, packing) for place, cause, packing in columns]
    yield from cells * PLAIN
    for name, count in SPECIAL.items():
        later = list(EXCEPTIONS)[list(EXCEPTIONS).index(name) + 1 :]
        for number, cell in enumerate(dice.sample(cells * 2, count)):
            facts = replace(cell, **_MAKES[name])  # type: ignore[arg-type]
            if later and number % TWOFOLD == 0:
                facts = replace(facts, **_MAKES[later[number // TWOFOLD % len(later)]])  # type: ignore[arg-type]
            yield facts


def messages() -> tuple[Message, ...]:
    """All messages in the order of the file."""
    dice = random.Random(SEED)
    wanted = list(_wanted())
    dice.shuffle(wanted)
    lured = set(dice.sample(range(len(wanted)), LURED))
    wrong = set(dice.sample(range(len(wanted)), WRONG))
    used: Counter[str] = Counter()
    found: dict[str, Message] = {}
    for number, facts in enumerate(wanted):
        facts, lure, clause = _lured(dice, facts, used) if number in lured else (facts, "", "")
        while (text := _text(dice, facts, clause)) in found:
            pass
        label = dice.choice(_others(facts)) if number in wrong else facts.code
        found[text] = Message(text, facts, lure, label)
    return tuple(found.values())


def _others(facts: Facts) -> list[str]:
    """Wrong codes that a clerk might take: of the same place, or of another exception."""
    family = EXCEPTIONS if facts.met else CODES[facts.place]
    return sorted(set(family.values()) - {facts.code})


def examples() -> list[dict[str, str]]:
    """All examples, as they are written."""
    return [{"message": message.text, "code": message.label} for message in messages()]


def main() -> None:
    made = messages()
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in examples())
    Path(__file__).with_name("returns.jsonl").write_text(lines, encoding="utf-8")
    for title, counted in (
        ("codes", Counter(message.label for message in made)),
        ("exceptions", Counter(message.facts.met[0] if message.facts.met else "none" for message in made)),
        ("exceptions, two met", Counter(" before ".join(m.facts.met) for m in made if len(m.facts.met) > 1)),
        ("lures", Counter(message.lure for message in made if message.lure)),
        ("labels", Counter("right" if message.label == message.facts.code else "wrong" for message in made)),
    ):
        print(f"{title}: " + ", ".join(f"{name} {count}" for name, count in sorted(counted.items())))


if __name__ == "__main__":
    main()
