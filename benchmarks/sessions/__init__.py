"""Import of many sessions, and clusters of their requests: time and memory by the number of sessions."""
