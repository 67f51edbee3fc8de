"""What a run measured on each item: its cells by version of the skill, and what they show.

`record.py` collects the cells of a finished run and keeps them beside its store, `items.json`. The others are pure
functions of that record: `grid.py` follows each item over the versions, `judging.py` compares judges with the metrics
that code measures, `gains.py` puts the gain on train, validation and test side by side. `report.py` renders them as
tables for a terminal and as JSON.
"""
