"""How one rollout runs: the compiled DSPy module, and what is written for others to use."""
