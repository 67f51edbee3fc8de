"""Try edits alone on training cases, and make candidates of those that help."""
