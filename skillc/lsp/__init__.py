"""The language server: what an editor asks of a program while it is typed."""
