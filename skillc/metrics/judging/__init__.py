"""Models as judges of an output, by the criteria of a rubric or in comparison with a reference.

- `prompt.py`: what a judge reads of one rollout, and the messages, from the templates in `prompts/`.
- `verdict.py`: the typed reply of a judge and its tolerant reader.
- `combine.py`: verdicts of one or several judges as a score with feedback.
- `judges.py`: ask one judge about one case, once more if its reply cannot be read; all judges of a plan on one rollout.
- `check`: how far a judge can be trusted.
"""
