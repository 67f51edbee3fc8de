"""The resolved program: frozen data with every default filled in, its digest, and the skill that a run starts with.

`schema.py` is the plan. `resolve.py` makes it of a checked program, `settings.py` reads `--set`, `models.py` replaces
models for one call, `judges.py` finds the judges of metrics and the outputs that need right answers, `digest.py` names
the plan and the tests of its scripts, `lock.py` is what git keeps of a compile. A setting of `optimize` or `budget` is
declared once, in `skillc/language/loop.py`: the table of kinds, the plan's field and default, `--set`, hovers, costs
and `docs/optimizer.md` read that entry. `initial.py` writes the task in words: the paragraph below the title of
SKILL.md, which no edit can change. Around it DSPy's chat adapter adds its format only: the field names and types, the
`[[ ## name ## ]]` markers, the JSON schema of lists, and eight spaces before each line of the instructions.
`company.py` reads the skills beside the one that is trained, `existing.py` a SKILL.md as the skill of a new program.
"""
