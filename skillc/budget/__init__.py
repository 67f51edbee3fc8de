"""What a run may spend: its caps, how often each stage calls, how large a call is, and bounds on it all.

`steps.py` counts steps, decisions and screens, `call_sizes.py` sizes one call of each stage in tokens, `bounds.py`
multiplies them; `methods.py` does so for DSPy's optimizers. `render.py` prints `skillc plan`.
"""
