"""Models as judges of an output, by the criteria of a rubric or in comparison with a reference.

- `case.py`: what a judge reads of one rollout.
- `prompt.py`: the messages, from the templates in `prompts/`.
- `verdict.py`: the typed reply of a judge and its tolerant reader.
- `ask.py`: ask one judge about one case, the reply read and asked for once again if it cannot be read.
- `combine.py`: verdicts of one or several judges as a score with feedback.
- `judges.py`: all judges of a plan on one rollout.
- `check`: how far a judge can be trusted.
"""
