#!/usr/bin/env python3
"""Print a date as YYYY-MM-DD, or unknown."""

import sys
from datetime import datetime


def convert(text):
    try:
        return datetime.strptime(text, "%d.%m.%Y").strftime("%Y-%m-%d")
    except ValueError:
        return "unknown"


if __name__ == "__main__":
    print(convert(sys.argv[1]))
