"""The skill as sections and rules, the edits on it, and markdown in and out."""
