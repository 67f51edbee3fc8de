"""Make `dates.jsonl`: days in three notations, and some that do not exist."""

import json
import random
from datetime import date, timedelta
from pathlib import Path

FORMATS = ("{0.day}.{0.month}.{0.year}", "{0:%Y/%m/%d}", "{0.day} {0:%b} {0.year}")

if __name__ == "__main__":
    draw = random.Random(7)
    rows = []
    for i in range(72):
        day = date(2020, 1, 1) + timedelta(days=draw.randrange(2000))
        rows.append({"date": FORMATS[i % 3].format(day), "iso": day.isoformat()})
    for i in range(8):
        rows.append({"date": f"31.{(2, 4, 6, 9, 11)[i % 5]}.{2020 + i}", "iso": "unknown"})
    Path("dates.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
