"""Pacing: concurrency, rate, quotas and outages of each endpoint."""
