"""Check a program: names, types and units. Checking never raises on any text.

`kinds.py` is the table of declarations; `check.py` runs the passes and returns `checked.py`'s entities and the terms of
`gates/terms.py`.

- *modules*: `linking.py` follows `use` with the loader of `modules.py`, which reads only files in its folders
  (`syntax/files.py`); `skill_packages.py` finds installed packages without importing them. `library.py` is
  what `skillc std` shows.
- *for editors*: `links.py` resolves each name, also in a damaged program; `highlighting.py` makes the
  words of the TextMate grammar and of `skillc/pygments_lexer.py`.
"""
