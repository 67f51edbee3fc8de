"""From text to a checked program: source, syntax, names, types and units. Checking never raises on any text.

`kinds.py` is the table of words; `check.py` is a tuple of passes that ends in `checked.py`'s entities and the terms
of `gates/terms.py`.

- *modules*: `linking.py` follows `use` through `modules.py`'s loader, which reads nothing outside of its folders
  (`syntax/files.py`); `skill_packages.py` finds installed packages without importing them. `library.py` is
  what `skillc std` shows.
- *for editors*: `links.py` resolves each name, also in a damaged program; `highlighting.py` makes the
  words of the TextMate grammar and of `skillc/pygments_lexer.py`.
"""
