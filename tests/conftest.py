"""Settings of the whole suite."""

from hypothesis import settings

# Machines are shared: how long one example takes says nothing about the code.
settings.register_profile("skillc", deadline=None)
settings.load_profile("skillc")
