"""Make `messages.jsonl`: complaints about parcels, and messages that only look like complaints.

A complaint is decided by what happened to the parcel. The near misses have the same words, and the answer is in plain
sight: whoever applies the rules for complaints to them is wrong.
"""

import json
import random
from pathlib import Path

COMPLAINTS = {
    "refund": ("arrived torn", "was soaked by rain", "came with the lid open", "lost its seal on the way"),
    "voucher": ("took nine days", "was a week late", "came after the party", "missed the weekend"),
    "repair": ("holds a lamp with a crack", "has a clock that stopped", "holds a cup with a chip", "hums when opened"),
}
THINGS = ("lamp", "cup", "clock", "chair", "kettle", "mirror", "radio", "vase")
ENDS = ("Thanks.", "Please help.", "I am waiting.", "Regards.", "What now?", "")
MISSES = {
    "callback": (
        "Please arrange a callback about the parcel with the {thing}",
        "A callback this evening would help, my parcel with the {thing} is fine",
        "I want a callback before I send you a parcel with my {thing}",
    ),
    "catalogue": (
        "Send me the catalogue together with the parcel for the {thing}",
        "Is there a catalogue in each parcel, or only with the {thing}",
        "The catalogue shows a parcel service for the {thing}, how do I book it",
    ),
}


def messages(seed: int) -> list[dict[str, str]]:
    """Return distinct messages, two complaints for each near miss."""
    rng = random.Random(seed)
    rows = {}
    for _ in range(4000):
        thing, end = rng.choice(THINGS), rng.choice(ENDS)
        if rng.random() < 2 / 3:
            answer = rng.choice(list(COMPLAINTS))
            text, kind = f"The parcel with my {thing} {rng.choice(COMPLAINTS[answer])}.", "complaint"
        else:
            answer = rng.choice(list(MISSES))
            text, kind = rng.choice(MISSES[answer]).format(thing=thing) + ".", "near miss"
        rows[f"{text} {end}".strip()] = {"answer": answer, "kind": kind}
    chosen = list(rows.items())
    rng.shuffle(chosen)
    return [{"message": text, **rest} for text, rest in chosen[:300]]


if __name__ == "__main__":
    lines = "".join(json.dumps(row) + "\n" for row in messages(7))
    Path(__file__).with_name("messages.jsonl").write_text(lines, encoding="utf-8")
