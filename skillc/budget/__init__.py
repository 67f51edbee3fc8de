"""What a run may spend: its caps, how often each stage calls, how large a call is, and bounds on it all.

`steps.py` counts steps, decisions, screens and the calls of DSPy's optimizers, `call_sizes.py` sizes one call of each
stage in tokens, `bounds.py` multiplies them, `render.py` prints `skillc plan`.
"""
