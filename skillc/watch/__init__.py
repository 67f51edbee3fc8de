"""A run on a terminal: the live area of `compile`, and `skillc watch` with a replay.

`widgets.py` has the parts that both show: stage, gates, scores, spend. `plot.py` draws the curve. `compact.py` is the
live area of a compile. `follow.py` reads a run while it is at work, `frame.py` is what is known of it at one moment,
`views.py` renders a frame, and `replay.py` makes the frames of a finished run. `screen.py` shows frames and reads keys.
`charset.py` replaces characters that a terminal cannot print.
"""
