"""Plays both models, so that the example runs without a network."""

import json
import re

RUN = """```python
import subprocess, sys
print(subprocess.run([sys.executable, {script!r}, {date!r}], capture_output=True, text=True).stdout)
```"""

HASTY = """import re
import sys

MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


def convert(text):
    parts = re.split(r"[./ ]", text)
    if len(parts) != 3:
        return "unknown"
    if len(parts[0]) == 4:
        parts.reverse()
    day, month, year = parts
    month = MONTHS.index(month) + 1 if month in MONTHS else int(month)
    return f"{year}-{month:02}-{int(day):02}"


if __name__ == "__main__":
    print(convert(sys.argv[1]))
"""


def target(messages: list[dict[str, str]], role: str, settings: dict[str, object]) -> str:
    """Run the script that the skill names, and answer with what it prints."""
    if len(messages) > 2:
        return messages[-1]["content"].split()[0]
    question = messages[1]["content"]
    folder = re.findall(r"in the folder (\S+):", question)
    if not folder:
        return "unknown"
    return RUN.format(script=f"{folder[0]}/scripts/convert.py", date=re.findall(r"## date\n(.*)", question)[0])


def optimizer(messages: list[dict[str, str]], role: str, settings: dict[str, object]) -> str:
    """Write the script anew; after its tests failed, change only what the cases need."""
    prompt = messages[-1]["content"]
    rule = re.findall(r"Its one rule `(\w+)` is the whole file", prompt)[0]
    cures = re.findall(r'<trajectory tag="(t\d+)"', prompt)
    edit = {"op": "replace", "rule": rule, "rationale": "dates come in three notations", "cures": cures}
    if "fails its tests" not in prompt:
        return json.dumps({"edits": [{**edit, "text": HASTY}]})
    old = """    try:
        return datetime.strptime(text, "%d.%m.%Y").strftime("%Y-%m-%d")
    except ValueError:
        return "unknown"
"""
    new = """    for notation in ("%d.%m.%Y", "%Y/%m/%d", "%d %b %Y"):
        try:
            return datetime.strptime(text, notation).strftime("%Y-%m-%d")
        except ValueError:
            continue
    return "unknown"
"""
    return json.dumps({"edits": [{**edit, "old": old, "text": new}]})
