"""The resolved program: frozen data with every default filled in, its hash, and the bounds of what it may spend.

`schema.py` is the plan. `resolve.py` makes it of a checked program, `settings.py` reads settings and `--set`,
`models.py` replaces models for one call, `digest.py` names the plan, `lock.py` is what git keeps of a compile. A
setting of `optimize` or `budget` is declared once, in `skillc/language/loop.py`: the table of kinds, the plan's field
and default, `--set`, hovers, costs and `docs/optimizer.md` read that entry. `initial.py` writes the task in words:
the paragraph below the title of SKILL.md, which no edit can change. Around it DSPy's chat adapter adds its format
only: the field names and types, the `[[ ## name ## ]]` markers, the JSON schema of lists, and eight spaces before
each line of the instructions. `script_tests.py` reads the tests of scripts.
"""
