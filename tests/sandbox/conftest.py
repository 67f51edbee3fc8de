"""An engine of containers that a program plays."""

from played_engine import engine  # noqa: F401
