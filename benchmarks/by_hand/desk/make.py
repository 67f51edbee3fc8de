"""Write desk.jsonl: requests to a library desk and their codes, by the rules in RULES.md.

python -m benchmarks.by_hand.desk.make
"""

from __future__ import annotations

import json
import random
from pathlib import Path

COUNT, SEED = 244, 16
HARD = 0.1
CODES = {
    "book": {"university": "K4", "townspeople": "W1", "organisation": "W3"},
    "periodical": {"university": "K7", "townspeople": "W1", "organisation": "B2"},
    "media": {"university": "M5", "townspeople": "T8", "organisation": "W3"},
    "paper": {"university": "K4", "townspeople": "T8", "organisation": "B2"},
}
SUBJECTS = (
    "beekeeping",
    "the harbour",
    "medieval trade",
    "tax law",
    "the brewery",
    "steam engines",
    "bird migration",
    "the railway strike",
    "Norwegian knitting",
    "bridge building",
    "local elections",
    "alpine plants",
    "tin mining",
    "the flood",
    "glass painting",
    "river pilots",
    "school reform",
    "dairy farming",
    "lighthouses",
    "the old theatre",
    "volcanoes",
    "Polish cooking",
    "the tram lines",
    "chess openings",
    "fever hospitals",
    "wood carving",
)
ITEMS = {
    "book": (
        "a book on {s}",
        "the paperback about {s}",
        "a novel set around {s}",
        "an introduction to {s} in print",
        "the big hardback on {s}",
        "a handbook of {s}",
        "two books on {s}",
        "the textbook about {s}",
        "a biography of someone who knew all about {s}",
        "an illustrated guidebook to {s}",
    ),
    "periodical": (
        "a newspaper that reported on {s}",
        "the journal with the article on {s}",
        "some magazine about {s}",
        "the weekly paper's issue on {s}",
        "last winter's number of the quarterly on {s}",
        "back issues of a monthly on {s}",
        "the evening paper with the piece on {s}",
        "a run of the journal of {s}",
        "the magazine with {s} on the cover",
    ),
    "media": (
        "a film about {s}",
        "the audiobook on {s}",
        "a DVD on {s}",
        "the documentary about {s} on disc",
        "an LP with songs on {s}",
        "the board game about {s}",
        "a CD of lectures on {s}",
        "the video game about {s}",
        "a vinyl recording on the theme of {s}",
    ),
    "paper": (
        "a map for {s}",
        "letters concerning {s}",
        "photographs of {s}",
        "the deed that mentions {s}",
        "a builder's plan to do with {s}",
        "a poster for {s}",
        "sheet music inspired by {s}",
        "a handwritten letter on {s}",
        "a set of prints and photographs on {s}",
        "the folded map showing {s}",
    ),
}
# First person, third person as the desk notes it down.
WHO = {
    "university": (
        ("I'm in my second year of law at the university", "second-year law student"),
        ("I teach chemistry at the university", "chemistry lecturer at the university"),
        ("I'm writing my doctoral thesis here at the university", "doctoral student"),
        ("I work in the university's accounts office", "employee of the university, accounts"),
        ("as an undergraduate in history", "undergraduate, history"),
        ("my student card is with me", "showed a student card"),
        ("I've just been made professor of botany", "newly appointed professor of botany"),
        ("I'm on the university's grounds staff", "gardener employed by the university"),
        ("it's for my bachelor's seminar", "needs it for a bachelor's seminar"),
        ("exchange student from Porto, here for one term", "exchange student, one term"),
        ("I'm a postdoc in the physics building", "postdoc, physics"),
    ),
    "townspeople": (
        ("I live round the corner", "lives round the corner"),
        ("I'm retired and have time at last", "retired gentleman"),
        ("I drive a bus and read in the breaks", "bus driver, off duty"),
        ("I'm twelve", "girl of twelve"),
        ("it's for my mother, who is ninety", "asks for her mother of ninety"),
        ("we've just moved here from the coast", "family new in town"),
        ("I'm a nurse and read at night", "nurse, for her own reading"),
        ("I've had a town reader's card for years", "long-standing holder of a town card"),
        ("it's only a hobby of mine", "a hobbyist"),
        ("my grandson and I want it for a rainy weekend", "grandmother with grandson"),
        ("I run a small farm and it's for my own shelf", "farmer, private reading"),
        ("I'm on holiday in town", "tourist"),
    ),
    "organisation": (
        ("I'm calling for the town museum", "the town museum asks"),
        ("on behalf of the rowing club", "secretary of the rowing club, for the club"),
        ("this is the municipal library of Aarfeld", "colleague of the municipal library in Aarfeld"),
        ("I'm with the Morning Courier and we're preparing a feature", "reporter, for the Morning Courier"),
        ("our firm needs it for a client", "a firm of engineers, for a client"),
        ("the grammar school would like it for the upper forms", "grammar school, for its classes"),
        ("I write for the planning office of the county", "county planning office"),
        ("the brass band has asked me to fetch it", "for the brass band"),
        ("we at the theatre want it for a production", "the theatre's props department"),
        ("for the archive of the shipping company", "shipping company's archive"),
        ("the parish council sends me", "parish council"),
    ),
}
ASK = (
    "could you put aside {i}",
    "I'm looking for {i}",
    "do you have {i}",
    "I'd like to reserve {i}",
    "is there any chance of borrowing {i}",
    "I want to extend the loan of {i}",
    "please hold {i} for me",
    "would it be possible to see {i}",
    "I need {i}",
    "can I still get hold of {i}",
    "where would I find {i}",
    "I'd be glad of {i}",
    "I have {i} at the moment and have a question about it",
    "may I take {i} home",
)
NOTED = (
    "wants {i}",
    "asks after {i}",
    "would like {i}",
    "reserves {i}",
    "hopes to borrow {i}",
    "enquires about {i}",
    "renewal of {i}",
    "looking for {i}",
    "request: {i}",
    "returned to the desk twice about {i}",
)
GREET = ("Hello", "Good morning", "Hi there", "Dear desk", "Good afternoon", "Dear librarians", "Excuse me", "Hi")
BYE = (
    "Many thanks",
    "Thanks in advance",
    "Kind regards, J. Tolley",
    "Thank you",
    "Best wishes, Mara",
    "Looking forward to your answer",
    "Cheers",
    "Yours, A. Brandt",
    "I'm on 4471 if you need me",
    "Until then",
)
ASIDE = (
    "The lift was out again, by the way.",
    "I prefer the reading room on the second floor.",
    "My card ends in 308.",
    "The catalogue shows one copy.",
    "A friend recommended it.",
    "I can collect it myself.",
    "Any edition will do.",
    "It doesn't matter if it's in German.",
    "I looked under the wrong name first.",
    "Please write rather than ring.",
    "There was a queue last time.",
    "I've got three things on loan already.",
    "The colour of the cover is green, I believe.",
    "If there's a fee, I'll pay it.",
    "I couldn't find the shelf myself.",
    "Somebody else may have it until the end of the month.",
    "I'll bring back the others as well.",
    "It was mentioned on the radio.",
    "I'm rather slow with computers.",
    "The branch by the station didn't have it.",
    "Is parking still free?",
    "My neighbour liked it very much.",
    "I'd keep it for about four weeks.",
    "You helped me very kindly in spring.",
    "The author's name escapes me.",
)
DAMAGED = (
    "It got soaked in the rain, I'm afraid.",
    "Several pages are missing from it.",
    "There's mould along its edge.",
    "My dog has chewed one corner of it.",
    "It's badly scratched.",
    "It came apart in my hands.",
    "Coffee went all over it.",
    "It has a long tear right through the middle.",
    "It smells of damp and has dark spots.",
    "Somebody has cut a piece out of it.",
)
URGENT = (
    "It has to be by tomorrow.",
    "I need it this very afternoon.",
    "It must be ready before we close tonight.",
    "Tomorrow morning at nine would be the latest.",
    "I'm standing at the door and would take it right away.",
    "It's needed within the next few hours.",
    "My train leaves tonight and it should come along.",
    "The talk is tomorrow, so it can't wait.",
    "Only today is of any use.",
)
OLD = (
    "It should be the one from {y}.",
    "It was made in {y}.",
    "The original of {y}, please.",
    "It dates from {y}.",
    "Ours says {y} on the back.",
    "I mean the one issued in {y}.",
)
YEARS = ("1741", "1788", "1803", "1826", "1849", "1862", "1877", "1891", "1899", "the 1860s", "the eighteenth century")
# Facts that look like an exception and are none.
NOT_DAMAGED = (
    "The bag I carried it in is torn, the thing itself is fine.",
    "My umbrella was soaked, luckily nothing else was.",
    "The shelf label is scratched, I could hardly read it.",
    "An earlier one I had lacked pages, this one is perfect.",
    "The room next door smells of mould, someone should look.",
)
NOT_URGENT = (
    "I only heard of it today.",
    "I'm away from tomorrow and back in three weeks, after that is fine.",
    "Today's my birthday, so I allow myself a wish; any week suits me.",
    "Tomorrow I'm returning two others.",
    "My sister needs hers tomorrow, mine can wait.",
)
NOT_OLD = (
    "It's a recent one on how things were in {y}.",
    "It came out last year and deals with events of {y}.",
    "The reprint made in 2015 will do, the one of {y} I have seen.",
    "It tells of {y}, but is quite new.",
)
NOT_WHO = {
    "university": (
        "My wife runs a bookshop in town.",
        "My flatmate is with the newspaper.",
        "My father sits on the museum's board, not that it matters.",
    ),
    "townspeople": (
        "My daughter studies at the university.",
        "My brother is a professor, I'm not.",
        "A friend from the museum told me to ask you.",
    ),
    "organisation": (
        "I used to be a student here.",
        "Our chairwoman lives round the corner.",
        "My husband teaches at the university.",
    ),
}
REQUESTS = ("plain", "damaged", "urgent", "old")


def example(dice: random.Random, kind: str, who: str, special: str, *, hard: bool) -> dict[str, str]:
    """One request and its code."""
    item = dice.choice(ITEMS[kind]).format(s=dice.choice(SUBJECTS))
    first, third = dice.choice(WHO[who])
    code = {"damaged": "Z9", "urgent": "J3", "old": "R6"}.get(special, CODES[kind][who])
    facts = {"damaged": DAMAGED, "urgent": URGENT, "old": OLD}.get(special)
    extra = [dice.choice(facts)] if facts else []
    if special in ("damaged", "urgent") and dice.random() < 0.2:  # two exceptions at once: the first one wins
        extra.append(dice.choice(URGENT if special == "damaged" else OLD))
    if hard:
        lures = [NOT_WHO[who]]
        if not extra:
            lures += [NOT_DAMAGED, NOT_URGENT, NOT_OLD]
        extra.append(dice.choice(dice.choice(lures)))
    extra = [text.format(y=dice.choice(YEARS)) for text in extra]
    asides = dice.sample(ASIDE, dice.choices((0, 1, 2, 3), (3, 4, 2, 1))[0])
    rest = extra + asides
    dice.shuffle(rest)
    return {"request": _written(dice, item, first, third, rest), "code": code}


def _written(dice: random.Random, item: str, first: str, third: str, rest: list[str]) -> str:
    """A letter, a note of the desk, or a remark at the counter."""
    style = dice.choices(("letter", "note", "spoken", "terse"), (4, 3, 4, 1))[0]
    if style == "note":
        head = f"{third}, {dice.choice(NOTED).format(i=item)}"
        head = dice.choice((f"{_up(head)}.", f"At the desk: {head}.", f"Phone, 10:{dice.randrange(10, 59)}: {head}."))
        return " ".join([head, *rest])
    ask = dice.choice(ASK).format(i=item)
    end = "?" if ask.split()[0] in ("could", "do", "is", "would", "can", "where", "may") else "."
    if style == "terse":
        return " ".join([f"{_up(item)}; {first}.", *rest])
    told = dice.choice((f"{_up(first)}. {_up(ask)}{end}", f"{_up(ask)}{end} {_up(first)}."))
    cut = dice.randrange(len(rest) + 1)
    parts = [*rest[:cut], told, *rest[cut:]] if dice.random() < 0.5 else [told, *rest]
    if style == "letter":
        return " ".join([f"{dice.choice(GREET)},", *parts, f"{dice.choice(BYE)}."])
    return " ".join(parts)


def _up(text: str) -> str:
    return text[0].upper() + text[1:]


def examples() -> list[dict[str, str]]:
    """All examples; every cell of the table about equally often, an exception in three of ten."""
    dice = random.Random(SEED)
    found: dict[str, dict[str, str]] = {}
    cells = [(kind, who) for kind in CODES for who in WHO]
    for index in range(COUNT):
        kind, who = cells[index % len(cells)]
        special = dice.choices(REQUESTS, (71, 10, 10, 9))[0]
        if kind == "media" and special == "old":
            special = "damaged"  # no film is that old
        hard = dice.random() < HARD
        while (made := example(dice, kind, who, special, hard=hard))["request"] in found:
            pass
        found[made["request"]] = made
    rows = list(found.values())
    dice.shuffle(rows)
    return rows


def main() -> None:
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in examples())
    Path(__file__).with_name("desk.jsonl").write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    main()
