"""How much a draft is shown, and on how many unseen cases it is tried: constants of the plan and of the loop."""

from __future__ import annotations

# Failures and right cases of the batch that one draft is written from.
MOST_FAILURES = 24
MOST_RIGHT = 12
# Unseen failures on which a draft is tried; half as many unseen right cases come with them.
JUDGES = 12
# Tokens of further training examples with their right answers.
FURTHER_LIMIT = 6_000
