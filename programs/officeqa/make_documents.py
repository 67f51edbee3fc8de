"""The sample's documents and questions: `python make_documents.py`.

Twenty-two bulletins of a treasury that does not exist, each with the tables, notes and paragraphs of its year, and two
questions on each, of seven kinds. Answers are calculated from the same figures that the bulletins print.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

DATA = Path(__file__).with_name("data")
YEARS = range(1944, 1966)
SPLITS = {"train": 8, "validation": 5, "test": 9}
SOURCES = ("Customs", "Stamps", "Land tax", "Lighthouse dues")
LENDERS = ("Bank of Hallam", "Sinking fund", "Holders abroad")
QUARTERS = ("Q1", "Q2", "Q3", "Q4")
RATES, MONTHS = ("3.25", "4.5", "5.75"), ("March", "June", "October")
ARTICLES = ("wool", "tin", "salt herring", "timber", "slate")


def bulletin(year: int) -> tuple[str, dict[str, object]]:
    """Return the text of a bulletin, and the figures in it."""
    draw = random.Random(year)
    receipts = {name: [draw.randint(120, 4_900) for _ in QUARTERS] for name in SOURCES}
    debt = {name: [draw.randint(10_000, 90_000) for _ in range(3)] for name in LENDERS}
    exports = draw.sample(range(100, 3_000), len(ARTICLES))
    name, quarter = draw.choice(SOURCES[:3]), draw.randrange(4)
    revised = receipts[name][quarter] + draw.choice((-37, -14, 22, 61))
    width = max(map(len, (*SOURCES, *LENDERS)))
    lines = ["TREASURY OF THE HALLAM ISLES", f"Bulletin for the year {year}", ""]
    opening = (
        f"The winter of {year} was mild, and the harbours were open on {draw.randint(280, 350)} days.",
        f"Trade in {year} suffered from the strike of the lightermen, which lasted {draw.randint(3, 11)} weeks.",
        f"A new custom house was opened at Port Ellary in {year} at a cost of {draw.randint(20, 80)},000 crowns.",
    )
    lines += [draw.choice(opening), "", "Table 1. Receipts by quarter, in thousands of crowns", ""]
    lines.append(" | ".join(["Source".ljust(width), *QUARTERS]))
    lines += [" | ".join([each.ljust(width), *(f"{value:,}" for value in values)]) for each, values in receipts.items()]
    lines += ["", "Table 2. Public debt at the end of the year, in crowns", ""]
    lines.append(" | ".join(["Lender".ljust(width), *(str(each) for each in (year - 2, year - 1, year))]))
    lines += [" | ".join([each.ljust(width), *(f"{value:,}" for value in values)]) for each, values in debt.items()]
    ranked = sorted(zip(exports, ARTICLES, strict=True), reverse=True)
    lines += [
        "",
        "Exports",
        "",
        "The isles shipped " + ", ".join(f"{count:,} tons of {what}" for count, what in ranked) + ".",
    ]
    lines += ["", "Notes", "", f"Table 1: {name}, {QUARTERS[quarter]} is revised to {revised:,} after the audit."]
    rate, date, month = draw.choice(RATES), draw.randint(2, 28), draw.choice(MONTHS)
    lines += [f"The bank rate was raised to {rate} % on {date} {month}."]
    figures = {
        "receipts": receipts,
        "debt": debt,
        "exports": dict(zip(ARTICLES, exports, strict=True)),
        "rate": lines[-1],
    }
    return "\n".join(lines) + "\n", {**figures, "name": name, "quarter": quarter, "revised": revised}


def questions(year: int, found: dict[str, object]) -> list[tuple[str, str]]:
    """Return two questions on a bulletin, with their answers."""
    receipts, debt, exports = found["receipts"], found["debt"], found["exports"]
    assert isinstance(receipts, dict)
    assert isinstance(debt, dict)
    assert isinstance(exports, dict)
    name, quarter = str(found["name"]), int(str(found["quarter"]))
    draw = random.Random(-year)
    other = draw.choice([each for each in SOURCES if each != name])
    lender, last = draw.choice(LENDERS), draw.choice((1, 2))
    sold = draw.choice(ARTICLES)
    change = debt[lender][2] - debt[lender][last - 1]
    rate = str(found["rate"])
    every = [
        (
            f"What were the receipts from {name} in {QUARTERS[quarter]} of {year}, as revised, in thousands of crowns?",
            f"{found['revised']:,}",
        ),
        (
            f"What were the receipts from {other} in the whole of {year}, in thousands of crowns?",
            f"{sum(receipts[other]):,}",
        ),
        (
            f"By how many crowns did the debt to the {lender} change from the end of {year - 3 + last} to the end of"
            f" {year}? Give the sign if it fell.",
            f"{change:,}",
        ),
        (f"How many tons of {sold} did the isles ship in {year}?", f"{exports[sold]:,}"),
        (
            f"In which quarter of {year} were the receipts from {other} the largest?",
            QUARTERS[receipts[other].index(max(receipts[other]))],
        ),
        (
            f"What were the receipts from {other} in {QUARTERS[(quarter + 1) % 4]} of {year}, in crowns?",
            f"{receipts[other][(quarter + 1) % 4] * 1000:,}",
        ),
        (f"On which day of {year} was the bank rate raised?", rate.rpartition(" on ")[2].rstrip(".")),
    ]
    start = year % len(every)
    return [every[start], every[(start + 3) % len(every)]]


def main() -> None:
    """Write documents and questions."""
    (DATA / "bulletins").mkdir(parents=True, exist_ok=True)
    years = list(YEARS)
    random.Random(6).shuffle(years)
    start = 0
    for split, count in SPLITS.items():
        rows = []
        for year in sorted(years[start : start + count]):
            text, found = bulletin(year)
            (DATA / f"bulletins/hallam_bulletin_{year}.txt").write_text(text)
            for number, (question, answer) in enumerate(questions(year, found), 1):
                path = f"bulletins/hallam_bulletin_{year}.txt"
                rows.append({"id": f"H{year}-{number}", "question": question, "answer": answer, "files": [path]})
        (DATA / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        start += count


if __name__ == "__main__":
    main()
