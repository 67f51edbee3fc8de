"""The text of a program: tokens, parser, syntax tree, mistakes of syntax, formatter.

`tokens.py` is the one reading of a text: tokens with their comments, which parser, formatter, recovery, editor and
the Pygments lexer use. `grammar/skill.lark` holds rules and terminals; `python -m grammar.make` builds `table.json`
from it with lark, and `reader.py` runs the parser over these tables. `builder.py` makes nodes (`nodes.py`) of the
rules, `parser.py` is `parse`, which never raises.

- *mistakes*: `mistakes/` repairs or drops one statement at a time; each of its detectors recognizes one mistake.
  `outline.py` finds statements by brackets and line ends in a text that does not parse.
- *formatting*: `formatting/` groups the parser's tokens into statements (`words.py`), makes pieces of those that need
  several lines with the same parser (`pieces.py`), lays them out (`layout.py`, `lines.py`), and proves that the
  result is the same program before anything is written.
"""
