"""Read a finished, stopped or running compile, for every view of it.

`run_view.py` reads one run from its lock, its history, its program with the data, and, where they are on this machine,
the store and the items of its folder. `decisions.py` has the history as dataclasses, `skills.py` rebuilds the text of
each candidate from the recorded edits, `stored.py` reads outcomes and charges from the store.

The others are pure functions of a `RunView`: `curve.py` has the scores by step with their intervals, `origins.py` the
decision behind each line of the skill, `saved.py` what early decisions and patience saved, `confidence.py` the words
for how sure a figure is, `remarks.py` what the items say against it.

`log.py`, `show.py`, `why.py` and `example.py` are the views of the verbs of those names, in a terminal and as JSON.
`selecting.py` finds the step or the example that a user names, `tracing.py` who wrote each line of a skill's file on
disk, `removal.py` what is known of a skill without one of its rules. `words.py` and `terminal.py` are what views share.
`candidates.py` has a candidate and its edits as values, for the page and for `skillc watch`.

`report.py` renders the page of `skillc report`: `page.py` has its values, `chart.py` the geometry of the curve,
`differences.py` what an edit changed, `packing.py` the rollouts that its script unpacks. `summary.py` is its markdown.
"""
