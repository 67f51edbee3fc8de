"""What gates can and can't do, reckoned exactly."""
