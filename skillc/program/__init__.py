"""Run one rollout, and write the compiled skill and its module."""
