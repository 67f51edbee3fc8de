"""What happened in a rollout, in one form for every kind, and the signals in it that explain failures."""
