"""Two versions of a program: what changed in meaning, what got weaker, and what no longer fits its lock."""
