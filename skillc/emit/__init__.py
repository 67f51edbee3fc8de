"""A compiled skill in the forms that hosts read, each kept only if it does as well there: `skillc emit`.

`forms.py` makes the files of a form from the folder of a skill, and what the host puts in front of its model.
`write.py` writes them without overwriting changes. `serve.py` serves a skill as `skill://` resources over MCP.
`paired.py` measures a form against the plain form.
"""
