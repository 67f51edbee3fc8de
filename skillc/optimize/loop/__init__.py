"""The loop: baseline, epochs and steps."""
