"""Check a program: names, types and units. Checking never raises on any text.

`kinds.py` is the table of declarations, with the settings of rollouts in `rollouts.py` and of the loop in `loop.py`;
`check.py` runs the passes and returns `checked.py`'s entities and the terms of `gates/terms.py`.

- *modules*: `linking.py` follows `use` with the loader of `modules.py`, which reads only files in its folders
  (`syntax/files.py`); `skill_packages.py` finds installed packages without importing them. `library.py` is
  what `skillc std` shows.
- *declarations*: `statements.py` separates declarations and settings, `entities.py` and `settings.py` read their
  values. `rules.py`, `skill_folder.py`, `commands.py` and `judges.py` check what a type cannot express.
- *expressions*: `lower.py` lowers metrics and gates in the scopes of `scope.py`: `expressions.py`, `calls.py` with the
  readers of `arguments.py`, and `functions.py` for those of the program.
- *for editors*: `links.py` resolves each name, also in a damaged program; `vocabulary.py` lists the
  words that `editors/` and `skillc/pygments_lexer.py` highlight.
"""
