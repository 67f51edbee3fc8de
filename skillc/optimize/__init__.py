"""The loop, one file a stage: rollout, reflect, aggregate, screen, select, edit, gate."""
