"""What the examples themselves give reason to say, before anything is spent: `check --data`."""
